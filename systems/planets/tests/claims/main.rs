//! What the process promises, seen from outside.

#![cfg(test)]

mod audit;
mod server;

use std::io::{Read as _, Write as _};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use server::Server;

const LIST: &str = r#"{"query":"{locations{__typename id description}}"}"#;

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: planets\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    )
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: planets\r\n\r\n")
}

#[test]
fn a_repeated_question_has_the_same_answer_and_is_counted_again() {
    let server = Server::start(&["--count-headers", "source", "--workers", "2"]);
    let first = server.ask(&post("/locations", "source: rhai\r\n", LIST));
    let again = server.ask(&post("/locations", "Source: rhai\r\n", LIST));
    assert_eq!((first.status, &first.body), (200, &again.body));
    let seen: Value = serde_json::from_str(&server.ask(&get("/seen")).body).unwrap();
    let expected = json!({"requests": 2, "headers": {
        "source": {"values": {"rhai": 2}, "other_values": 0, "absent": 0}}});
    assert_eq!(seen["locations"], expected);
    server.ask(&post("/seen/reset", "", ""));
    let seen: Value = serde_json::from_str(&server.ask(&get("/seen")).body).unwrap();
    assert_eq!(seen["locations"]["requests"], 0);
    let metrics = server.ask(&get("/metrics")).body;
    assert!(
        metrics.contains("planets_requests_total{subgraph=\"reviews\"} 0"),
        "{metrics}"
    );
}

#[test]
fn wrong_requests_have_their_status() {
    let server = Server::start(&["--body-limit", "100"]);
    let no_type = "POST /reviews HTTP/1.1\r\nHost: planets\r\nContent-Length: 2\r\n\r\n{}";
    let long = format!(r#"{{"query":"{}"}}"#, " ".repeat(200));
    for (request, status) in [
        (get("/health"), 200),
        (get("/nowhere"), 404),
        (get("/seen/reset"), 405),
        (get("/locations"), 400),
        (get("/locations?query=%7B__typename%7D"), 200),
        (post("/locations", "", "{"), 400),
        (post("/locations", "", &long), 413),
        (post("/locations", "Accept: text/html\r\n", LIST), 406),
        (no_type.to_owned(), 415),
        (post("/health", "", ""), 405),
    ] {
        assert_eq!(server.ask(&request).status, status, "{request}");
    }
}

#[test]
fn the_media_type_with_the_greatest_weight_is_sent() {
    let server = Server::start(&[]);
    let modern = "application/graphql-response+json";
    for (accept, expected) in [
        (
            format!("{modern};q=0.1, application/json"),
            "application/json",
        ),
        (format!("application/json;q=0.5, {modern}"), modern),
        (format!("*/*;q=0.5, {modern}"), modern),
        (format!("{modern};q=0, */*"), "application/json"),
    ] {
        let answer = server.ask(&post("/locations", &format!("Accept: {accept}\r\n"), LIST));
        let media = answer.header("content-type").unwrap();
        assert!(
            media.starts_with(&format!("{expected};")),
            "{accept}: {media}"
        );
    }
    let refused = post("/locations", "Accept: application/json;q=0\r\n", LIST);
    assert_eq!(server.ask(&refused).status, 406);
}

#[test]
fn a_request_in_flight_is_answered_after_sigterm() {
    let server = Server::start(&["--delay", "400ms"]);
    let mut stream = server.stream();
    stream
        .write_all(post("/locations", "", LIST).as_bytes())
        .unwrap();
    // The count says that the request has arrived.
    while !server.ask(&get("/seen")).body.contains("\"requests\":1") {}
    server.signal(Signal::TERM);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(server.wait().success());
}

#[test]
fn the_delay_is_waited_for() {
    let server = Server::start(&["--delay", "120ms"]);
    let start = server::now();
    server.ask(&post("/reviews", "", r#"{"query":"{__typename}"}"#));
    assert!(start.elapsed() >= Duration::from_millis(120));
}

#[test]
fn http_2_without_tls_is_understood() {
    let server = Server::start(&[]);
    let mut stream = server.stream();
    // The preface and an empty SETTINGS frame (RFC 9113, 3.4); a server answers with its own.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!((head[3], &head[5..]), (4, &[0, 0, 0, 0][..]), "{head:?}");
}
