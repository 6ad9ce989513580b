//! Tests CORS, and the id of a request.

use test_client::Request;

use crate::server::both;

fn preflight(origin: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ]
}

#[test]
fn only_named_pages_may_use_the_servers() {
    let flags = ["--cors-origins", "http://a.example,http://b.example"];
    for server in both(&flags) {
        let options = |headers: &[(&str, &str)]| {
            server.send(&Request {
                method: "OPTIONS",
                target: "/graphql",
                headers,
                body: b"",
            })
        };
        let allowed = options(&preflight("http://b.example"));
        assert_eq!(allowed.status, 204);
        let header = |name| allowed.header(name);
        assert_eq!(
            header("access-control-allow-origin"),
            Some("http://b.example")
        );
        assert_eq!(
            header("access-control-allow-methods"),
            Some("GET, HEAD, POST")
        );
        assert_eq!(header("access-control-allow-headers"), Some("content-type"));
        let refused = options(&preflight("http://c.example"));
        assert_eq!(refused.header("access-control-allow-origin"), None);
        assert_eq!(refused.header("access-control-allow-methods"), None);
        let answer = server.send(&Request {
            method: "POST",
            target: "/graphql",
            headers: &[
                ("content-type", "application/json"),
                ("origin", "http://a.example"),
            ],
            body: br#"{"query":"{ total }"}"#,
        });
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("http://a.example")
        );
        assert_eq!(answer.header("vary"), Some("Origin"));
    }
}

#[test]
fn without_the_flag_there_is_no_cors() {
    for server in both(&[]) {
        let answer = server.send(&Request {
            method: "OPTIONS",
            target: "/graphql",
            headers: &preflight("http://a.example"),
            body: b"",
        });
        assert_eq!(answer.status, 405);
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
}

#[test]
fn the_id_of_a_request_comes_back() {
    for server in both(&[]) {
        let id = |headers: &[(&str, &str)]| {
            let answer = server.send(&Request {
                method: "GET",
                target: "/health",
                headers,
                body: b"",
            });
            answer.header("x-request-id").map(str::to_owned)
        };
        assert_eq!(id(&[("x-request-id", "a-1")]).as_deref(), Some("a-1"));
        assert_eq!(id(&[]), None);
    }
}
