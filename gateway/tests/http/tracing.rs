//! Tests traces of requests for a collector, and the W3C trace context.

mod context;
mod secrecy;
mod trouble;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;

use crate::client::{Request, Response, post};
use crate::collector::{Collector, attribute, hex};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub};

const BOTH: &str =
    r#"{"query":"query Both { locations { name overallRating } }","operationName":"Both"}"#;
const NAMES: &str = r#"{"query":"{ locations { name } }"}"#;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Sends a query with these additional headers.
fn ask(gateway: &Gateway, body: &str, headers: &[(&str, &str)]) -> Response {
    let usual = post(body);
    let headers = [usual.headers, headers].concat();
    gateway.send(&Request {
        headers: &headers,
        ..usual
    })
}

fn kind(span: &Span) -> SpanKind {
    SpanKind::try_from(span.kind).unwrap()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found = named(spans, name);
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

fn of(span: &Span, name: &str) -> String {
    attribute(&span.attributes, name).unwrap_or_else(|| panic!("no {name} in {span:#?}"))
}

#[test]
fn a_request_is_a_trace_of_its_answer_its_operation_and_its_fetches() {
    for protocol in ["http", "grpc"] {
        let (planets, collector) = (Stub::planets(), Collector::start());
        let gateway = Gateway::start(&planets.config(&collector.config(protocol, "")));
        let headers = [
            ("traceparent", PARENT),
            ("tracestate", "vendor=1"),
            ("user-agent", "test"),
        ];
        assert_eq!(ask(&gateway, BOTH, &headers).status, 200);
        let spans = collector.spans(5);
        assert_eq!(spans.len(), 5, "{spans:#?}");
        assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
        assert!(spans.iter().all(|span| span.trace_state == "vendor=1"));
        assert!(spans.iter().all(|span| span.status.is_none()));

        let server = one(&spans, "POST /");
        assert_eq!(kind(server), SpanKind::Server);
        assert_eq!(hex(&server.parent_span_id), "b7ad6b7169203331");
        // The flags mean that the span is recorded and that its parent belongs to another program.
        assert_eq!(server.flags, 0x301);
        for (name, value) in [
            ("http.request.method", "POST"),
            ("http.route", "/"),
            ("url.path", "/"),
            ("url.scheme", "http"),
            ("network.protocol.version", "1.1"),
            ("http.response.status_code", "200"),
            ("client.address", "127.0.0.1"),
            ("user_agent.original", "test"),
            ("graphql.operation.name", "Both"),
            ("graphql.operation.type", "query"),
        ] {
            assert_eq!(of(server, name), value, "{name}");
        }
        let operation = one(&spans, "query");
        assert_eq!(kind(operation), SpanKind::Internal);
        assert_eq!(operation.parent_span_id, server.span_id);
        assert_eq!(of(operation, "graphql.operation.name"), "Both");
        let planning = one(&spans, "query_planning");
        assert_eq!(planning.parent_span_id, operation.span_id);
        assert!(planning.end_time_unix_nano > planning.start_time_unix_nano);
        assert!(server.start_time_unix_nano <= planning.start_time_unix_nano);
        assert!(server.end_time_unix_nano >= planning.end_time_unix_nano);
        for (subgraph, path) in [("locations", "/l"), ("reviews", "/r")] {
            let fetch = one(&spans, &format!("POST {path}"));
            assert_eq!(kind(fetch), SpanKind::Client);
            assert_eq!(fetch.parent_span_id, operation.span_id);
            assert_eq!(of(fetch, "subgraph.name"), subgraph);
            assert_eq!(of(fetch, "http.response.status_code"), "200");
            assert_eq!(of(fetch, "url.full"), format!("{}{path}", planets.url));
            // The subgraph's work is a child of the fetch.
            let seen = planets.seen();
            let seen = seen.iter().find(|seen| seen.target == path).unwrap();
            let expected = format!("00-{TRACE}-{}-01", hex(&fetch.span_id));
            assert_eq!(seen.header("traceparent"), Some(expected.as_str()));
            assert_eq!(seen.header("tracestate"), Some("vendor=1"));
        }
        // The plan is in the cache, so there is no planning span.
        assert_eq!(ask(&gateway, BOTH, &headers).status, 200);
        let spans = collector.spans(9);
        assert_eq!(named(&spans, "query_planning").len(), 1);
        assert_eq!(named(&spans, "POST /l").len(), 2);
    }
}

#[test]
fn the_configuration_says_who_is_tracing() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let common = "service_name: front, service_namespace: shop, resource: {text: a, number: 1, half: 0.5, yes: true, list: [1, 2]}";
    let gateway = Gateway::start(&planets.config(&collector.config("grpc", common)));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let resource = collector.wait(|got| !got.spans.is_empty()).resource;
    for (name, value) in [
        ("service.name", "front"),
        ("service.namespace", "shop"),
        ("text", "a"),
        ("number", "1"),
        ("half", "0.5"),
        ("yes", "true"),
    ] {
        assert_eq!(attribute(&resource, name).as_deref(), Some(value), "{name}");
    }
    assert!(
        attribute(&resource, "list")
            .unwrap()
            .contains("IntValue(2)")
    );
}

#[test]
fn the_environment_names_the_service_and_the_collector() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let config = "telemetry: {exporters: {tracing: {common: {service_name: front, resource: {a: config}}, otlp: {enabled: true, protocol: http, batch_processor: {scheduled_delay: 50ms}, http: {headers: {x-key: secret}}}}}}";
    let gateway = Setup::new(&planets.config(config))
        .variable("OTEL_SERVICE_NAME", "named")
        .variable("OTEL_RESOURCE_ATTRIBUTES", "a=environment,b=2")
        .variable(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            &format!("http://{}", collector.address),
        )
        .start();
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let got = collector.wait(|got| !got.spans.is_empty());
    let of = |name| attribute(&got.resource, name).unwrap();
    assert_eq!(of("service.name"), "named");
    assert_eq!(of("a"), "environment");
    assert_eq!(of("b"), "2");
    assert_eq!(of("service.instance.id").len(), 32);
    let (path, headers) = &got.heads[0];
    assert_eq!(path, "/v1/traces");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-key"], "secret");
}

#[test]
fn stages_have_spans_and_a_coprocessor_continues_the_trace() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let coprocessor = Stub::coprocessor(|_| ());
    let script = "fn supergraph_service(service) { service.map_request(|request| {}); }\n\
        fn subgraph_service(service, subgraph) { service.map_response(|response| {}); }";
    let url = &coprocessor.url;
    let more = format!(
        "{}rhai: {{scripts: rhai}}\ncoprocessor: {{url: '{url}/co', router: {{request: {{headers: true}}}}, subgraph: {{all: {{response: {{headers: true}}}}}}}}",
        collector.config("http", "")
    );
    let gateway = Setup::new(&planets.config(&more))
        .file("rhai/main.rhai", script)
        .start();
    assert_eq!(ask(&gateway, NAMES, &[("traceparent", PARENT)]).status, 200);
    let spans = collector.spans(8);
    let server = one(&spans, "POST /");
    let calls = named(&spans, "POST /co");
    let stages: Vec<String> = calls.iter().map(|it| of(it, "coprocessor.stage")).collect();
    assert_eq!(stages.len(), 2, "{spans:#?}");
    assert!(
        stages.contains(&"SubgraphResponse".to_owned()),
        "{stages:?}"
    );
    let router = calls
        .iter()
        .find(|it| of(it, "coprocessor.stage") == "RouterRequest");
    let router = router.unwrap();
    assert_eq!(router.parent_span_id, server.span_id);
    let expected = format!("00-{TRACE}-{}-01", hex(&router.span_id));
    let seen = coprocessor.seen();
    assert_eq!(seen[0].header("traceparent"), Some(expected.as_str()));
    let scripts = named(&spans, "rhai_plugin");
    let mut services: Vec<String> = scripts.iter().map(|it| of(it, "rhai.service")).collect();
    services.sort();
    assert_eq!(services, ["SubgraphResponse", "SupergraphRequest"]);
}

#[test]
fn what_fails_says_so_in_its_span() {
    let broken = Stub::start(|seen| match seen.target.as_str() {
        "/l" => Answer::With(500, Some("text/plain"), b"no".to_vec()),
        _ => Answer::Raw(b"what".to_vec()),
    });
    let collector = Collector::start();
    let gateway = Gateway::start(&broken.config(&collector.config("http", "")));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let spans = collector.spans(4);
    let fetch = one(&spans, "POST /l");
    assert_eq!(of(fetch, "error.type"), "500");
    assert_eq!(fetch.status.as_ref().unwrap().code, 2);
    let operation = one(&spans, "query");
    assert_eq!(
        operation.status.as_ref().unwrap().message,
        "1 errors in the response"
    );
    // The HTTP response itself is a success.
    assert_eq!(one(&spans, "POST /").status, None);

    let invalid = json!({"query": "{ nothing }"}).to_string();
    assert_eq!(gateway.send(&post(&invalid)).status, 400);
    let spans = collector.spans(7);
    assert_eq!(named(&spans, "query_planning").len(), 2);
    assert!(
        named(&spans, "query_planning")
            .iter()
            .any(|it| it.status.is_some())
    );
    let operation = one(&spans, "GraphQL Operation");
    assert_eq!(operation.status.as_ref().unwrap().message, "refused");
}

#[test]
fn each_operation_of_a_list_has_its_span() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let more = format!(
        "{}batching: {{enabled: true, mode: batch_http_link}}",
        collector.config("grpc", "")
    );
    let gateway = Gateway::start(&planets.config(&more));
    let list = format!("[{NAMES},{NAMES},{NAMES}]");
    assert_eq!(gateway.send(&post(&list)).status, 200);
    let got = collector.wait(|got| named(&got.spans, "POST /").len() == 1);
    let server = one(&got.spans, "POST /");
    let operations = named(&got.spans, "query");
    assert_eq!(operations.len(), 3);
    for operation in operations {
        assert_eq!(operation.parent_span_id, server.span_id);
    }
}

#[test]
fn a_span_holds_no_more_attributes_than_are_allowed() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let common = "max_attributes_per_span: 3";
    let gateway = Gateway::start(&planets.config(&collector.config("http", common)));
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
    let spans = collector.spans(4);
    let server = one(&spans, "POST /");
    assert_eq!(server.attributes.len(), 3);
    assert!(server.dropped_attributes_count > 3);
}
