//! Tests collectors that are absent, slow or wrong. Requests never wait for them, memory is limited, and a
//! stop takes limited time.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use test_client::now;

use super::{NAMES, named};
use crate::client::post;
use crate::collector::{Collector, Manner};
use crate::gateway::Gateway;
use crate::stub::Stub;

/// A configuration that sends traces to this address. At most 20 spans may wait.
fn config(address: &str, protocol: &str) -> String {
    format!(
        "telemetry: {{exporters: {{tracing: {{otlp: {{enabled: true, endpoint: 'http://{address}', protocol: {protocol}, batch_processor: {{scheduled_delay: 50ms, max_queue_size: 20, max_export_batch_size: 10, max_export_timeout: 1s}}}}}}}}}}\n"
    )
}

/// Sends many requests. Each must be fast.
fn ask_often(gateway: &Gateway) {
    let mut connection = gateway.connect();
    for _ in 0..60 {
        let start = now();
        assert_eq!(connection.send(&post(NAMES)).status, 200);
        let took = start.elapsed();
        assert!(took < Duration::from_millis(500), "{took:?}");
    }
}

fn lost(gateway: &Gateway, error: &str) -> f64 {
    let metrics = gateway.ask_health("/metrics");
    let start = format!(
        "apollo_router_telemetry_batch_processor_errors_total{{name=\"otlp-tracing\",error=\"{error}\"}} "
    );
    let lines = metrics.text().lines();
    let found = lines.filter_map(|line| line.strip_prefix(start.as_str()));
    found.map(|value| value.parse::<f64>().unwrap()).sum()
}

/// Stops the gateway. This must not take longer than the flush timeout.
fn end(gateway: Gateway) -> String {
    let start = now();
    gateway.signal(Signal::TERM);
    let (status, log) = gateway.wait();
    let took = start.elapsed();
    assert!(status.success(), "{log}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    log
}

#[test]
fn a_collector_that_is_gone_costs_no_request_anything() {
    // An address without a listener.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let planets = Stub::planets();
    for protocol in ["http", "grpc"] {
        let gateway = Gateway::start(&planets.config(&config(&address, protocol)));
        ask_often(&gateway);
        // Sixty requests with three spans each. Twenty spans wait and ten are in transit.
        assert!(lost(&gateway, "channel full") >= 100.0);
        let log = end(gateway);
        let told = log.matches("the collector does not take traces").count();
        assert_eq!(told, 1, "{log}");
        assert_eq!(log.matches("spans are dropped").count(), 1, "{log}");
    }
}

#[test]
fn a_collector_that_never_answers_costs_no_request_anything() {
    let (planets, collector) = (Stub::planets(), Collector::with(Manner::Silent));
    for protocol in ["http", "grpc"] {
        let address = &collector.address;
        let gateway = Gateway::start(&planets.config(&config(address, protocol)));
        ask_often(&gateway);
        assert!(lost(&gateway, "channel full") >= 100.0);
        let log = end(gateway);
        assert!(log.contains("does not take traces"), "{log}");
    }
}

#[test]
fn rubbish_for_an_answer_is_borne() {
    let planets = Stub::planets();
    for (protocol, manner, is_taken) in [
        ("http", Manner::Rubbish(200), true),
        ("http", Manner::Rubbish(400), false),
        ("http", Manner::Rubbish(503), false),
        // Without `grpc-status`.
        ("grpc", Manner::Rubbish(200), false),
        ("grpc", Manner::Grpc("14"), false),
        ("grpc", Manner::Grpc("16"), false),
        ("grpc", Manner::Grpc("much"), false),
    ] {
        let collector = Collector::with(manner);
        let config = config(&collector.address, protocol);
        let gateway = Gateway::start(&planets.config(&config));
        ask_often(&gateway);
        let log = end(gateway);
        let is_told = log.contains("does not take traces");
        assert_eq!(is_told, !is_taken, "{protocol} {manner:?}: {log}");
    }
    // A server that does not speak HTTP.
    let other = Stub::start(|_| crate::stub::Answer::Raw(b"SSH-2.0-OpenSSH\r\n".to_vec()));
    let address = other.url.trim_start_matches("http://");
    let gateway = Gateway::start(&planets.config(&config(address, "grpc")));
    ask_often(&gateway);
    assert!(end(gateway).contains("does not take traces"));
}

#[test]
fn a_collector_that_comes_back_gets_what_waits() {
    let (planets, collector) = (Stub::planets(), Collector::with(Manner::Rubbish(503)));
    let config = collector.config("http", "");
    let mut gateway = Gateway::start(&planets.config(&config));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let _ = gateway.wait_for("does not take traces");
    collector.set(Manner::Good);
    let spans = collector.spans(4);
    assert_eq!(named(&spans, "POST /").len(), 1);
    let _ = gateway.wait_for("takes traces again");
}

#[test]
fn what_waits_is_sent_at_the_end() {
    for protocol in ["http", "grpc"] {
        let (planets, collector) = (Stub::planets(), Collector::start());
        let config = collector
            .config(protocol, "")
            .replace("scheduled_delay: 50ms", "scheduled_delay: 1h");
        let gateway = Gateway::start(&planets.config(&config));
        for _ in 0..3 {
            assert_eq!(gateway.send(&post(NAMES)).status, 200);
        }
        assert_eq!(collector.got().spans.len(), 0);
        end(gateway);
        assert_eq!(named(&collector.got().spans, "POST /").len(), 3);
    }
}

#[test]
fn another_configuration_sends_to_another_collector_and_loses_nothing() {
    let planets = Stub::planets();
    let (first, second) = (Collector::start(), Collector::start());
    let late = |collector: &Collector| {
        let config = collector.config("http", "");
        let config = config.replace("scheduled_delay: 50ms", "scheduled_delay: 1h");
        planets.config(&config)
    };
    let mut gateway = Gateway::start(&late(&first));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    std::fs::write(gateway.path("router.yaml"), late(&second)).unwrap();
    gateway.signal(Signal::HUP);
    let _ = gateway.wait_for("reloaded");
    // The old generation has ended, so its spans are sent.
    assert_eq!(named(&first.spans(4), "POST /").len(), 1);
    // A new connection, because the worker receives the new generation before it accepts.
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    end(gateway);
    assert_eq!(named(&second.got().spans, "POST /").len(), 1);
}
