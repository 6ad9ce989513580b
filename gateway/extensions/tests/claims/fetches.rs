//! Subgraph requests: the sent request, and the result for each kind of response.

use gateway_extensions::SubgraphOutcome;
use http::StatusCode;
use serde_json::{Value, json};

use crate::stand::{Answer, exchange, fetch, origin, run, serve, serve_unix, worker};

#[test]
fn without_rules_a_subgraph_receives_the_body_and_two_headers_of_ours() {
    run(async {
        let origin = origin().await;
        let outcome = fetch(&worker("{}", &origin.url), &exchange(&[("x-a", "1")])).await;
        assert_eq!(outcome.body, r#"{"data":{"a":1}}"#);
        assert_eq!(outcome.status, Some(StatusCode::OK));
        let seen = origin.last();
        let mut names: Vec<&str> = seen.headers.keys().map(http::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "content-length", "content-type", "host"]);
        assert_eq!(
            seen.body,
            r#"{"query":"query Q__one__0{a}","operationName":"Q__one__0"}"#
        );
        assert_eq!(seen.method, "POST");
    });
}

async fn outcome_of(answer: Answer) -> SubgraphOutcome {
    let origin = serve(move |_| Some(answer.clone())).await;
    fetch(&worker("{}", &origin.url), &exchange(&[])).await
}

fn problems(outcome: &SubgraphOutcome) -> Value {
    let list = outcome.problems.iter();
    list.map(|problem| json!([problem.message, problem.extensions]))
        .collect()
}

#[test]
fn what_is_not_a_graphql_response_becomes_an_error_with_its_reason() {
    let answer = |status, content_type, body: &str| Answer {
        status,
        content_type,
        body: body.to_owned(),
    };
    const JSON: Option<&str> = Some("application/json; charset=utf-8");
    let unavailable = json!([
        "HTTP fetch failed from 'one': 503: Service Unavailable",
        {"code": "SUBREQUEST_HTTP_ERROR", "reason": "503: Service Unavailable", "http": {"status": 503}}
    ]);
    let expected = "expected content-type: application/json or content-type: application/graphql-response+json";
    let no_type = format!("subgraph response does not contain 'content-type' header; {expected}");
    let odd_type =
        format!("subgraph response contains unsupported content-type: text/html; {expected}");
    let typed = |reason: &str| {
        json!([[
            format!("HTTP fetch failed from 'one': {reason}"),
            {"code": "SUBREQUEST_HTTP_ERROR", "reason": reason, "http": {"status": 200}}
        ]])
    };
    let malformed = |reason: &str| {
        json!([
            format!("service 'one' response was malformed: {reason}"),
            {"code": "SUBREQUEST_MALFORMED_RESPONSE", "reason": reason}
        ])
    };
    let response = r#"{"errors":[{"message":"m"}]}"#;
    for (answer, body, expected) in [
        (answer(200, JSON, response), response, json!([])),
        (
            answer(200, Some("application/graphql-response+json"), response),
            response,
            json!([]),
        ),
        (answer(503, JSON, response), response, json!([unavailable])),
        (
            answer(503, JSON, "{}"),
            "",
            json!([unavailable, malformed("{}")]),
        ),
        // A deserializer could accept a list as the members of a response in their order.
        (
            answer(503, JSON, "[1,2]"),
            "",
            json!([unavailable, malformed("[1,2]")]),
        ),
        (
            answer(503, JSON, ""),
            "",
            json!([unavailable, malformed("<empty response body>")]),
        ),
        (
            answer(503, Some("text/html"), "<p>"),
            "",
            json!([unavailable]),
        ),
        (answer(200, None, response), "", typed(&no_type)),
        (
            answer(200, Some("text/html"), response),
            "",
            typed(&odd_type),
        ),
    ] {
        let what = format!("{answer:?}");
        let outcome = run(outcome_of(answer));
        assert_eq!(problems(&outcome), expected, "{what}");
        assert_eq!(outcome.body, body, "{what}");
    }
}

#[test]
fn a_long_body_that_is_no_response_is_told_by_its_beginning() {
    let body = format!(r#"{{"no":"{}"}}"#, "ü".repeat(1_000_000));
    let answer = Answer {
        status: 503,
        content_type: Some("application/json"),
        body,
    };
    let outcome = run(outcome_of(answer));
    let problem = &outcome.problems[1];
    assert_eq!(problem.extensions["code"], "SUBREQUEST_MALFORMED_RESPONSE");
    let reason = problem.extensions["reason"].as_str().unwrap();
    assert!(reason.starts_with(r#"{"no":"üü"#) && reason.ends_with('…'));
    assert_eq!(reason.chars().count(), 1_024);
    assert!(problem.message.ends_with(reason));
}

#[test]
fn a_subgraph_that_is_not_there_says_so() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let outcome = fetch(&worker("{}", &url), &exchange(&[])).await;
        let problem = &outcome.problems[0];
        assert!(
            problem
                .message
                .starts_with("HTTP fetch failed from 'one': cannot connect")
        );
        assert_eq!(problem.extensions["code"], "SUBREQUEST_HTTP_ERROR");
    });
}

#[test]
fn a_subgraph_that_is_too_slow_is_a_gateway_timeout() {
    run(async {
        let origin = serve(|_| None).await;
        let yaml = r#"{"traffic_shaping": {"all": {"timeout": "30ms"}}}"#;
        let outcome = fetch(&worker(yaml, &origin.url), &exchange(&[])).await;
        assert_eq!(outcome.problems[0].extensions["code"], "GATEWAY_TIMEOUT");
    });
}

#[test]
fn an_override_replaces_the_routing_url_over_tcp_and_unix_sockets() {
    run(async {
        let origin = origin().await;
        let yaml = format!(
            r#"{{"override_subgraph_url": {{"one": "{}/elsewhere"}}}}"#,
            origin.url
        );
        fetch(&worker(&yaml, "http://nowhere.invalid"), &exchange(&[])).await;
        assert_eq!(origin.last().path, "/elsewhere");

        // The path of a socket has at most 107 bytes, but TMPDIR may be longer.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let socket = serve_unix(&folder.path().join("s"), |_| {
            Some(crate::stand::json(r#"{"data":{"a":2}}"#))
        });
        let yaml = format!(
            r#"{{"override_subgraph_url": {{"one": "{}?path=/p"}}}}"#,
            socket.url
        );
        let outcome = fetch(&worker(&yaml, "http://nowhere.invalid"), &exchange(&[])).await;
        assert_eq!(outcome.body, r#"{"data":{"a":2}}"#);
        assert_eq!(socket.last().path, "/p");
    });
}

#[test]
fn http2_with_prior_knowledge_is_one_connection_for_all() {
    run(async {
        let origin = origin().await;
        let yaml = r#"{"traffic_shaping": {"all": {"experimental_http2": "http2only"}}}"#;
        let worker = worker(yaml, &origin.url);
        for _ in 0..3 {
            let outcome = fetch(&worker, &exchange(&[])).await;
            assert_eq!(outcome.body, r#"{"data":{"a":1}}"#);
        }
        assert_eq!(origin.last().version, http::Version::HTTP_2);
        assert_eq!(origin.last().all("content-type"), ["application/json"]);
    });
}

#[test]
fn nothing_configured_is_nothing_to_call() {
    let worker = worker("{}", "http://localhost:1");
    assert!(worker.router.is_none() && worker.supergraph.is_none() && worker.execution.is_none());
    assert!(!worker.wants_query_plan());
}

#[test]
fn requests_are_compressed_when_traffic_shaping_says_so() {
    for (compression, first_bytes) in [("gzip", vec![0x1f, 0x8b]), ("deflate", vec![0x78])] {
        run(async {
            let origin = origin().await;
            let yaml =
                format!(r#"{{"traffic_shaping": {{"all": {{"compression": "{compression}"}}}}}}"#);
            fetch(&worker(&yaml, &origin.url), &exchange(&[])).await;
            let seen = origin.last();
            assert_eq!(seen.all("content-encoding"), [compression]);
            assert!(seen.bytes.starts_with(&first_bytes), "{:?}", seen.bytes);
        });
    }
}

#[test]
fn a_list_with_an_error_status_reaches_response_stages_as_an_error() {
    run(async {
        let list = Answer {
            status: 503,
            content_type: Some("application/json"),
            body: "[1,2]".to_owned(),
        };
        let origin = serve(move |_| Some(list.clone())).await;
        let coprocessor = serve(|_| Some(crate::stand::json("{}"))).await;
        let yaml = format!(
            r#"{{"coprocessor": {{"url": "{}", "subgraph": {{"all": {{"response": {{"body": true}}}}}}}}}}"#,
            coprocessor.url
        );
        fetch(&worker(&yaml, &origin.url), &exchange(&[])).await;
        let seen = coprocessor.last().json();
        assert_eq!(
            seen["body"]["errors"][0]["extensions"]["code"],
            "SUBREQUEST_HTTP_ERROR"
        );
    });
}
