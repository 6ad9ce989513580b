//! Tests queries that go back and forth between two types, so that each level multiplies the response by ten.

use serde_json::{Value, json};

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Seen, Stub, json as json_answer};

const SUPERGRAPH: &str = include_str!("../../federation/tests/bounds.graphql");
/// A response of 11 TB. No machine writes it within the time limits below.
const QUERY: &str = r#"{"query":"{as{bs{as{bs{as{bs{as{bs{as{bs{as{bs{id}}}}}}}}}}}}}"}"#;

fn stubs(kind: &str) -> Value {
    let stubs = (0..10).map(|id| json!({"__typename": kind, "id": id.to_string()}));
    stubs.collect()
}

/// Both subgraphs, each with ten entities that refer to all entities of the other.
fn answer(seen: &Seen) -> Answer {
    let body = seen.json();
    let entity = if seen.target == "/a" {
        json!({"bs": stubs("B")})
    } else {
        json!({"as": stubs("A")})
    };
    let Some(asked) = body["variables"]["representations"].as_array() else {
        let root = json!({"__typename": "A", "id": "0", "bs": stubs("B")});
        return json_answer(json!({"data": {"as": vec![root; 10]}}));
    };
    json_answer(json!({"data": {"_entities": vec![entity; asked.len()]}}))
}

fn start(stub: &Stub, config: &str) -> Gateway {
    let urls = format!(
        "override_subgraph_url: {{a: \"{0}/a\", b: \"{0}/b\"}}\n{config}",
        stub.url
    );
    let setup = Setup::new(&urls).file("supergraph.graphql", SUPERGRAPH);
    setup.start()
}

#[test]
fn a_response_beyond_the_limit_is_an_error_that_is_counted() {
    let stub = Stub::start(answer);
    let mut gateway = start(&stub, "limits: {response_max_bytes: 1MiB}");
    let response = gateway.send(&post(QUERY));
    assert_eq!(response.status, 200);
    assert_eq!(code(&response), "RESPONSE_TOO_LARGE");
    assert_eq!(response.json()["data"], Value::Null);
    gateway.wait_for("a response beyond the limits");
    let metrics = gateway.ask_health("/metrics");
    assert!(
        metrics
            .text()
            .contains("graphql_responses_beyond_limits_total 1"),
        "{}",
        metrics.text()
    );
}

#[test]
fn a_response_that_takes_too_long_to_write_is_timed_out() {
    let stub = Stub::start(answer);
    let config = "limits: {response_max_bytes: 1000000GB}\n\
        traffic_shaping: {router: {timeout: 300ms}}";
    let gateway = start(&stub, config);
    let response = gateway.send(&post(QUERY));
    assert_eq!(response.status, 504, "{}", response.body.len());
    assert_eq!(code(&response), "GATEWAY_TIMEOUT");
}

#[test]
fn health_is_told_while_a_large_response_is_written() {
    let stub = Stub::start(answer);
    // One worker, and a response that it writes until its time is over.
    let config = "limits: {response_max_bytes: 1000000GB}\n\
        traffic_shaping: {router: {timeout: 500ms}}";
    let gateway = start(&stub, config);
    let mut connection = gateway.connect();
    connection.write(
        format!(
            "POST / HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{QUERY}",
            QUERY.len()
        )
        .as_bytes(),
    );
    // A worker that wrote it without a pause would not respond to any other request. Writing 11 TB takes
    // hours.
    loop {
        assert_eq!(gateway.ask_health("/health").status, 200);
        if gateway
            .ask_health("/metrics")
            .text()
            .contains("status_code=\"504\"")
        {
            break;
        }
    }
    assert_eq!(connection.read(false).status, 504);
}
