//! Writes the Service for a route's health and metrics.

use super::deployment::APP_NAME;
use crate::json::Writer;
use crate::key;
use crate::route::Route;

pub(super) fn write(route: &Route<'_>, answer: &mut Writer) {
    let ports = if route.keystore.is_some() {
        r#"{"name":"https","port":8443,"protocol":"TCP","targetPort":8443}"#
    } else {
        r#"{"name":"http","port":8080,"protocol":"TCP","targetPort":8080}"#
    };
    answer.object(|answer| {
        answer.constant(r#""apiVersion":"v1","kind":"Service""#);
        answer.key(key!("metadata")).object(|answer| {
            answer.key(key!("labels")).object(|answer| {
                answer.member(key!("integration-route"), &route.name);
                answer.constant(r#""prometheus-metrics-enabled":"true""#);
            });
            answer.key(key!("name")).joined(&[&route.name, "-actuator"]);
        });
        answer.key(key!("spec")).object(|answer| {
            answer
                .key(key!("ports"))
                .list(|answer| answer.constant(ports));
            answer.key(key!("selector")).object(|answer| {
                answer.member(APP_NAME, &route.name);
            });
        });
    });
}
