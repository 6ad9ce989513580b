//! Tests malformed and slow clients, and malformed and slow subgraphs.

use std::time::Duration;

use serde_json::Value;

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Seen, Stub, json};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
const ALL: &str = "include_subgraph_errors: {all: true}";

#[test]
fn a_body_beyond_the_limit_is_refused_unread() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("limits: {http_max_request_bytes: 100}"));
    let body = format!(r#"{{"query":"{}"}}"#, "x".repeat(1000));
    let response = gateway.send(&post(&body));
    assert_eq!(response.status, 413);
    assert_eq!(crate::client::code(&response), "INVALID_GRAPHQL_REQUEST");
    let mut connection = gateway.connect();
    let chunk = "x".repeat(200);
    connection.write(
        format!("POST / HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nc8\r\n{chunk}\r\n").as_bytes(),
    );
    assert_eq!(connection.read(false).status, 413);
}

#[test]
fn heads_beyond_the_limits_are_refused() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("limits: {http1_max_request_headers: 10}"));
    let headers: Vec<(String, String)> = (0..20)
        .map(|number| (format!("x-{number}"), "1".to_owned()))
        .collect();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let request = Request {
        headers: &headers,
        ..post(NAMES)
    };
    assert_eq!(gateway.send(&request).status, 431);
}

#[test]
fn a_client_that_sends_its_head_too_slowly_is_hung_up_on() {
    let planets = Stub::planets();
    let config = planets.config("server: {http: {header_read_timeout: 100ms}}");
    let gateway = Gateway::start(&config);
    let mut connection = gateway.connect();
    connection.write(b"POST / HTTP/1.1\r\nhost:");
    assert!(connection.is_closed());
}

#[test]
fn a_client_that_sends_its_body_too_slowly_gets_504() {
    let planets = Stub::planets();
    let config = planets.config("traffic_shaping: {router: {timeout: 200ms}}");
    let gateway = Gateway::start(&config);
    let mut connection = gateway.connect();
    connection.write(
        b"POST / HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{",
    );
    let response = connection.read(false);
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (504, "GATEWAY_TIMEOUT")
    );
}

#[test]
fn bytes_that_are_no_http_and_no_text_are_refused() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let mut connection = gateway.connect();
    connection.write(b"\x00\xff\xfe garbage\r\n\r\n");
    assert_eq!(connection.read(false).status, 400);
    let request = Request {
        body: b"{\"query\":\"\xff\xfe\"}",
        ..post("")
    };
    let response = gateway.send(&request);
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (400, "INVALID_GRAPHQL_REQUEST")
    );
}

#[test]
fn hostile_queries_are_refused_and_the_gateway_lives() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let deep = "{ locations ".repeat(20_000);
    let wide = format!("{{ {} }}", "a:__typename ".repeat(20_000));
    let cycle = "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }".to_owned();
    let lists = format!("{{ location(id: {}1) {{ id }} }}", "[".repeat(20_000));
    let mut bomb = "{ ...F0 } ".to_owned();
    for level in 0..30 {
        let next = level + 1;
        bomb += &format!("fragment F{level} on Query {{ ...F{next} ...F{next} }} ");
    }
    bomb += "fragment F30 on Query { __typename }";
    for query in [deep, wide, cycle, lists, bomb] {
        let body = serde_json::json!({ "query": query }).to_string();
        let response = gateway.send(&post(&body));
        let start = query.get(..60).unwrap_or(&query);
        // The bomb is valid and repeats one name.
        assert!(
            matches!(response.status, 200 | 400),
            "{start}: {}",
            response.status
        );
    }
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
}

#[test]
fn a_deep_json_body_is_refused() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let body =
        format!(r#"{{"query":"{{ locations {{ id name }} }}","variables":{{"x":{nested}}}}}"#);
    let response = gateway.send(&post(&body));
    assert!(matches!(response.status, 200 | 400), "{}", response.text());
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
}

/// The first error in the response if a subgraph behaves like this.
fn trouble(answer: Answer) -> (u16, String, String) {
    let subgraph = Stub::start(move |_| answer.clone());
    let more = format!("{ALL}\ntraffic_shaping: {{all: {{timeout: 300ms}}}}");
    let gateway = Gateway::start(&subgraph.config(&more));
    let response = gateway.send(&post(NAMES));
    let error = response.json()["errors"][0].clone();
    let code = error["extensions"]["code"].as_str().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    assert_eq!(error["extensions"]["service"], "locations", "{error}");
    (response.status, code.to_owned(), message.to_owned())
}

#[test]
fn a_subgraph_in_trouble_is_a_clear_error() {
    let http = "SUBREQUEST_HTTP_ERROR";
    let malformed = "SUBREQUEST_MALFORMED_RESPONSE";
    let json_with = |status, body: &str| {
        Answer::With(status, Some("application/json"), body.as_bytes().to_vec())
    };
    let cases = [
        (Answer::Hang, "GATEWAY_TIMEOUT", "timed out"),
        (Answer::Raw(b"garbage".to_vec()), http, "HTTP fetch failed from 'locations'"),
        (Answer::Raw(Vec::new()), http, "HTTP fetch failed from 'locations'"),
        (
            Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"data\":".to_vec()),
            http,
            "HTTP fetch failed from 'locations'",
        ),
        (json_with(500, "{}"), http, "500: Internal Server Error"),
        (json_with(200, "not json"), malformed, "service 'locations' response was malformed"),
        (json_with(200, "[]"), malformed, "service 'locations' response was malformed"),
        (Answer::With(200, Some("text/html"), b"<p>".to_vec()), http, "content-type"),
        (Answer::With(200, None, b"{}".to_vec()), http, "content-type"),
    ];
    for (answer, code, message) in cases {
        let shown = format!("{answer:?}");
        let told = trouble(answer);
        assert_eq!(
            (told.0, told.1.as_str()),
            (200, code),
            "{shown}: {}",
            told.2
        );
        assert!(told.2.contains(message), "{shown}: {}", told.2);
    }
}

#[test]
fn without_the_key_clients_learn_only_that_there_was_an_error_and_where() {
    let subgraph = Stub::start(|_| {
        json(
            r#"{"data":{"locations":null},"errors":[{"message":"secret","path":["locations"],"extensions":{"code":"X"}}]}"#,
        )
    });
    let gateway = Gateway::start(&subgraph.config(""));
    let response = gateway.send(&post(NAMES));
    assert_eq!(
        response.json()["errors"][0],
        serde_json::json!({"message": "Subgraph errors redacted", "path": ["locations"]})
    );
}

/// The response of subgraph `a` or `b`. Two types with ten entities each refer to each other.
fn ten_of_each(seen: &Seen) -> Answer {
    let body = seen.json();
    let stubs = |kind: &str| -> Value {
        let ids = 0..10;
        let stubs = ids.map(|id| serde_json::json!({"__typename": kind, "id": id.to_string()}));
        stubs.collect()
    };
    let entity = if seen.target == "/a" {
        serde_json::json!({"__typename": "A", "bs": stubs("B")})
    } else {
        serde_json::json!({"__typename": "B", "as": stubs("A")})
    };
    match body["variables"]["representations"].as_array() {
        Some(asked) => json(serde_json::json!({"data": {"_entities": vec![entity; asked.len()]}})),
        None => {
            let mut roots = stubs("A");
            for root in roots.as_array_mut().unwrap() {
                root["bs"] = stubs("B");
            }
            json(serde_json::json!({"data": {"as": roots}}))
        }
    }
}

#[test]
fn a_short_query_that_means_a_huge_response_holds_up_nobody() {
    let subgraphs = Stub::start(ten_of_each);
    let url = &subgraphs.url;
    let config = format!("override_subgraph_url: {{a: '{url}/a', b: '{url}/b'}}\n");
    let supergraph = include_str!("../../federation/tests/bounds.graphql");
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", supergraph)
        .start();
    // Eight levels of ten: 10^8 objects, more than a gigabyte of text.
    let query = ["as", "bs"].iter().cycle().take(8);
    let query: String = query.map(|field| format!("{{{field}")).collect();
    let body = format!(r#"{{"query":"{query}{{id}}{}"}}"#, "}".repeat(8));
    let start = test_client::now();
    let mut attack = gateway.connect();
    attack.begin(&post(&body));
    // There is only one worker, and it still serves this request.
    let small = gateway.send(&post(r#"{"query":"{as{id}}"}"#));
    assert_eq!(small.status, 200);
    assert_eq!(gateway.ask_health("/health").status, 200);
    let response = attack.read(false);
    let took = test_client::now() - start;
    assert_eq!(crate::client::code(&response), "RESPONSE_TOO_LARGE");
    assert_eq!(response.json()["data"], Value::Null);
    assert!(took < Duration::from_secs(15), "{took:?}");
    let metrics = gateway.ask_health("/metrics");
    let mut lines = metrics.text().lines();
    let memory = lines.find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let memory: f64 = memory.unwrap().parse().unwrap();
    assert!(memory < 400e6, "{memory} bytes");
}
