//! The Service through which a route is watched.

use super::deployment::{APP_NAME, Port};
use crate::json::Writer;
use crate::route::Route;

pub(super) fn write(route: &Route<'_>, answer: &mut Writer) {
    let port = Port::of(route);
    answer.object(|answer| {
        answer.fixed("apiVersion", "v1");
        answer.fixed("kind", "Service");
        answer.key("metadata").object(|answer| {
            answer.key("labels").object(|answer| {
                answer.member("integration-route", &route.name);
                answer.fixed("prometheus-metrics-enabled", "true");
            });
            answer.key("name").joined(&[&route.name, "-actuator"]);
        });
        answer.key("spec").object(|answer| {
            answer.key("ports").list(|answer| {
                answer.object(|answer| {
                    answer.member("name", port.name);
                    answer.key("port").number(port.number);
                    answer.fixed("protocol", "TCP");
                    answer.key("targetPort").number(port.number);
                });
            });
            answer.key("selector").object(|answer| {
                answer.member(APP_NAME, &route.name);
            });
        });
    });
}
