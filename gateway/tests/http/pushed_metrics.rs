//! Tests metrics that the gateway pushes to a collector.

use rustix::process::Signal;

use crate::client::post;
use crate::collector::{Collector, attribute, sum};
use crate::gateway::Gateway;
use crate::stub::Stub;

const BOTH: &str = r#"{"query":"{ locations { name overallRating } }"}"#;
const SERVED: &str = "http.server.request.duration";
const FETCHED: &str = "http.client.request.duration";

fn config(collector: &Collector, protocol: &str, more: &str) -> String {
    let address = &collector.address;
    format!(
        "telemetry: {{exporters: {{metrics: {{common: {{service_name: counts}}, otlp: {{enabled: true, endpoint: '{address}', protocol: {protocol}, {more}}}}}}}}}\n"
    )
}

#[test]
fn counts_are_pushed_over_and_over() {
    for protocol in ["http", "grpc"] {
        let (planets, collector) = (Stub::planets(), Collector::start());
        let more = "batch_processor: {scheduled_delay: 50ms}";
        let gateway = Gateway::start(&planets.config(&config(&collector, protocol, more)));
        for count in [1.0, 2.0, 3.0] {
            assert_eq!(gateway.send(&post(BOTH)).status, 200);
            let got = collector.wait(|got| {
                let last = got.metrics.last();
                last.is_some_and(|metrics| sum(metrics, SERVED) == Some(count))
            });
            let last = got.metrics.last().unwrap();
            assert_eq!(sum(last, FETCHED), Some(2.0 * count));
            assert_eq!(attribute(&got.resource, "service.name").unwrap(), "counts");
            assert!(sum(last, "process.memory.usage").unwrap() > 1e6);
        }
    }
}

#[test]
fn only_what_is_new_is_pushed_where_that_is_asked_for() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let more = "temporality: delta, batch_processor: {scheduled_delay: 50ms}";
    let gateway = Gateway::start(&planets.config(&config(&collector, "http", more)));
    let pushed = |metrics: &[_]| sum(metrics, SERVED).unwrap_or_default();
    for count in [1.0, 2.0, 3.0] {
        assert_eq!(gateway.send(&post(BOTH)).status, 200);
        let got = collector.wait(|got| {
            let all: f64 = got.metrics.iter().map(|it| pushed(it)).sum();
            all == count
        });
        assert!(got.metrics.iter().all(|it| pushed(it) <= 1.0));
    }
}

#[test]
fn the_last_counts_are_pushed_at_the_end() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let more = "batch_processor: {scheduled_delay: 1h}";
    let gateway = Gateway::start(&planets.config(&config(&collector, "grpc", more)));
    assert_eq!(gateway.send(&post(BOTH)).status, 200);
    assert!(collector.got().metrics.is_empty());
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().0.success());
    let got = collector.got();
    assert_eq!(got.metrics.len(), 1);
    assert_eq!(sum(&got.metrics[0], SERVED), Some(1.0));
}
