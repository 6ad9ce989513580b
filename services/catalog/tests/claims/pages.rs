//! Tests CORS, the id of a request, and the form of refusals.

use serde_json::json;
use test_client::Request;

use crate::databases::Database;
use crate::server::start;

#[test]
fn only_named_pages_may_use_the_service() {
    let database = Database::sqlite();
    let server = start(&database, &["--cors-origins", "http://a.example"]);
    let send = |method, headers: &[(&str, &str)]| {
        server.send(&Request {
            method,
            target: "/api/rest/product?limit=1",
            headers,
            body: b"",
        })
    };
    let page = |origin| [("origin", origin), ("access-control-request-method", "GET")];
    let allowed = send("OPTIONS", &page("http://a.example"));
    assert_eq!(allowed.status, 204);
    let origin = allowed.header("access-control-allow-origin");
    assert_eq!(origin, Some("http://a.example"));
    let refused = send("OPTIONS", &page("http://c.example"));
    assert_eq!(refused.header("access-control-allow-origin"), None);
    let answer = send("GET", &[("origin", "http://a.example")]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("vary"), Some("Origin"));
    let plain = start(&database, &[]);
    let answer = plain.client().get("/api/rest/product?limit=1");
    assert!(!answer.head.contains("access-control"), "{}", answer.head);
}

#[test]
fn the_id_of_a_request_comes_back() {
    let database = Database::sqlite();
    let server = start(&database, &[]);
    let id = |headers: &[(&str, &str)]| {
        let answer = server.send(&Request {
            method: "GET",
            target: "/healthz",
            headers,
            body: b"",
        });
        assert_eq!(answer.status, 200);
        answer.header("x-request-id").map(str::to_owned)
    };
    assert_eq!(id(&[("x-request-id", "a-1")]).as_deref(), Some("a-1"));
    assert_eq!(id(&[]), None);
}

#[test]
fn every_refusal_of_a_document_has_a_code() {
    let database = Database::sqlite();
    let server = start(&database, &[]);
    for document in ["{", "{ nothing }", "{ product(limit: \"a\") { id } }"] {
        let answer = server.client().graphql(document, &json!({})).json();
        let code = &answer["errors"][0]["extensions"]["code"];
        assert_eq!(code, "validation-failed", "{document}: {answer}");
    }
}
