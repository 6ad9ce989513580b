//! Tests the choice of traced requests, and the trace headers for subgraphs.

use rustix::process::Signal;

use super::{BOTH, NAMES, PARENT, TRACE, ask, named};
use crate::client::post;
use crate::collector::{Collector, hex};
use crate::gateway::{Gateway, Setup};
use crate::stub::Stub;

const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Number of traced requests in the collector after the gateway has stopped.
fn traced(common: &str, parent: Option<&str>, count: usize) -> usize {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let gateway = Gateway::start(&planets.config(&collector.config("http", common)));
    let headers = parent.map(|parent| ("traceparent", parent));
    let headers: Vec<(&str, &str)> = headers.into_iter().collect();
    let mut connection = gateway.connect();
    let usual = post(NAMES);
    let headers = [usual.headers, &headers].concat();
    let request = crate::client::Request {
        headers: &headers,
        ..usual
    };
    for _ in 0..count {
        assert_eq!(connection.send(&request).status, 200);
    }
    drop(connection);
    // The gateway sends all spans before it stops.
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().0.success());
    named(&collector.got().spans, "POST /").len()
}

#[test]
fn a_share_of_the_requests_is_traced() {
    assert_eq!(traced("sampler: always_off", None, 20), 0);
    assert_eq!(traced("sampler: 0", None, 20), 0);
    assert_eq!(traced("sampler: always_on", None, 20), 20);
    // Half of 300, plus or minus six standard deviations.
    let half = traced("sampler: 0.5", None, 300);
    assert!((98..=202).contains(&half), "{half}");
}

#[test]
fn a_client_decides_unless_it_may_not() {
    assert_eq!(traced("sampler: 0", Some(PARENT), 5), 5);
    assert_eq!(traced("sampler: 1", Some(UNSAMPLED), 5), 0);
    let own = "parent_based_sampler: false, sampler";
    assert_eq!(traced(&format!("{own}: 0"), Some(PARENT), 5), 0);
    assert_eq!(traced(&format!("{own}: 1"), Some(UNSAMPLED), 5), 5);
}

#[test]
fn a_trace_that_is_not_recorded_goes_on_as_such() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let more = collector.config("http", "sampler: 0");
    let gateway = Gateway::start(&planets.config(&more));
    assert_eq!(
        ask(&gateway, NAMES, &[("traceparent", UNSAMPLED)]).status,
        200
    );
    let seen = planets.only();
    let told = seen.header("traceparent").unwrap();
    assert!(told.starts_with(&format!("00-{TRACE}-")), "{told}");
    assert!(told.ends_with("-00"), "{told}");
}

#[test]
fn what_is_not_a_trace_context_begins_a_new_trace() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    // A rule that propagates all headers does not restore it.
    let rule = "headers: {all: {request: [{propagate: {matching: '.*'}}]}}\n";
    let more = format!("{}{rule}", collector.config("http", ""));
    let gateway = Gateway::start(&planets.config(&more));
    let long = format!("{PARENT}{}", "0".repeat(4000));
    let hostile = [
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "' OR 1=1 --",
        &long,
    ];
    for parent in hostile {
        let state = "x".repeat(3000);
        let headers = [("traceparent", parent), ("tracestate", &state)];
        assert_eq!(ask(&gateway, NAMES, &headers).status, 200);
    }
    let twice = [("traceparent", PARENT), ("traceparent", PARENT)];
    assert_eq!(ask(&gateway, NAMES, &twice).status, 200);
    let got = collector.wait(|got| named(&got.spans, "POST /").len() == 6);
    for server in named(&got.spans, "POST /") {
        assert_ne!(hex(&server.trace_id), TRACE);
        assert!(server.parent_span_id.is_empty());
        assert_eq!(server.trace_state, "");
    }
    for seen in planets.seen() {
        let told: Vec<&str> = seen
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("trace"))
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(told.len(), 1, "{seen:?}");
        assert_eq!(told[0].len(), 55);
        assert!(!told[0].contains(TRACE));
    }
}

#[test]
fn without_telemetry_nothing_is_added() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    assert_eq!(ask(&gateway, BOTH, &[("traceparent", PARENT)]).status, 200);
    let seen = planets.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| seen.header("traceparent").is_none()));
}

#[test]
fn a_trace_goes_on_in_each_configured_format() {
    let planets = Stub::planets();
    let more = "telemetry: {exporters: {tracing: {propagation: {zipkin: true, jaeger: true, datadog: true, aws_xray: true, baggage: true, request: {header_name: x-request-id, format: uuid}}}}}";
    let gateway = Gateway::start(&planets.config(more));
    let headers = [
        ("x-b3-traceid", "0af7651916cd43dd8448eb211c80319c"),
        ("x-b3-spanid", "b7ad6b7169203331"),
        ("x-b3-sampled", "1"),
        ("baggage", "user=1"),
    ];
    assert_eq!(ask(&gateway, NAMES, &headers).status, 200);
    let seen = planets.only();
    for (name, text) in [
        ("x-b3-traceid", "0af7651916cd43dd8448eb211c80319c"),
        ("x-b3-spanid", "b7ad6b7169203331"),
        ("x-b3-sampled", "1"),
        (
            "uber-trace-id",
            "0af7651916cd43dd8448eb211c80319c:b7ad6b7169203331:0:1",
        ),
        ("x-datadog-trace-id", "9532127138774266268"),
        ("x-datadog-parent-id", "13235353014750950193"),
        ("x-datadog-sampling-priority", "1"),
        ("x-datadog-tags", "_dd.p.tid=0af7651916cd43dd"),
        (
            "x-amzn-trace-id",
            "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1",
        ),
        ("x-request-id", "0af76519-16cd-43dd-8448-eb211c80319c"),
        ("baggage", "user=1"),
    ] {
        assert_eq!(seen.header(name), Some(text), "{name}");
    }
    assert_eq!(seen.header("traceparent"), None);
    // The id of the trace may come alone.
    let headers = [("x-request-id", "11111111-2222-3333-4444-555555555555")];
    assert_eq!(ask(&gateway, NAMES, &headers).status, 200);
    let seen = planets.seen();
    let trace = seen[1].header("x-b3-traceid");
    assert_eq!(trace, Some("11111111222233334444555555555555"));
    assert_eq!(seen[1].header("x-b3-sampled"), Some("0"));
}

#[test]
fn a_trace_can_go_on_without_a_collector() {
    let planets = Stub::planets();
    let more = "telemetry: {exporters: {tracing: {propagation: {trace_context: true}}}}";
    let gateway = Gateway::start(&planets.config(more));
    let headers = [("traceparent", PARENT), ("tracestate", "a=1")];
    assert_eq!(ask(&gateway, NAMES, &headers).status, 200);
    let seen = planets.only();
    // The gateway adds no span of its own.
    assert_eq!(seen.header("traceparent"), Some(PARENT));
    assert_eq!(seen.header("tracestate"), Some("a=1"));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    assert_eq!(planets.seen()[1].header("traceparent"), None);
}

#[test]
fn equal_queries_of_two_traces_are_still_one_question_to_the_cache() {
    let body = r#"{"data":{"locations":[{"name":"A"}]}}"#;
    let subgraph = Stub::start(move |_| {
        let headers = "content-type: application/json\r\ncache-control: max-age=60\r\n";
        crate::stub::Answer::Full(200, headers.to_owned(), body.into())
    });
    let collector = Collector::start();
    let more = format!(
        "{}response_cache: {{enabled: true, subgraph: {{all: {{ttl: 60s}}}}}}\nheaders: {{all: {{request: [{{propagate: {{matching: 'trace.*'}}}}]}}}}\n",
        collector.config("http", "")
    );
    let gateway = Gateway::start(&subgraph.config(&more));
    for trace in ["1", "2"] {
        let parent = PARENT.replace("0af", &format!("{trace}af"));
        assert_eq!(
            ask(&gateway, NAMES, &[("traceparent", &parent)]).status,
            200
        );
    }
    assert_eq!(subgraph.seen().len(), 1);
}

#[test]
fn a_client_is_told_the_id_of_its_trace_where_that_is_on() {
    let planets = Stub::planets();
    let told = |format: &str| {
        let more = format!(
            "telemetry: {{exporters: {{tracing: {{propagation: {{trace_context: true}}, experimental_response_trace_id: {{enabled: true, {format}}}}}}}}}"
        );
        let gateway = Setup::new(&planets.config(&more)).start();
        let answer = ask(&gateway, NAMES, &[("traceparent", PARENT)]);
        let name = if format.contains("header_name") {
            "x-trace"
        } else {
            "apollo-trace-id"
        };
        answer.header(name).unwrap().to_owned()
    };
    assert_eq!(told(""), TRACE);
    assert_eq!(
        told("header_name: x-trace, format: uuid"),
        "0af76519-16cd-43dd-8448-eb211c80319c"
    );
}
