//! Responses in the format of November 2023, when the service was first measured: a Deployment without
//! probes, and no status.

use super::settings::{application, cloud, import, spring};
use super::volumes::{CONFIG, CONFIG_MOUNT, mount, named};
use crate::json::{Key, Writer};
use crate::key;
use crate::request::{BodyNode, Refusal};
use crate::route::{Parent, Route, Spec};

/// The label that selects the pods of a route.
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
const INSTANCE: Key = key!("app.kubernetes.io/instance");

pub(super) fn answer(
    body: &BodyNode<'_, '_>,
    image: &str,
    answer: &mut Writer,
) -> Result<(), Refusal> {
    let [parent] = body.required(["parent"])?;
    let [metadata] = parent.required(["metadata"])?;
    let [name] = metadata.required(["name"])?;
    let [spec] = parent.required(["spec"])?;
    let spec = Spec::of(&spec)?;
    let route = Route::of_seed(name.text()?, &Parent { metadata, spec })?;
    answer.object(|answer| {
        answer.key(key!("status")).object(|_| {});
        answer
            .key(key!("children"))
            .list(|answer| deployment(&route, image, answer));
    });
    Ok(())
}

fn deployment(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.object(|answer| {
        answer.constant(r#""apiVersion":"apps/v1","kind":"Deployment""#);
        answer.key(key!("metadata")).object(|answer| {
            answer.member(key!("name"), &route.name);
            answer
                .key(key!("labels"))
                .object(|answer| labels(route, answer));
        });
        answer.key(key!("spec")).object(|answer| {
            answer.key(key!("selector")).object(|answer| {
                answer
                    .key(key!("matchLabels"))
                    .object(|answer| instance(route, answer));
            });
            answer.key(key!("replicas")).json(route.replicas);
            answer.key(key!("template")).object(|answer| {
                answer.key(key!("metadata")).object(|answer| {
                    answer
                        .key(key!("labels"))
                        .object(|answer| labels(route, answer));
                    if let Some(annotations) = route.annotations {
                        answer.key(key!("annotations")).json(annotations);
                    }
                });
                answer
                    .key(key!("spec"))
                    .object(|answer| pod(route, image, answer));
            });
        });
    });
}

/// Writes the selector of the pods: the label as the pods have it, which may be the user's.
fn instance(route: &Route<'_>, answer: &mut Writer) {
    let mut labels = route.labels.iter();
    match labels.find(|(label, _)| label == INSTANCE_LABEL) {
        Some((_, users)) => answer.key(INSTANCE).json(users),
        None => {
            let parts = ["integrationroute-", &*route.name];
            answer.key(INSTANCE).joined(&parts);
        }
    }
}

/// Writes the labels. A user's label replaces our label of the same name. Other user labels come last.
fn labels(route: &Route<'_>, answer: &mut Writer) {
    let instance = format!("integrationroute-{}", route.name);
    let own = [
        (
            "app.kubernetes.io/managed-by",
            "integrationroute-controller",
        ),
        ("app.kubernetes.io/name", "integrationroute"),
        (INSTANCE_LABEL, &*instance),
        ("app.kubernetes.io/version", "latest"),
    ];
    for (name, value) in own {
        // The user's value at the place of ours, because the order of labels is part of the old responses.
        let mut labels = route.labels.iter();
        match labels.find(|(label, _)| label == name) {
            Some((_, users)) => answer.named(name).json(users),
            None => answer.named(name).text(value),
        }
    }
    let is_own = |label: &str| own.iter().any(|(name, _)| *name == label);
    for (name, value) in route.labels.iter().filter(|(label, _)| !is_own(label)) {
        answer.named(name).json(value);
    }
}

fn pod(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.fixed(key!("serviceAccountName"), "integrationroute-service");
    answer.key(key!("containers")).list(|answer| {
        answer.object(|answer| {
            answer.fixed(key!("name"), "integration-app");
            answer.member(key!("image"), image);
            answer
                .key(key!("volumeMounts"))
                .list(|answer| mounts(route, answer));
            if !route.sources.is_empty() {
                answer
                    .key(key!("env"))
                    .list(|answer| spring(answer, |answer| settings(route, answer)));
            }
        });
    });
    answer.key(key!("volumes")).list(|answer| {
        named(
            &[CONFIG],
            key!("configMap"),
            key!("name"),
            &route.config_map,
            answer,
        );
        for secret in &route.sources.secrets {
            named(
                &[secret],
                key!("secret"),
                key!("secretName"),
                secret,
                answer,
            );
        }
        for claim in &route.claims {
            named(
                &[&claim.name],
                key!("persistentVolumeClaim"),
                key!("claimName"),
                &claim.name,
                answer,
            );
        }
    });
}

fn mounts(route: &Route<'_>, answer: &mut Writer) {
    answer.constant(CONFIG_MOUNT);
    for secret in &route.sources.secrets {
        mount(&[secret], true, answer, |answer| {
            answer.joined(&["/etc/secrets/", secret]);
        });
    }
    for claim in &route.claims {
        mount(&[&claim.name], false, answer, |answer| {
            answer.json(claim.path);
        });
    }
}

/// Writes Spring's settings. The list of sources is unchanged, even if it is empty or null.
fn settings(route: &Route<'_>, writer: &mut Writer) {
    writer.key(key!("spring")).object(|writer| {
        import(writer);
        application(&route.name, writer);
        cloud(&route.sources, writer, |writer| {
            let sent = route.sources.properties_sent;
            writer.key(key!("sources")).json(sent.unwrap_or("null"));
        });
    });
}
