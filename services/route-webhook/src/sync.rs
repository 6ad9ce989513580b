//! The sync hook: from the observed state of a route to its desired objects.
//!
//! A pure function: equal requests have equal responses, except for the time in a new condition, which the
//! caller provides.

mod deployment;
mod seed;
mod service;
mod settings;
mod status;
mod volumes;

use clap::ValueEnum;

use crate::json::Writer;
use crate::key;
use crate::request::{Body, BodyNode, Refusal};
use crate::route::{Parent, Route, Spec};

/// Format of the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ResponseFormat {
    /// Current format: status, Deployment and Service.
    Today,
    /// Format of the first benchmark in November 2023: a Deployment.
    Seed,
}

/// Settings that determine a response, in addition to the request.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The format of responses.
    pub format: ResponseFormat,
    /// The image of routes without an image.
    pub image: String,
}

/// The response to a reconciliation. `now` is the time for changed conditions.
///
/// # Errors
///
/// Fails if the request is not JSON or lacks a required member.
pub fn sync(body: &[u8], rules: &Rules, now: impl FnOnce() -> String) -> Result<String, Refusal> {
    let body = Body::read(body)?;
    let body = body.root();
    // 4 KiB for the constant parts of a response. The rest is at most as long as the request.
    let mut answer = Writer::new(4096 + body.json().len());
    match rules.format {
        ResponseFormat::Today => today(&body, rules, now, &mut answer)?,
        ResponseFormat::Seed => seed::answer(&body, &rules.image, &mut answer)?,
    }
    Ok(answer.finish())
}

fn today(
    body: &BodyNode<'_, '_>,
    rules: &Rules,
    now: impl FnOnce() -> String,
    answer: &mut Writer,
) -> Result<(), Refusal> {
    let [parent, children] = body.required(["parent", "children"])?;
    let [metadata, spec, before] = parent.members(["metadata", "spec", "status"])?;
    let metadata = metadata.ok_or_else(|| parent.missing("metadata"))?;
    let [name, generation] = metadata.required(["name", "generation"])?;
    let spec = spec.ok_or_else(|| parent.missing("spec"))?;
    let spec = Spec::of(&spec)?;
    let name = name.text()?;
    let [deployments] = children.required(["Deployment.apps/v1"])?;
    let deployment = deployments.member(&name)?;
    let pods = status::Pods::of(deployment)?;
    let ready = status::Ready {
        is_ready: spec.replicas.is_same_as(pods.ready),
        generation,
    };
    // Without conditions the Deployment's state is unknown, and the response has no conditions.
    let unchanged = match pods.available {
        Some(_) => ready.unchanged(before)?,
        None => None,
    };
    // All checks come before the first byte is written, so that a response is complete or missing.
    let route = Route::of(name, &Parent { metadata, spec })?;
    answer.object(|answer| {
        answer.key(key!("status")).object(|answer| {
            answer.key(key!("expectedReplicas")).json(route.replicas);
            answer.key(key!("readyReplicas")).json(pods.ready);
            answer.key(key!("runningReplicas")).json(pods.running);
            if let Some(available) = &pods.available {
                answer.key(key!("conditions")).list(|answer| {
                    for condition in available {
                        answer.json(condition);
                    }
                    match unchanged {
                        Some(condition) => answer.json(condition),
                        None => ready.write(&now(), answer),
                        // The time is read only here: an unchanged condition keeps the old time, so the
                        // controller sees no difference.
                    }
                });
            }
        });
        answer.key(key!("children")).list(|answer| {
            deployment::write(&route, &rules.image, answer);
            service::write(&route, answer);
        });
    });
    Ok(())
}
