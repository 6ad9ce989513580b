//! Tests retries, sizes of responses, and response headers that clients receive from subgraphs.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json};

const NAMES: &str = r#"{"query":"{ locations { name } }"}"#;
const ANSWER: &str = r#"{"data":{"locations":[{"name":"A"}]}}"#;
const ERRORS: &str = "include_subgraph_errors: {all: true}\n";

/// A subgraph that fails `times` times before each success.
fn failing(times: usize, failure: fn() -> Answer) -> Stub {
    let count = AtomicUsize::new(0);
    Stub::start(move |_| {
        let turn = count.fetch_add(1, Ordering::SeqCst);
        if turn % (times + 1) < times {
            failure()
        } else {
            json(ANSWER)
        }
    })
}

fn unavailable() -> Answer {
    Answer::With(503, Some("application/json"), b"{}".to_vec())
}

fn broken() -> Answer {
    Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec())
}

fn retries(more: &str) -> String {
    format!("{ERRORS}traffic_shaping: {{all: {{experimental_retry: {{{more}}}}}}}\n")
}

#[test]
fn a_query_that_failed_is_sent_again_within_the_budget() {
    for failure in [unavailable, broken] {
        let subgraph = failing(2, failure);
        let gateway = Gateway::start(&subgraph.config(&retries("min_per_sec: 10")));
        let answer = gateway.send(&post(NAMES));
        assert_eq!(answer.text(), ANSWER);
        assert_eq!(subgraph.seen().len(), 3);
        let metrics = gateway.ask_health("/metrics");
        let metrics = metrics.text();
        let line = "apollo_router_http_request_retry_total{subgraph_name=\"locations\"} 2";
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[test]
fn a_subgraph_that_always_fails_gets_four_requests_and_then_no_more_than_its_budget() {
    let subgraph = Stub::start(|_| unavailable());
    // The budget is ten retries in ten seconds, and successes add no retries.
    let config = retries("min_per_sec: 1, ttl: 10s, retry_percent: 0");
    let gateway = Gateway::start(&subgraph.config(&config));
    let failed = gateway.send(&post(NAMES));
    assert_eq!(code(&failed), "SUBREQUEST_HTTP_ERROR");
    assert_eq!(subgraph.seen().len(), 4);
    (0..20).for_each(|_| drop(gateway.send(&post(NAMES))));
    // 21 requests and 10 retries. A slow machine may allow one or two more.
    let seen = subgraph.seen().len();
    assert!((31..=35).contains(&seen), "{seen}");
}

#[test]
fn without_the_key_nothing_is_sent_again() {
    let subgraph = Stub::start(|_| unavailable());
    let gateway = Gateway::start(&subgraph.config(ERRORS));
    assert_eq!(code(&gateway.send(&post(NAMES))), "SUBREQUEST_HTTP_ERROR");
    assert_eq!(subgraph.seen().len(), 1);
    let metrics = gateway.ask_health("/metrics");
    assert!(!metrics.text().contains("http_request_retry_total{"));
}

#[test]
fn what_the_client_did_wrong_is_not_sent_again() {
    let subgraph = Stub::start(|_| Answer::With(400, Some("application/json"), b"{}".to_vec()));
    let gateway = Gateway::start(&subgraph.config(&retries("min_per_sec: 10")));
    gateway.send(&post(NAMES));
    assert_eq!(subgraph.seen().len(), 1);
}

#[test]
fn the_time_of_a_request_holds_for_all_its_retries() {
    let subgraph = Stub::start(|_| Answer::Hang);
    let config = format!(
        "{ERRORS}traffic_shaping: {{all: {{timeout: 300ms, experimental_retry: {{min_per_sec: 10}}}}}}\n"
    );
    let gateway = Gateway::start(&subgraph.config(&config));
    assert_eq!(code(&gateway.send(&post(NAMES))), "GATEWAY_TIMEOUT");
    assert_eq!(subgraph.seen().len(), 1);
}

#[test]
fn an_answer_beyond_the_size_for_its_subgraph_is_not_read() {
    let planets = Stub::planets();
    let config = format!(
        "{ERRORS}limits: {{subgraph: {{all: {{http_max_response_size: 10B}}, subgraphs: {{locations: {{http_max_response_size: 1MiB}}}}}}}}\n"
    );
    let gateway = Gateway::start(&planets.config(&config));
    assert_eq!(
        gateway.send(&post(NAMES)).json()["errors"],
        serde_json::Value::Null
    );
    let both = r#"{"query":"{ locations { name overallRating } }"}"#;
    let answer = gateway.send(&post(both));
    assert_eq!(code(&answer), "SUBREQUEST_HTTP_ERROR");
    assert_eq!(answer.json()["data"]["locations"][0]["name"], "A");
    let endless = Stub::start(|_| Answer::Endless);
    let config = "limits: {subgraph: {all: {http_max_response_size: 1MiB}}}\n";
    let gateway = Gateway::start(&endless.config(&format!("{ERRORS}{config}")));
    assert_eq!(code(&gateway.send(&post(NAMES))), "SUBREQUEST_HTTP_ERROR");
}

#[test]
fn an_answer_that_expands_beyond_the_size_for_its_subgraph_is_refused() {
    let name = "A".repeat(100_000);
    let body = format!(r#"{{"data":{{"locations":[{{"name":"{name}"}}]}}}}"#);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.as_bytes()).unwrap();
    let small = gzip.finish().unwrap();
    assert!(small.len() < 1_000);
    let subgraph = Stub::start(move |_| {
        let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
        Answer::Full(200, headers.to_owned(), small.clone())
    });
    let start = |size: &str| {
        let config =
            format!("{ERRORS}limits: {{subgraph: {{all: {{http_max_response_size: {size}}}}}}}\n");
        Gateway::start(&subgraph.config(&config))
    };
    let answer = start("10KiB").send(&post(NAMES));
    assert_eq!(code(&answer), "SUBREQUEST_HTTP_ERROR");
    assert!(answer.text().contains("more than 10240 bytes"));
    let answer = start("1MiB").send(&post(NAMES));
    assert_eq!(answer.json()["data"]["locations"][0]["name"], name);
}

#[test]
fn clients_get_the_headers_that_rules_take_from_answers() {
    let subgraph = Stub::start(|_| {
        let headers = "content-type: application/json\r\nx-cost: 7\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-secret: no\r\n";
        Answer::Full(200, headers.to_owned(), ANSWER.as_bytes().to_vec())
    });
    let rules = "headers: {all: {response: [{propagate: {named: x-cost, rename: x-price}}, {propagate: {named: set-cookie}}, {propagate: {named: x-none, default: nothing}}, {insert: {name: x-by, value: gateway}}]}}\n";
    let gateway = Gateway::start(&subgraph.config(rules));
    let answer = gateway.send(&post(NAMES));
    assert_eq!(answer.text(), ANSWER);
    let get = |name| answer.header(name);
    assert_eq!(get("x-price"), Some("7"));
    assert_eq!(get("x-none"), Some("nothing"));
    assert_eq!(get("x-by"), Some("gateway"));
    assert_eq!((get("x-cost"), get("x-secret")), (None, None));
    let cookies = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "set-cookie");
    assert_eq!(cookies.count(), 2);
    assert_eq!(get("content-type"), Some("application/json"));
    let without = Gateway::start(&subgraph.config(""));
    assert_eq!(without.send(&post(NAMES)).header("x-price"), None);
}

#[test]
fn forbidden_mutations_are_refused_before_any_subgraph_is_asked() {
    let planets = Stub::planets();
    let supergraph = include_str!("../../../services/planets/supergraph.graphql")
        .replace("query: Query", "query: Query mutation: Mutation");
    let supergraph = format!(
        "{supergraph}\ntype Mutation @join__type(graph: LOCATIONS) {{ rename(id: ID!): Location }}\n"
    );
    let start = |more: &str| {
        let setup = Setup::new(&planets.config(more));
        setup.file("supergraph.graphql", &supergraph).start()
    };
    let mutation = r#"{"query":"mutation { rename(id: 1) { name } }"}"#;
    assert_eq!(start("").send(&post(mutation)).status, 200);
    let asked = planets.seen().len();
    assert_eq!(asked, 1);
    let gateway = start("forbid_mutations: true\n");
    let refused = gateway.send(&post(mutation));
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (400, "MUTATION_FORBIDDEN")
    );
    assert_eq!(planets.seen().len(), asked);
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
}
