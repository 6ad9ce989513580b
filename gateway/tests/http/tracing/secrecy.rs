//! Tests that spans contain no secrets and no values of clients, and only the beginning of long texts.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::{kind, named, of, one};
use crate::client::{Request, post};
use crate::collector::Collector;
use crate::gateway::{Gateway, Setup};
use crate::stub::{self, Stub};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

/// All texts in a span.
fn texts(span: &Span) -> Vec<String> {
    let status = span.status.iter().map(|it| it.message.clone());
    let values =
        span.attributes
            .iter()
            .filter_map(|it| match it.value.as_ref()?.value.as_ref()? {
                Value::StringValue(text) => Some(text.clone()),
                _ => None,
            });
    status.chain(values).chain([span.name.clone()]).collect()
}

#[test]
fn secrets_and_variables_are_in_no_span() {
    let body = r#"{"data":{"location":{"__typename":"Location","id":"1","name":"A"}}}"#;
    let (subgraph, collector) = (Stub::start(move |_| stub::json(body)), Collector::start());
    // A subgraph that requires a key in its URL, and receives the client's key.
    let config = format!(
        "{}override_subgraph_url: {{locations: '{}/l?key=hidden'}}\nheaders: {{all: {{request: [{{propagate: {{named: authorization}}}}]}}}}\n",
        collector.config("http", ""),
        subgraph.url
    );
    let gateway = Gateway::start(&config);
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer hidden"),
        ("cookie", "session=hidden"),
        ("x-api-key", "hidden"),
    ];
    let body = r##"{"query":"query Q($id: ID!) { location(id: $id) { name } } # hidden","variables":{"id":"hidden"}}"##;
    let asked = Request {
        headers: &headers,
        target: "/?key=hidden",
        ..post(body)
    };
    assert_eq!(gateway.send(&asked).status, 200);
    let seen = subgraph.only();
    assert_eq!(seen.target, "/l?key=hidden");
    assert_eq!(seen.header("authorization"), Some("Bearer hidden"));
    let spans = collector.spans(4);
    for text in spans.iter().flat_map(texts) {
        assert!(!text.contains("hidden"), "{text} in {spans:#?}");
    }
}

#[test]
fn clients_decide_neither_the_names_of_spans_nor_their_size() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let gateway = Gateway::start(&planets.config(&collector.config("http", "")));
    let long = "x".repeat(4000);
    let name = format!("Q{long}");
    let body = format!(r#"{{"query":"query {name} {{ locations {{ name }} }}"}}"#);
    let headers = [("content-type", "application/json"), ("user-agent", &long)];
    let asked = Request {
        headers: &headers,
        ..post(&body)
    };
    assert_eq!(gateway.send(&asked).status, 200);
    let strange = Request {
        method: "STRANGE",
        ..post(&body)
    };
    assert_eq!(gateway.send(&strange).status, 405);
    let spans = collector
        .wait(|got| named(&got.spans, "HTTP /").len() == 1)
        .spans;
    assert_eq!(of(one(&spans, "HTTP /"), "http.request.method"), "_OTHER");
    assert_eq!(of(one(&spans, "POST /"), "user_agent.original").len(), 1024);
    for text in spans.iter().flat_map(texts) {
        assert!(text.len() <= 1024, "{}", text.len());
    }
}

#[test]
fn a_handler_whose_address_a_template_makes_has_one_name() {
    let (handler, collector) = (Stub::start(|_| stub::json(r#""1""#)), Collector::start());
    let url = &handler.url;
    let action = format!(
        "actions:\n  - {{name: a, type: query, arguments: [{{name: id, type: ID!}}], output_type: ID!, handler: '{url}/base', request_transform: {{version: 2, url: '{{{{$base_url}}}}/{{{{$body.input.id}}}}?key=hidden'}}}}\n"
    );
    let gateway = Setup::merged(&format!("{}{action}", collector.config("http", ""))).start();
    for id in ["one", "two"] {
        let answer = gateway.ask(&format!(r#"{{ a(id: "{id}") }}"#));
        assert_eq!(answer, r#"{"data":{"a":"1"}}"#);
    }
    let got = collector.wait(|got| named(&got.spans, "POST /base").len() == 2);
    let calls = named(&got.spans, "POST /base");
    assert!(calls.iter().all(|it| kind(it) == SpanKind::Client));
    let whole: Vec<String> = calls.iter().map(|it| of(it, "url.full")).collect();
    assert_eq!(
        whole,
        [format!("{url}/base/one"), format!("{url}/base/two")]
    );
}
