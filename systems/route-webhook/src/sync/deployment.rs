//! The Deployment that runs a route.

use super::{settings, volumes};
use crate::json::Writer;
use crate::route::Route;

/// The label by which the pods of a route are found.
pub(super) const APP_NAME: &str = "app.kubernetes.io/name";

/// The user that pods run as.
const USER: u32 = 999;

/// Where a route is asked how it is.
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) number: u32,
    scheme: &'static str,
}

impl Port {
    pub(super) fn of(route: &Route<'_>) -> Self {
        if route.keystore.is_some() {
            return Self {
                name: "https",
                number: settings::TLS_PORT,
                scheme: "HTTPS",
            };
        }
        Self {
            name: "http",
            number: 8080,
            scheme: "HTTP",
        }
    }
}

pub(super) fn write(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.object(|answer| {
        answer.fixed("apiVersion", "apps/v1");
        answer.fixed("kind", "Deployment");
        answer.key("metadata").object(|answer| {
            answer.member("name", &route.name);
            answer.key("labels").object(|answer| labels(route, answer));
            answer
                .key("annotations")
                .json(route.annotations.unwrap_or("{}"));
        });
        answer.key("spec").object(|answer| {
            answer.key("selector").object(|answer| {
                answer
                    .key("matchLabels")
                    .object(|answer| answer.member(APP_NAME, &route.name));
            });
            answer.key("replicas").json(route.replicas);
            answer
                .key("template")
                .object(|answer| template(route, image, answer));
        });
    });
}

fn labels(route: &Route<'_>, answer: &mut Writer) {
    answer.fixed("app.kubernetes.io/component", "integration-route");
    answer.fixed("app.kubernetes.io/managed-by", "keip");
    answer.member(APP_NAME, &route.name);
    for (name, value) in &route.labels {
        answer.named(name).json(value);
    }
}

fn template(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.key("metadata").object(|answer| {
        answer.key("labels").object(|answer| labels(route, answer));
        if let Some(annotations) = route.annotations {
            answer.key("annotations").json(annotations);
        }
    });
    answer.key("spec").object(|answer| {
        answer.fixed("serviceAccountName", "integrationroute-service");
        answer.key("securityContext").object(|answer| {
            answer.key("runAsNonRoot").truth(true);
            answer.key("runAsUser").number(USER);
            answer.key("fsGroup").number(USER);
            answer
                .key("seccompProfile")
                .object(|answer| answer.fixed("type", "RuntimeDefault"));
        });
        answer.key("containers").list(|answer| {
            answer.object(|answer| container(route, image, answer));
        });
        answer
            .key("volumes")
            .list(|answer| volumes::sources(route, answer));
    });
}

fn container(route: &Route<'_>, image: &str, answer: &mut Writer) {
    answer.fixed("name", "integration-app");
    match route.image {
        Some(own) => answer.key("image").json(own),
        None => answer.member("image", image),
    }
    answer
        .key("volumeMounts")
        .list(|answer| volumes::mounts(route, answer));
    let port = Port::of(route);
    for (name, path, failures) in [
        ("livenessProbe", "/actuator/health/liveness", 3),
        ("readinessProbe", "/actuator/health/readiness", 2),
        ("startupProbe", "/actuator/health/liveness", 24),
    ] {
        answer.key(name).object(|answer| {
            answer.key("httpGet").object(|answer| {
                answer.member("path", path);
                answer.key("port").number(port.number);
                answer.member("scheme", port.scheme);
            });
            answer.key("failureThreshold").number(failures);
            answer.key("timeoutSeconds").number(3);
        });
    }
    answer
        .key("env")
        .list(|answer| settings::variables(route, answer));
    if let Some(resources) = route.resources {
        answer.key("resources").json(resources);
    }
    if let Some(env_from) = route.env_from {
        answer.key("envFrom").json(env_from);
    }
}
