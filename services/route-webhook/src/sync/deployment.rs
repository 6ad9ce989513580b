//! Writes the Deployment that runs a route.

use super::{settings, volumes};
use crate::json::{Key, Writer};
use crate::key;
use crate::route::Route;

/// The label that selects the pods of a route.
pub(super) const APP_NAME: Key = key!("app.kubernetes.io/name");

/// One probe of a pod, with its failure threshold.
macro_rules! probe {
    ($name:literal, $path:literal, $port:literal, $scheme:literal, $failures:literal) => {
        // Concatenated by the compiler, because the probes never change.
        concat!(
            "\"",
            $name,
            r#"":{"httpGet":{"path":"/actuator/health/"#,
            $path,
            r#"","port":"#,
            $port,
            r#","scheme":""#,
            $scheme,
            r#""},"failureThreshold":"#,
            $failures,
            r#","timeoutSeconds":3}"#,
        )
    };
}

/// The probes of a pod, for a port and a scheme.
macro_rules! probes {
    ($port:literal, $scheme:literal) => {
        concat!(
            probe!("livenessProbe", "liveness", $port, $scheme, "3"),
            ",",
            probe!("readinessProbe", "readiness", $port, $scheme, "2"),
            ",",
            probe!("startupProbe", "liveness", $port, $scheme, "24"),
        )
    };
}

fn probes(route: &Route<'_>) -> &'static str {
    if route.keystore.is_some() {
        probes!("8443", "HTTPS")
    } else {
        probes!("8080", "HTTP")
    }
}

/// The rights of every pod, and its user.
const RIGHTS: &str = concat!(
    r#""serviceAccountName":"integrationroute-service","#,
    r#""securityContext":{"runAsNonRoot":true,"runAsUser":999,"fsGroup":999,"#,
    r#""seccompProfile":{"type":"RuntimeDefault"}}"#,
);

pub(super) fn write(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.object(|answer| {
        answer.constant(r#""apiVersion":"apps/v1","kind":"Deployment""#);
        answer.key(key!("metadata")).object(|answer| {
            answer.member(key!("name"), &route.name);
            answer
                .key(key!("labels"))
                .object(|answer| labels(route, answer));
            answer
                .key(key!("annotations"))
                // Written even if empty, unlike the annotations of the template. The contract requires it.
                .json(route.annotations.unwrap_or("{}"));
        });
        answer.key(key!("spec")).object(|answer| {
            answer.key(key!("selector")).object(|answer| {
                answer
                    .key(key!("matchLabels"))
                    .object(|answer| answer.member(APP_NAME, &route.name));
            });
            answer.key(key!("replicas")).json(route.replicas);
            answer
                .key(key!("template"))
                .object(|answer| template(route, image, answer));
        });
    });
}

const OWN_LABELS: &str = concat!(
    r#""app.kubernetes.io/component":"integration-route","#,
    r#""app.kubernetes.io/managed-by":"keip""#,
);

fn labels(route: &Route<'_>, answer: &mut Writer) {
    // Our own labels first. The selector needs the name, so users' labels come after it.
    answer.constant(OWN_LABELS);
    answer.member(APP_NAME, &route.name);
    for (name, value) in &route.labels {
        answer.named(name).json(value);
    }
}

fn template(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.key(key!("metadata")).object(|answer| {
        answer
            .key(key!("labels"))
            .object(|answer| labels(route, answer));
        if let Some(annotations) = route.annotations {
            answer.key(key!("annotations")).json(annotations);
        }
    });
    answer.key(key!("spec")).object(|answer| {
        answer.constant(RIGHTS);
        answer.key(key!("containers")).list(|answer| {
            answer.object(|answer| container(route, image, answer));
        });
        answer
            .key(key!("volumes"))
            .list(|answer| volumes::sources(route, answer));
    });
}

fn container(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.fixed(key!("name"), "integration-app");
    match route.image {
        Some(own) => answer.key(key!("image")).json(own),
        None => answer.member(key!("image"), image),
    }
    answer
        .key(key!("volumeMounts"))
        .list(|answer| volumes::mounts(route, answer));
    answer.constant(probes(route));
    answer
        .key(key!("env"))
        .list(|answer| settings::variables(route, answer));
    if let Some(resources) = route.resources {
        answer.key(key!("resources")).json(resources);
    }
    if let Some(env_from) = route.env_from {
        answer.key(key!("envFrom")).json(env_from);
    }
}
