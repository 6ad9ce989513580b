//! Rhai: properties that scripts can assign, properties of the subgraph service, and every constant.

use gateway_extensions::Step;
use http::{HeaderValue, StatusCode};

use crate::scripts::{SERVICES, at_request, at_response, holds, scripted, thrown};
use crate::stand::{CLIENT_QUERY, Seen, exchange, fetch, origin, run};

#[test]
fn every_constant_is_the_name_of_its_context_entry() {
    let prefix = "apollo::demand_control::";
    for (constant, entry) in [
        (
            "APOLLO_AUTHENTICATION_JWT_CLAIMS",
            "apollo::authentication::jwt_claims".to_owned(),
        ),
        (
            "APOLLO_OPERATION_ID",
            "apollo::supergraph::operation_id".to_owned(),
        ),
        (
            "APOLLO_PERSISTED_QUERY_ID_KEY",
            "apollo::supergraph::persisted_query_id".to_owned(),
        ),
        (
            "APOLLO_ENTITY_CACHE_KEY",
            "apollo_entity_cache::key".to_owned(),
        ),
        (
            "APOLLO_RESPONSE_CACHE_KEY",
            "apollo::response_cache::key".to_owned(),
        ),
        (
            "APOLLO_COST_ESTIMATED_KEY",
            format!("{prefix}estimated_cost"),
        ),
        ("APOLLO_COST_ACTUAL_KEY", format!("{prefix}actual_cost")),
        ("APOLLO_COST_STRATEGY_KEY", format!("{prefix}strategy")),
        ("APOLLO_COST_RESULT_KEY", format!("{prefix}result")),
        (
            "APOLLO_COST_BY_SUBGRAPH_ESTIMATED_KEY",
            format!("{prefix}estimated_cost_by_subgraph"),
        ),
        (
            "APOLLO_COST_BY_SUBGRAPH_ACTUAL_KEY",
            format!("{prefix}actual_cost_by_subgraph"),
        ),
        (
            "APOLLO_COST_BY_SUBGRAPH_RESULT_KEY",
            format!("{prefix}result_by_subgraph"),
        ),
        (
            "APOLLO_SUBSCRIPTION_WS_CUSTOM_CONNECTION_PARAMS",
            "apollo.subscription.custom_connection_params".to_owned(),
        ),
    ] {
        holds(
            "router_service",
            &format!("Router.{constant} == \"{entry}\""),
        );
    }
}

#[test]
fn what_can_be_written_can_be_written_whole() {
    for service in SERVICES {
        let body = r#"
            request.headers = request.headers;
            request.context = request.context;
            let uri = request.uri;
            uri.path = "/whole";
            request.uri = uri;
        "#;
        let (request, exchange, thrown) = at_request(service, body);
        assert!(thrown.is_none(), "{service}: {thrown:?}");
        assert_eq!(request.headers.len(), 3, "{service}");
        assert_eq!(request.uri.path(), "/whole", "{service}");
        assert_eq!(exchange.context.get("number"), Some(serde_json::json!(3)));
    }
    for service in &SERVICES[1..] {
        let body = r#"
            let body = request.body;
            body.query = "{b}";
            body.operation_name = ();
            body.variables = #{};
            body.extensions = #{};
            request.body = body;
        "#;
        let (request, _, thrown) = at_request(service, body);
        assert!(thrown.is_none(), "{service}: {thrown:?}");
        assert_eq!(request.body, r#"{"query":"{b}"}"#);
    }
    for service in SERVICES {
        let after = at_response(
            service,
            "response.headers = response.headers; response.context = response.context;",
        );
        assert_eq!(after.status, StatusCode::OK);
        assert_eq!(after.headers["vary"], "origin");
    }
    for service in &SERVICES[1..] {
        let body = r#"
            let body = response.body;
            body.data = #{ z: 1 };
            body.errors = [];
            body.extensions = #{};
            response.body = body;
        "#;
        assert_eq!(at_response(service, body).body, r#"{"data":{"z":1}}"#);
        let after = at_response(service, "response.body.data = 5;");
        assert_eq!(after.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}

#[test]
fn a_header_that_is_not_utf_8_is_read_with_marks_in_place_of_its_bytes() {
    let script = r#"fn router_service(service) {
        service.map_request(|request| { request.context["read"] = request.headers["bin"]; });
    }"#;
    let service = scripted(script, "http://localhost:1").router.unwrap();
    let exchange = exchange(&[]);
    let mut request = at_request("router_service", "").0;
    let value = HeaderValue::from_bytes(b"a\xff").unwrap();
    request.headers.insert("bin", value);
    let step = run(service.request(&exchange, &mut request));
    assert!(matches!(step, Step::Continue));
    assert_eq!(exchange.context.text("read").unwrap(), "a\u{fffd}");
}

/// Runs callbacks of the subgraph service around a request. Returns the body of the result and the request
/// that the subgraph received.
fn at_subgraph(on_request: &str, on_response: &str) -> (String, Option<Seen>) {
    let main = format!(
        "fn subgraph_service(service, subgraph) {{
            service.map_request(|request| {{ {on_request} }});
            service.map_response(|response| {{ {on_response} }});
        }}"
    );
    run(async {
        let origin = origin().await;
        let worker = scripted(&main, &origin.url);
        let exchange = exchange(&[("x-a", "1"), ("x-a", "2")]);
        exchange.context.insert("number", serde_json::json!(3));
        let outcome = fetch(&worker, &exchange).await;
        let body = String::from_utf8(outcome.body.to_vec()).unwrap();
        (body, origin.seen().pop())
    })
}

#[test]
fn every_property_of_a_request_at_a_subgraph_can_be_read() {
    for condition in [
        "request.context[\"number\"] == 3",
        "request.id.len() == 36",
        "request.subgraph_request_id.len() == 36",
        "request.subgraph_request_id != request.id",
        "request.headers[\"x-a\"] == \"1\"",
        "request.headers.values(\"x-a\").len() == 2",
        "request.method == \"POST\"",
        "request.uri.path == \"/graphql\"",
        "request.uri.scheme == ()",
        "request.uri.host == ()",
        "request.uri.port == ()",
        "request.body.query == \"query Q{a}\"",
        "request.body.operation_name == \"Q\"",
        "request.body.variables.n == 1",
        "request.body.extensions.x[0].y == \"deep\"",
        "!(\"x-a\" in request.subgraph.headers)",
        "request.subgraph.body.query == \"query Q__one__0{a}\"",
        "request.subgraph.body.operation_name == \"Q__one__0\"",
        "request.subgraph.body.variables.len() == 0",
        "request.subgraph.uri.scheme == \"http\"",
        "request.subgraph.uri.host == \"127.0.0.1\"",
        "request.subgraph.uri.port > 0",
        "request.subgraph.uri.path == \"/\"",
        "subgraph == \"one\"",
    ] {
        let body = format!("if !({condition}) {{ throw \"no\"; }}");
        let (body, _) = at_subgraph(&body, "");
        assert_eq!(body, r#"{"data":{"a":1}}"#, "{condition}");
    }
}

#[test]
fn the_outgoing_request_can_be_replaced_whole_and_the_clients_cannot() {
    let (body, seen) = at_subgraph(
        r#"
        let headers = request.subgraph.headers;
        headers["source"] = "whole";
        request.subgraph.headers = headers;
        let uri = request.subgraph.uri;
        uri.path = "/whole";
        request.subgraph.uri = uri;
        let body = request.subgraph.body;
        body.query = "{whole}";
        request.subgraph.body = body;
        request.headers["x-a"] = "ignored";
        "#,
        "",
    );
    assert_eq!(body, r#"{"data":{"a":1}}"#);
    let seen = seen.unwrap();
    assert_eq!(seen.all("source"), ["whole"]);
    assert_eq!(seen.path, "/whole");
    assert_eq!(seen.json()["query"], "{whole}");
    assert_eq!(seen.all("x-a"), [""; 0]);
    for write in [
        "request.headers = request.headers;",
        "request.uri = request.uri;",
        "request.body = request.body;",
        "let x = request.query_plan;",
        "let uri = request.uri; uri.port = 80;",
    ] {
        let (body, seen) = at_subgraph(write, "");
        assert!(body.contains("rhai execution error"), "{write}: {body}");
        assert!(seen.is_none(), "{write}");
    }
}

#[test]
fn every_property_of_a_response_at_a_subgraph_can_be_read_and_written() {
    let on_request = r#"
        request.context["ids"] = request.id + request.subgraph_request_id;
    "#;
    for condition in [
        "response.context[\"number\"] == 3",
        "response.context[\"ids\"] == response.id + response.subgraph_request_id",
        "response.headers[\"content-type\"] == \"application/json\"",
        "response.status_code == status_code_from_int(200)",
        "response.body.data.a == 1",
        "response.body.errors.len() == 0",
        "response.body.extensions.len() == 0",
    ] {
        let check = format!("if !({condition}) {{ throw \"no\"; }}");
        let (body, _) = at_subgraph(on_request, &check);
        assert_eq!(body, r#"{"data":{"a":1}}"#, "{condition}");
    }
    let (body, _) = at_subgraph(
        "",
        r##"
        response.headers = response.headers;
        response.context = response.context;
        let body = response.body;
        body.data = #{ b: 2 };
        body.errors = [#{ message: "m" }];
        body.extensions = #{ e: 1 };
        response.body = body;
        "##,
    );
    assert_eq!(
        body,
        r#"{"data":{"b":2},"errors":[{"message":"m"}],"extensions":{"e":1}}"#
    );
    for unknown in [
        "response.is_primary()",
        "response.headers_are_available()",
        "response.status_code = status_code_from_int(201)",
        "response.id = \"x\"",
    ] {
        let (body, _) = at_subgraph("", &format!("{unknown};"));
        assert!(body.contains("rhai execution error"), "{unknown}: {body}");
    }
}

#[test]
fn ids_stay_and_cannot_be_written() {
    for service in SERVICES {
        let message = thrown(service, "request.subgraph_request_id");
        assert!(message.contains("unknown property"), "{service}: {message}");
    }
    let (request, _, thrown) = at_request(
        "supergraph_service",
        "if request.id != request.id { throw 1; }",
    );
    assert!(thrown.is_none());
    assert_eq!(request.body, CLIENT_QUERY);
}
