//! Tests stored operations as REST through the whole gateway.

use serde_json::{Value, json};

use crate::client::{Request, Response, get};
use crate::gateway::Gateway;
use crate::stub::{Answer, Stub};

const CONFIG: &str = r#"
types: |
  scalar uuid
  scalar numeric
  input wish { name: String }
  type thing { seen: String }
query_collections:
  - name: all
    queries:
      - {name: read, query: "query ($id: uuid, $n: Int, $price: numeric, $on: Boolean = false, $tags: [String!], $wish: wish) { thing(id: $id, n: $n, price: $price, on: $on, tags: $tags, wish: $wish) { seen } }"}
      - {name: write, query: "mutation ($n: Int!) { change(n: $n) { seen } }"}
rest_endpoints:
  - {name: read, url: thing/:id, methods: [GET, POST], query: {collection_name: all, query_name: read}}
  - {name: write, url: /change/, methods: [PUT], query: {collection_name: all, query_name: write}}
  - {name: other, url: ':id/all', methods: [POST], query: {collection_name: all, query_name: read}}
"#;

fn gateway(handler: &Stub) -> Gateway {
    let url = &handler.url;
    let arguments = "arguments: [{name: id, type: uuid}, {name: n, type: Int}, {name: price, type: numeric}, {name: on, type: Boolean}, {name: tags, type: '[String!]'}, {name: wish, type: wish}]";
    Gateway::merged(&format!(
        "{CONFIG}actions:\n  - {{name: thing, type: query, {arguments}, output_type: thing, handler: '{url}'}}\n  - {{name: change, arguments: [{{name: n, type: Int!}}], output_type: thing, handler: '{url}'}}\n"
    ))
}

fn handler() -> Stub {
    Stub::start(|seen| {
        let body = json!({"seen": seen.json()["input"].to_string()}).to_string();
        Answer::With(200, Some("application/json"), body.into_bytes())
    })
}

/// The input that the handler received, read from the response.
fn input(response: &Response, field: &str) -> Value {
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = &response.json()[field]["seen"];
    serde_json::from_str(seen.as_str().unwrap()).unwrap()
}

fn send(gateway: &Gateway, method: &str, target: &str, body: &str) -> Response {
    gateway.send(&Request {
        method,
        target,
        headers: &[("content-type", "application/json")],
        body: body.as_bytes(),
    })
}

#[test]
fn variables_of_path_query_and_body_get_their_types() {
    let handler = handler();
    let gateway = gateway(&handler);
    let read = |target: &str| input(&gateway.send(&get(target)), "thing");
    assert_eq!(
        read("/api/rest/thing/a%20b?n=-3&price=12345678901234567890.10&on"),
        json!({"id": "a b", "n": -3, "price": 12345678901234567890.10, "on": true})
    );
    assert_eq!(
        read("/api/rest/thing/7?on=false&n="),
        json!({"id": "7", "on": false, "n": null})
    );
    // Without a value, the default applies.
    assert_eq!(read("/api/rest/thing/7"), json!({"id": "7", "on": false}));
    // The path takes precedence over the query string, and the query string over the body. Values of the body
    // are unchanged.
    let body = r#"{"id":"body","n":1,"tags":["x"],"wish":{"name":null}}"#;
    let response = send(&gateway, "POST", "/api/rest/thing/path?id=query&n=2", body);
    assert_eq!(
        input(&response, "thing"),
        json!({"id": "path", "n": 2, "tags": ["x"], "wish": {"name": null}, "on": false})
    );
    let response = send(&gateway, "PUT", "/api/rest/change", r#"{"n":5}"#);
    assert_eq!(input(&response, "change"), json!({"n": 5}));
    let sent = handler.seen().last().unwrap().json();
    assert_eq!(sent["action"]["name"], "change");
}

/// Method, target and body of a request, then status, code and error of its response.
type Refused = (
    &'static str,
    &'static str,
    &'static str,
    u16,
    &'static str,
    &'static str,
);

const REFUSALS: &[Refused] = &[
    (
        "GET",
        "/api/rest/nothing",
        "",
        404,
        "not-found",
        "Endpoint not found",
    ),
    (
        "GET",
        "/api/rest/thing",
        "",
        404,
        "not-found",
        "Endpoint not found",
    ),
    (
        "GET",
        "/api/rest/thing/",
        "",
        404,
        "not-found",
        "Endpoint not found",
    ),
    (
        "PATCH",
        "/api/rest/thing/1",
        "",
        405,
        "method-not-allowed",
        "Method not allowed. Allowed methods: GET,POST",
    ),
    (
        "POST",
        "/api/rest/thing/all",
        "",
        500,
        "unexpected",
        "Multiple endpoints match request",
    ),
    (
        "GET",
        "/api/rest/thing/1?what=1",
        "",
        400,
        "bad-request",
        "Unexpected variable what",
    ),
    (
        "POST",
        "/api/rest/thing/1",
        r#"{"what":1}"#,
        400,
        "bad-request",
        "Unexpected variable what",
    ),
    (
        "GET",
        "/api/rest/thing/1?n=x",
        "",
        400,
        "bad-request",
        "expected a number for the variable n, found \"x\"",
    ),
    (
        "GET",
        "/api/rest/thing/1?on=yes",
        "",
        400,
        "bad-request",
        "expected true or false for the variable on, found \"yes\"",
    ),
    (
        "GET",
        "/api/rest/thing/1?tags=x",
        "",
        400,
        "bad-request",
        "List variables are not currently supported in URL or Query parameters",
    ),
    (
        "POST",
        "/api/rest/thing/1",
        "[1]",
        400,
        "bad-request",
        "the body must be a JSON object, found an array",
    ),
    (
        "POST",
        "/api/rest/thing/1",
        "{",
        400,
        "bad-request",
        "the body is not JSON: expected a key at byte 1",
    ),
    (
        "PUT",
        "/api/rest/change",
        "",
        400,
        "validation-failed",
        "Variable \"$n\" of required type \"Int!\" was not provided.",
    ),
    (
        "PUT",
        "/api/rest/change",
        r#"{"n":"x"}"#,
        400,
        "validation-failed",
        "Variable \"$n\" got invalid value \"x\"; Int cannot represent non-integer value: \"x\"",
    ),
    (
        "GET",
        "/api/rest/thing/%ff",
        "",
        400,
        "bad-request",
        "expected UTF-8 in the escapes of the URL, found other bytes",
    ),
    (
        "GET",
        "/api/rest/thing/1?id=a%C3",
        "",
        400,
        "bad-request",
        "expected UTF-8 in the escapes of the URL, found other bytes",
    ),
];

#[test]
fn what_does_not_fit_is_refused_with_its_status() {
    let handler = handler();
    let gateway = gateway(&handler);
    for (method, target, body, status, code, error) in REFUSALS {
        let response = send(&gateway, method, target, body);
        let told = response.json();
        assert_eq!(
            (
                response.status,
                told["code"].as_str(),
                told["error"].as_str()
            ),
            (*status, Some(*code), Some(*error)),
            "{method} {target}"
        );
        assert!(told["path"].as_str().unwrap().starts_with('$'), "{told}");
    }
    let response = send(&gateway, "PATCH", "/api/rest/thing/1", "");
    assert_eq!(response.header("allow"), Some("GET, POST"));
    assert!(handler.seen().is_empty());
    // Without stored operations below it, this path is unknown.
    assert_eq!(gateway.send(&get("/api/other")).status, 404);
}

#[test]
fn failures_of_the_operation_have_a_status() {
    let handler = Stub::start(|seen| match seen.json()["input"]["id"].as_str() {
        Some("gone") => Answer::With(
            400,
            None,
            br#"{"message":"gone","code":"not-found"}"#.to_vec(),
        ),
        _ => Answer::With(500, None, Vec::new()),
    });
    let gateway = gateway(&handler);
    let gone = gateway.send(&get("/api/rest/thing/gone"));
    assert_eq!(gone.status, 404);
    assert_eq!(
        gone.text(),
        r#"{"path":"$","error":"gone","code":"not-found"}"#
    );
    let broken = gateway.send(&get("/api/rest/thing/other"));
    assert_eq!(broken.status, 500);
    assert_eq!(broken.json()["error"], "internal error");
}
