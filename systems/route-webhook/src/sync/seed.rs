//! Answers as they were in November 2023, when the service was first measured: a Deployment without
//! probes, and nothing said of what runs.

use super::settings::{application, cloud, import, spring};
use super::volumes::{CONFIG, mount, named};
use crate::json::Writer;
use crate::request::{Node, Refusal};
use crate::route::{Parent, Route, Spec};

/// The label by which the pods of a route are found.
const INSTANCE: &str = "app.kubernetes.io/instance";

pub(super) fn answer(body: &Node<'_, '_>, image: &str, answer: &mut Writer) -> Result<(), Refusal> {
    let [parent] = body.required(["parent"])?;
    let [metadata] = parent.required(["metadata"])?;
    let [name] = metadata.required(["name"])?;
    let [spec] = parent.required(["spec"])?;
    let spec = Spec::of(&spec)?;
    let route = Route::of_seed(name.text()?, &Parent { metadata, spec })?;
    answer.object(|answer| {
        answer.key("status").object(|_| {});
        answer
            .key("children")
            .list(|answer| deployment(&route, image, answer));
    });
    Ok(())
}

fn deployment(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.object(|answer| {
        answer.fixed("apiVersion", "apps/v1");
        answer.fixed("kind", "Deployment");
        answer.key("metadata").object(|answer| {
            answer.member("name", &route.name);
            answer.key("labels").object(|answer| labels(route, answer));
        });
        answer.key("spec").object(|answer| {
            answer.key("selector").object(|answer| {
                answer
                    .key("matchLabels")
                    .object(|answer| instance(route, answer));
            });
            answer.key("replicas").json(route.replicas);
            answer.key("template").object(|answer| {
                answer.key("metadata").object(|answer| {
                    answer.key("labels").object(|answer| labels(route, answer));
                    if let Some(annotations) = route.annotations {
                        answer.key("annotations").json(annotations);
                    }
                });
                answer
                    .key("spec")
                    .object(|answer| pod(route, image, answer));
            });
        });
    });
}

fn instance(route: &Route<'_>, answer: &mut Writer) {
    let parts = ["integrationroute-", &*route.name];
    answer.key(INSTANCE).joined(&parts);
}

/// A label of the user wins over the one of the same name, in its place; the others come last.
fn labels(route: &Route<'_>, answer: &mut Writer) {
    let instance = format!("integrationroute-{}", route.name);
    let own = [
        (
            "app.kubernetes.io/managed-by",
            "integrationroute-controller",
        ),
        ("app.kubernetes.io/name", "integrationroute"),
        (INSTANCE, &*instance),
        ("app.kubernetes.io/version", "latest"),
    ];
    for (name, value) in own {
        let mut labels = route.labels.iter();
        match labels.find(|(label, _)| label == name) {
            Some((_, users)) => answer.key(name).json(users),
            None => answer.member(name, value),
        }
    }
    let is_own = |label: &str| own.iter().any(|(name, _)| *name == label);
    for (name, value) in route.labels.iter().filter(|(label, _)| !is_own(label)) {
        answer.named(name).json(value);
    }
}

fn pod(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.fixed("serviceAccountName", "integrationroute-service");
    answer.key("containers").list(|answer| {
        answer.object(|answer| {
            answer.fixed("name", "integration-app");
            answer.member("image", image);
            answer
                .key("volumeMounts")
                .list(|answer| mounts(route, answer));
            if !route.sources.is_empty() {
                answer
                    .key("env")
                    .list(|answer| spring(answer, |answer| settings(route, answer)));
            }
        });
    });
    answer.key("volumes").list(|answer| {
        named(&[CONFIG], "configMap", ("name", &route.config_map), answer);
        for secret in &route.sources.secrets {
            named(&[secret], "secret", ("secretName", secret), answer);
        }
        for claim in &route.claims {
            let source = ("claimName", &*claim.name);
            named(&[&claim.name], "persistentVolumeClaim", source, answer);
        }
    });
}

fn mounts(route: &Route<'_>, answer: &mut Writer) {
    mount(&[CONFIG], false, answer, |answer| {
        answer.word("/var/spring/xml");
    });
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

/// Spring's settings; the list of sources may be null.
fn settings(route: &Route<'_>, writer: &mut Writer) {
    writer.key("spring").object(|writer| {
        import(writer);
        application(&route.name, writer);
        cloud(&route.sources, writer, |properties, writer| {
            writer.key("sources").json(properties.unwrap_or("null"));
        });
    });
}
