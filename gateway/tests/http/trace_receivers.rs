//! Tests traces for Zipkin and for Datadog's agent.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Map, Value};
use test_client::now;

use crate::client::{Request, post};
use crate::collector::Collector;
use crate::gateway::Gateway;
use crate::stub::Stub;

const BOTH: &str =
    r#"{"query":"query Both { locations { name overallRating } }","operationName":"Both"}"#;
const TRACE: &str = "463ac35c9f6413ad48485a3953bb6124";

/// A configuration that sends traces to this address in this format.
fn config(receiver: &str, address: &str) -> String {
    format!(
        "telemetry: {{exporters: {{tracing: {{common: {{service_name: front, resource: {{deployment.environment.name: test}}}}, {receiver}: {{enabled: true, endpoint: 'http://{address}', batch_processor: {{scheduled_delay: 50ms, max_queue_size: 20, max_export_timeout: 1s}}}}}}}}}}\n"
    )
}

fn ask(gateway: &Gateway, headers: &[(&str, &str)]) {
    let usual = post(BOTH);
    let headers = [usual.headers, headers].concat();
    let request = Request {
        headers: &headers,
        ..usual
    };
    assert_eq!(gateway.send(&request).status, 200);
}

/// The spans of all messages, once there are `count`.
fn spans(collector: &Collector, count: usize, read: impl Fn(&[u8]) -> Vec<Value>) -> Vec<Value> {
    let all = |got: &crate::collector::Got| -> Vec<Value> {
        got.others.iter().flat_map(|it| read(it)).collect()
    };
    all(&collector.wait(|got| all(got).len() >= count))
}

fn one(spans: &[Value], is_it: impl Fn(&Value) -> bool) -> &Value {
    let found: Vec<&Value> = spans.iter().filter(|span| is_it(span)).collect();
    assert_eq!(found.len(), 1, "{spans:#?}");
    found[0]
}

#[test]
fn zipkin_gets_spans_as_json_and_continues_the_trace_of_the_client() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let gateway = Gateway::start(&planets.config(&config("zipkin", &collector.address)));
    let headers = [
        ("x-b3-traceid", TRACE),
        ("x-b3-spanid", "a2fb4a1d1a96d312"),
        ("x-b3-sampled", "1"),
    ];
    ask(&gateway, &headers);
    let read = |message: &[u8]| -> Vec<Value> { serde_json::from_slice(message).unwrap() };
    let spans = spans(&collector, 5, read);
    assert_eq!(spans.len(), 5, "{spans:#?}");
    for span in &spans {
        assert_eq!(span["traceId"], TRACE);
        assert_eq!(span["localEndpoint"]["serviceName"], "front");
        assert_eq!(span["id"].as_str().unwrap().len(), 16);
        assert!(span["duration"].as_u64().unwrap() >= 1);
        // In microseconds: after 2020, and before the year 2100.
        let start = span["timestamp"].as_u64().unwrap();
        assert!((1_577_836_800_000_000..4_102_444_800_000_000).contains(&start));
    }
    let server = one(&spans, |it| it["kind"] == "SERVER");
    assert_eq!(server["name"], "POST /");
    assert_eq!(server["parentId"], "a2fb4a1d1a96d312");
    assert_eq!(server["tags"]["http.response.status_code"], "200");
    assert_eq!(server["tags"]["graphql.operation.name"], "Both");
    let operation = one(&spans, |it| it["name"] == "query");
    assert_eq!(operation["parentId"], server["id"]);
    assert!(operation.get("kind").is_none());
    let fetch = one(&spans, |it| it["tags"]["subgraph.name"] == "reviews");
    assert_eq!(fetch["kind"], "CLIENT");
    assert_eq!(fetch["parentId"], operation["id"]);
    assert_eq!(fetch["remoteEndpoint"]["serviceName"], "reviews");
    assert!(fetch["duration"].as_u64() <= server["duration"].as_u64());
    // The subgraphs receive the trace in the format of Zipkin.
    let seen = planets.seen();
    let seen = seen.iter().find(|seen| seen.target == "/r").unwrap();
    assert_eq!(seen.header("x-b3-traceid"), Some(TRACE));
    assert_eq!(seen.header("x-b3-spanid"), fetch["id"].as_str());
    let got = collector.got();
    let (path, headers) = &got.heads[0];
    assert_eq!(path, "/api/v2/spans");
    assert_eq!(headers["content-type"], "application/json");
    // The gateway counts spans after the response of Zipkin.
    let start = now();
    let exported = "gateway_telemetry_spans_exported_total 5";
    while !gateway.ask_health("/metrics").text().contains(exported) {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_zipkin_that_is_gone_costs_no_request_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let planets = Stub::planets();
    for receiver in ["zipkin", "datadog"] {
        let gateway = Gateway::start(&planets.config(&config(receiver, &address)));
        for _ in 0..40 {
            let start = now();
            ask(&gateway, &[]);
            assert!(start.elapsed() < Duration::from_millis(500));
        }
        let metrics = gateway.ask_health("/metrics");
        let lost = format!("{{name=\"{receiver}-tracing\",error=\"channel full\"}}");
        assert!(metrics.text().contains(&lost), "{}", metrics.text());
        let start = now();
        gateway.signal(Signal::TERM);
        let (status, log) = gateway.wait();
        assert!(status.success(), "{log}");
        assert!(start.elapsed() < Duration::from_secs(8));
        let told = log.matches("the collector does not take traces").count();
        assert_eq!(told, 1, "{log}");
    }
}

#[test]
fn the_agent_of_datadog_gets_spans_as_message_pack() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let gateway = Gateway::start(&planets.config(&config("datadog", &collector.address)));
    let headers = [
        ("x-datadog-trace-id", "5208512171318403364"),
        ("x-datadog-parent-id", "77"),
        ("x-datadog-sampling-priority", "1"),
    ];
    ask(&gateway, &headers);
    let read = |message: &[u8]| -> Vec<Value> {
        let mut rest = message;
        let traces = value(&mut rest);
        assert!(rest.is_empty());
        let traces = traces.as_array().unwrap().iter();
        traces
            .flat_map(|trace| trace.as_array().unwrap().clone())
            .collect()
    };
    let spans = spans(&collector, 5, read);
    assert_eq!(spans.len(), 5, "{spans:#?}");
    for span in &spans {
        assert_eq!(span["trace_id"], 5_208_512_171_318_403_364_u64);
        assert_eq!(span["service"], "front");
        assert_eq!(span["meta"]["env"], "test");
        assert_eq!(span["metrics"]["_sampling_priority_v1"], 1.0);
        assert!(span["duration"].as_u64().unwrap() > 0);
        assert_eq!(span["error"], 0);
    }
    let server = one(&spans, |it| it["name"] == "http.server.request");
    assert_eq!(server["resource"], "POST /");
    assert_eq!(server["type"], "web");
    assert_eq!(server["parent_id"], 77);
    assert_eq!(server["meta"]["http.status_code"], "200");
    let fetch = one(&spans, |it| it["meta"]["subgraph.name"] == "reviews");
    assert_eq!(fetch["name"], "http.client.request");
    let operation = one(&spans, |it| it["resource"] == "query");
    assert_eq!(fetch["parent_id"], operation["span_id"]);
    assert_eq!(operation["parent_id"], server["span_id"]);
    let got = collector.got();
    let (path, headers) = &got.heads[0];
    assert_eq!(path, "/v0.4/traces");
    assert_eq!(headers["content-type"], "application/msgpack");
    assert_eq!(headers["x-datadog-trace-count"], "1");
}

/// Takes bytes from the beginning.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn number(bytes: &mut &[u8], count: usize) -> u64 {
    let taken = take(bytes, count).iter();
    taken.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Reads one value of MessagePack, of the kinds that the gateway writes.
fn value(bytes: &mut &[u8]) -> Value {
    let head = take(bytes, 1)[0];
    let length = |bytes: &mut &[u8], count| usize::try_from(number(bytes, count)).unwrap();
    match head {
        0..=0x7f => head.into(),
        0x80..=0x8f => map(bytes, usize::from(head & 15)),
        0xde => {
            let members = length(bytes, 2);
            map(bytes, members)
        }
        0x90..=0x9f => (0..head & 15).map(|_| value(bytes)).collect(),
        0xdc => (0..length(bytes, 2)).map(|_| value(bytes)).collect(),
        0xa0..=0xbf => text(bytes, usize::from(head & 31)),
        0xd9 => {
            let count = length(bytes, 1);
            text(bytes, count)
        }
        0xda => {
            let count = length(bytes, 2);
            text(bytes, count)
        }
        0xcb => f64::from_bits(number(bytes, 8)).into(),
        0xcc..=0xcf => number(bytes, 1 << (head - 0xcc)).into(),
        0xd3 => number(bytes, 8).into(),
        other => panic!("{other:#x}"),
    }
}

fn map(bytes: &mut &[u8], members: usize) -> Value {
    let members = (0..members).map(|_| {
        let name = value(bytes);
        (name.as_str().unwrap().to_owned(), value(bytes))
    });
    members.collect::<Map<String, Value>>().into()
}

fn text(bytes: &mut &[u8], count: usize) -> Value {
    String::from_utf8(take(bytes, count).to_vec())
        .unwrap()
        .into()
}
