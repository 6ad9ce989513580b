//! Tests of HTTP around the documents: methods, media types, limits, pages.

use crate::http::{Request, get, post};
use crate::server::{both, same_answer};

const QUERY: &str = r#"{"query":"{ total }"}"#;
const BROWSER: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

#[test]
fn each_wrong_request_is_told_what_is_wrong() {
    let json = &[("Content-Type", "application/json")];
    let request = |method, target, headers, body: &'static str| Request {
        method,
        target,
        headers,
        body: body.as_bytes(),
    };
    let long = "x".repeat(1025);
    let wrong = [
        get("/"),
        get("/graphql/"),
        request("DELETE", "/graphql", &[], ""),
        request("HEAD", "/graphql", &[], ""),
        request("OPTIONS", "/graphql", &[], ""),
        request("POST", "/health", &[], ""),
        request("POST", "/metrics", json, QUERY),
        request("POST", "/graphql", &[], QUERY),
        request("POST", "/graphql", &[("Content-Type", "text/plain")], QUERY),
        request("GET", "/graphql", &[("Accept", "image/png")], ""),
        post(&long),
        post(""),
        post("{"),
        post("[]"),
        post(r#"{"query":1}"#),
        post(r#"{"query":"{ total }","variables":[]}"#),
        get("/graphql"),
        get("/graphql?query=%7Btotal%7D&query=%7Btotal%7D"),
        get("/graphql?query=%7Btotal%7D&variables=1"),
        get("/graphql?query=mutation%7Badd%7D"),
        get("/graphql?query=query%20A%7Btotal%7Dmutation%20B%7Badd%7D&operationName=B"),
    ];
    let servers = both(&["--body-limit=1KiB"]);
    let mut shown = String::new();
    for request in &wrong {
        let answer = same_answer(&servers, request);
        let Request { method, target, .. } = request;
        let allow = answer
            .header("allow")
            .map(|allow| format!(" (allow {allow})"));
        let allow = allow.unwrap_or_default();
        let message = match request.method {
            "HEAD" => "-".to_owned(),
            _ => answer.json()["errors"][0]["message"].to_string(),
        };
        shown += &format!("{} {method} {target}{allow} {message}\n", answer.status);
    }
    insta::assert_snapshot!(shown, @r#"
    404 GET / "nothing is served here; try /graphql, /health or /metrics"
    404 GET /graphql/ "nothing is served here; try /graphql, /health or /metrics"
    405 DELETE /graphql (allow GET, POST) "this path serves GET, POST only"
    405 HEAD /graphql (allow GET, POST) -
    405 OPTIONS /graphql (allow GET, POST) "this path serves GET, POST only"
    405 POST /health (allow GET, HEAD) "this path serves GET, HEAD only"
    405 POST /metrics (allow GET, HEAD) "this path serves GET, HEAD only"
    415 POST /graphql "the content type of a POST must be application/json in utf-8, found none"
    415 POST /graphql "the content type of a POST must be application/json in utf-8, found `text/plain`"
    406 GET /graphql "the response is application/graphql-response+json or application/json; accept one of them"
    413 POST /graphql "the body is larger than the limit of 1024 bytes"
    400 POST /graphql "the body is not JSON: EOF while parsing a value at line 1 column 0"
    400 POST /graphql "the body is not JSON: EOF while parsing an object at line 1 column 1"
    400 POST /graphql "the body must be one JSON object; batches are not served"
    400 POST /graphql "the body is not a GraphQL request: invalid type: integer `1`, expected a string at line 1 column 10"
    400 POST /graphql "the body is not a GraphQL request: invalid type: sequence, expected a map at line 1 column 33"
    400 GET /graphql "the parameter `query` is missing; send ?query=… or a POST"
    400 GET /graphql?query=%7Btotal%7D&query=%7Btotal%7D "the parameter `query` is given twice"
    400 GET /graphql?query=%7Btotal%7D&variables=1 "the parameter `variables` must be a JSON object: invalid type: integer `1`, expected a map at line 1 column 1"
    405 GET /graphql?query=mutation%7Badd%7D (allow POST) "a mutation must be sent with POST, found GET"
    405 GET /graphql?query=query%20A%7Btotal%7Dmutation%20B%7Badd%7D&operationName=B (allow POST) "a mutation must be sent with POST, found GET"
    "#);
}

#[test]
fn a_query_in_the_url_is_answered() {
    let servers = both(&[]);
    let target = "/graphql?query=query%20A(%24text%3A%20String!)%7Becho(text%3A%24text)%7D\
         &variables=%7B%22text%22%3A%22a+b%22%7D&operationName=A&extensions=";
    let answer = same_answer(&servers, &get(target));
    assert_eq!(answer.body, r#"{"data":{"echo":"a b"}}"#);
    let beside = "/graphql?query=query%20A%7Btotal%7Dmutation%20B%7Badd%7D&operationName=A";
    assert_eq!(same_answer(&servers, &get(beside)).status, 200);
}

#[test]
fn a_mutation_in_the_url_changes_nothing() {
    let servers = both(&[]);
    let refused = same_answer(&servers, &get("/graphql?query=mutation%7Badd%7D"));
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("POST"))
    );
    let total = same_answer(&servers, &post(QUERY));
    assert_eq!(total.body, r#"{"data":{"total":0}}"#);
}

#[test]
fn a_browser_gets_graphiql() {
    let servers = both(&[]);
    let headers = &[("Accept", BROWSER)];
    for target in ["/graphql", "/graphql?query=%7Btotal%7D"] {
        let request = Request {
            headers,
            ..get(target)
        };
        let page = same_answer(&servers, &request);
        assert_eq!(page.status, 200);
        assert_eq!(
            page.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert!(page.body.contains("<title>GraphiQL</title>"));
        assert!(
            page.body.ends_with(
                "</html>
"
            ),
            "the whole page"
        );
    }
}

#[test]
fn a_body_at_the_limit_is_read_and_one_beyond_is_not() {
    let servers = both(&["--body-limit=1KiB"]);
    let padded = |length: usize| format!("{QUERY}{}", " ".repeat(length - QUERY.len()));
    let fits = same_answer(&servers, &post(&padded(1024)));
    assert_eq!(fits.status, 200);
    for server in &servers {
        let mut connection = server.connect();
        let beyond = connection.send(&post(&padded(1025)));
        assert_eq!(beyond.status, 413);
        assert!(connection.is_closed());
        // The length is not announced in advance, but the limit still applies.
        let mut connection = server.connect();
        let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
        let chunk = "x".repeat(1024);
        connection.write_text(&format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n400\r\n{chunk}\r\n1\r\nx\r\n0\r\n\r\n"
        ));
        assert_eq!(connection.read(false).status, 413);
    }
}

#[test]
fn a_body_in_pieces_is_put_together() {
    for server in both(&[]) {
        let mut connection = server.connect();
        let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
        connection.write_text(&format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
        for piece in [r#"{"query""#, r#":"{ tot"#, r#"al }"}"#] {
            connection.write_text(&format!("{:x}\r\n{piece}\r\n", piece.len()));
        }
        connection.write_text("0\r\n\r\n");
        assert_eq!(connection.read(false).body, r#"{"data":{"total":0}}"#);
    }
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    for server in both(&["--request-timeout=1s"]) {
        let mut connection = server.connect();
        let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
        connection.write_text(&format!("{head}Content-Length: 9\r\n\r\n{{"));
        let answer = connection.read(false);
        assert_eq!(answer.status, 408);
        assert!(answer.json()["errors"][0]["message"].is_string());
        assert!(connection.is_closed());
    }
}

#[test]
fn a_connection_serves_many_requests() {
    for server in both(&[]) {
        let mut connection = server.connect();
        for _ in 0..3 {
            assert_eq!(connection.send(&post(QUERY)).status, 200);
        }
        assert_eq!(connection.send(&get("/nowhere")).status, 404);
        assert_eq!(connection.send(&post(QUERY)).status, 200);
    }
}

#[test]
fn health_is_well() {
    let servers = both(&[]);
    let answer = same_answer(&servers, &get("/health"));
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, "{\"status\":\"ok\"}\n")
    );
    let head = Request {
        method: "HEAD",
        ..get("/health")
    };
    assert_eq!(same_answer(&servers, &head).status, 200);
}

#[test]
fn metrics_count_what_was_served() {
    let failing = r#"{"query":"{ fail }"}"#;
    for server in both(&["--workers=2"]) {
        for _ in 0..5 {
            assert_eq!(server.send(&post(QUERY)).status, 200);
        }
        assert_eq!(server.send(&post(failing)).status, 200);
        assert_eq!(server.send(&post("{")).status, 400);
        assert_eq!(server.send(&get("/nowhere")).status, 404);
        let answer = server.send(&get("/metrics"));
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
        let lines: Vec<_> = answer.body.lines().collect();
        for expected in [
            "http_requests_total{status=\"200\"} 6",
            "http_requests_total{status=\"400\"} 1",
            "http_requests_total{status=\"404\"} 1",
            "graphql_responses_with_errors_total 1",
            "graphql_request_duration_seconds_count 7",
            "graphql_request_duration_seconds_bucket{le=\"+Inf\"} 7",
        ] {
            assert!(lines.contains(&expected), "{expected} in\n{}", answer.body);
        }
    }
}
