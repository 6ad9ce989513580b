//! Tests of the process from outside.

#![cfg(test)]

mod audit;
mod server;

use std::io::{Read as _, Write as _};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use test_client::{JSON, Request, get, now, post_json};

use server::{start, stream};

const LIST: &str = r#"{"query":"{locations{__typename id description}}"}"#;

#[test]
fn a_repeated_question_has_the_same_answer_and_is_counted_again() {
    let server = start(&["--count-headers", "source", "--workers", "2"]);
    let mut client = server.client();
    let mut ask = |source| client.request("POST", "/locations", &[JSON, (source, "rhai")], LIST);
    let (first, again) = (ask("source"), ask("Source"));
    assert_eq!((first.status, &first.body), (200, &again.body));
    let seen = client.get("/seen").json();
    let expected = json!({"requests": 2, "headers": {
        "source": {"values": {"rhai": 2}, "other_values": 0, "absent": 0}}});
    assert_eq!(seen["locations"], expected);
    client.post("/seen/reset", "");
    let seen = client.get("/seen").json();
    assert_eq!(seen["locations"]["requests"], 0);
    let metrics = client.get("/metrics").body;
    assert!(
        metrics.contains("planets_requests_total{subgraph=\"reviews\"} 0"),
        "{metrics}"
    );
}

#[test]
fn wrong_requests_have_their_status() {
    let server = start(&["--body-limit", "100"]);
    let no_type = Request {
        headers: &[],
        ..post_json("/reviews", "{}")
    };
    let page = Request {
        headers: &[JSON, ("accept", "text/html")],
        ..post_json("/locations", LIST)
    };
    let long = format!(r#"{{"query":"{}"}}"#, " ".repeat(200));
    for (request, status) in [
        (get("/health"), 200),
        (get("/nowhere"), 404),
        (get("/seen/reset"), 405),
        (get("/locations"), 400),
        (get("/locations?query=%7B__typename%7D"), 200),
        (post_json("/locations", "{"), 400),
        (post_json("/locations", &long), 413),
        (page, 406),
        (no_type, 415),
        (post_json("/health", ""), 405),
    ] {
        assert_eq!(server.send(&request).status, status, "{request:?}");
    }
}

#[test]
fn the_media_type_with_the_greatest_weight_is_sent() {
    let server = start(&[]);
    let mut client = server.client();
    let mut ask =
        |accept: &str| client.request("POST", "/locations", &[JSON, ("accept", accept)], LIST);
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
        let answer = ask(&accept);
        let media = answer.header("content-type").unwrap();
        assert!(
            media.starts_with(&format!("{expected};")),
            "{accept}: {media}"
        );
    }
    assert_eq!(ask("application/json;q=0").status, 406);
}

#[test]
fn a_request_in_flight_is_answered_after_sigterm() {
    let server = start(&["--delay", "400ms"]);
    let mut connection = server.connect();
    connection.begin(&post_json("/locations", LIST));
    // The count shows that the request has arrived.
    while !server.send(&get("/seen")).body.contains("\"requests\":1") {}
    server.signal(Signal::TERM);
    assert_eq!(connection.read(false).status, 200);
    assert!(server.wait().success());
}

#[test]
fn clients_that_never_read_do_not_keep_it_from_stopping() {
    let server = start(&["--workers", "4", "--stop-timeout", "1s"]);
    let fields: String = (0..500).map(|it| format!("a{it}:description ")).collect();
    let body = format!(r#"{{"query":"{{locations{{{fields}}}}}"}}"#);
    let mut unread: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for connection in &mut unread {
        // More than the system buffers of one response, and certainly of several.
        for _ in 0..4 {
            connection.begin(&post_json("/locations", &body));
        }
    }
    let requests = || {
        let seen = server.send(&get("/seen")).json();
        seen["locations"]["requests"].as_u64().unwrap()
    };
    while requests() < 8 {}
    server.signal(Signal::TERM);
    let begun = now();
    assert!(server.wait().success());
    // All workers at once. One after the other would take 4 s.
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_question_beyond_a_limit_is_refused_like_a_wrong_document() {
    let server = start(&["--max-aliases", "1"]);
    let mut client = server.client();
    let query = "{a:locations{id} b:locations{id}}";
    let body = json!({ "query": query }).to_string();
    for (accept, status) in [
        ("application/json", 200),
        ("application/graphql-response+json", 400),
    ] {
        let headers = [JSON, ("accept", accept)];
        let posted = client.request("POST", "/locations", &headers, &body);
        let target = "/locations?query=%7Ba:locations%7Bid%7D%20b:locations%7Bid%7D%7D";
        let got = client.request("GET", target, &headers, "");
        for answer in [posted, got] {
            assert_eq!(answer.status, status, "{}", answer.body);
            let error = &answer.json()["errors"][0];
            assert_eq!(error["extensions"]["code"], "MAX_ALIASES_LIMIT");
        }
    }
}

#[test]
fn a_name_of_a_document_may_have_256_bytes() {
    let server = start(&[]);
    let ask = |length: usize| {
        let body = json!({"query": format!("{{ {}: __typename }}", "a".repeat(length))});
        server.send(&post_json("/locations", &body.to_string()))
    };
    let whole = ask(256).json();
    assert_eq!(whole["data"]["a".repeat(256)], "Query", "{whole}");
    let refused = ask(257).body;
    let told = "a name of the document has 257 bytes; a name may have 256";
    // The message does not repeat the name.
    assert!(refused.contains(told) && refused.len() < 1_000, "{refused}");
}

#[test]
fn the_delay_is_waited_for() {
    let server = start(&["--delay", "120ms"]);
    let begun = now();
    server.send(&post_json("/reviews", r#"{"query":"{__typename}"}"#));
    assert!(begun.elapsed() >= Duration::from_millis(120));
}

#[test]
fn answers_of_subgraphs_say_what_caches_may_do_where_that_is_asked_for() {
    let body = r#"{"query":"{__typename}"}"#;
    for (flags, expected) in [
        (&[][..], None),
        (&["--cache-control", "max-age=60"], Some("max-age=60")),
    ] {
        let server = start(flags);
        let answer = server.send(&post_json("/locations", body));
        assert_eq!(answer.header("cache-control"), expected);
        let seen = server.send(&get("/seen"));
        assert_eq!(seen.header("cache-control"), None);
    }
}

#[test]
fn http_2_without_tls_is_understood() {
    let server = start(&[]);
    let mut stream = stream(&server);
    // The preface and an empty SETTINGS frame (RFC 9113, 3.4). A server replies with its own.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!((head[3], &head[5..]), (4, &[0, 0, 0, 0][..]), "{head:?}");
}
