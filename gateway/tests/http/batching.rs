//! Tests batches of operations in one request.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Stub, json as answer_json};

const ON: &str = "batching: {enabled: true, mode: batch_http_link}\n";

fn item(text: &str) -> Value {
    json!({ "query": text })
}

const NAMES: &str = "{ locations { name } }";

#[test]
fn a_list_is_answered_by_a_list_in_its_order() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(ON));
    let list = json!([
        item(NAMES),
        item("{ wrong }"),
        item("{ location(id: \"1\") { name } }"),
        7,
        [],
        {}
    ]);
    let response = gateway.send(&post(&list.to_string()));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    let answers = response.json();
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 6);
    assert_eq!(answers[0]["data"]["locations"][1]["name"], "B");
    let codes: Vec<_> = answers
        .iter()
        .map(|it| it["errors"][0]["extensions"]["code"].as_str())
        .collect();
    assert_eq!(codes[1], Some("GRAPHQL_VALIDATION_FAILED"));
    assert_eq!(answers[2]["data"]["location"]["name"], "A");
    assert_eq!(codes[3], Some("INVALID_GRAPHQL_REQUEST"));
    assert_eq!(codes[4], Some("BATCHING_NOT_ENABLED"));
    assert_eq!(codes[5], Some("MISSING_QUERY_STRING"));
    // A single operation gives an object, and a list of one operation gives a list.
    let one = gateway.send(&post(&item(NAMES).to_string())).json();
    let list = gateway
        .send(&post(&json!([item(NAMES)]).to_string()))
        .json();
    assert_eq!(list, json!([one]));
}

#[test]
fn lists_that_cannot_be_answered_are_refused_whole() {
    let planets = Stub::planets();
    let config = "batching: {enabled: true, maximum_size: 3, mode: batch_http_link}\n";
    let gateway = Gateway::start(&planets.config(config));
    let list = |count: usize| json!(vec![item(NAMES); count]).to_string();
    assert_eq!(gateway.send(&post(&list(3))).status, 200);
    let asked = planets.seen().len();
    let refused = gateway.send(&post(&list(4)));
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (422, "BATCH_LIMIT_EXCEEDED")
    );
    for body in ["[]", " [ ] ", "[", "[{}", "[{}]x", "[{},]"] {
        let refused = gateway.send(&post(body));
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (400, "INVALID_GRAPHQL_REQUEST"),
            "{body}"
        );
    }
    // The smallest possible items: two bytes each, up to the maximum size of a body.
    let many = format!("[{}1]", "1,".repeat(900_000));
    let refused = gateway.send(&post(&many));
    assert_eq!(code(&refused), "BATCH_LIMIT_EXCEEDED");
    assert_eq!(planets.seen().len(), asked);
}

#[test]
fn what_is_off_stays_off() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let refused = gateway.send(&post("[{\"query\":\"{ locations { name } }\"}]"));
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (400, "BATCHING_NOT_ENABLED")
    );
}

#[test]
fn the_router_stage_sees_the_list_once_and_each_operation_has_a_context_of_its_own() {
    let planets = Stub::planets();
    let script = "fn router_service(service) { service.map_request(Fn(\"enter\")); service.map_response(Fn(\"leave\")); }\n\
        fn enter(request) { request.context[\"router\"] = \"seen\"; }\n\
        fn leave(response) { response.headers[\"x-left\"] = \"once\"; }\n\
        fn supergraph_service(service) { service.map_request(Fn(\"ask\")); }\n\
        fn ask(request) {\n\
          let before = if \"mine\" in request.context { \"shared\" } else { \"own\" };\n\
          request.context[\"mine\"] = 1;\n\
          request.headers[\"x-seen\"] = `${request.context.router} ${before}`;\n\
        }\n";
    let config = format!(
        "{ON}rhai: {{scripts: ., main: main.rhai}}\nheaders: {{all: {{request: [{{propagate: {{named: x-seen}}}}]}}}}"
    );
    let gateway = Setup::new(&planets.config(&config))
        .file("main.rhai", script)
        .start();
    let list = json!([item(NAMES), item("{ locations { id } }")]).to_string();
    let response = gateway.send(&post(&list));
    assert_eq!(response.header("x-left"), Some("once"));
    let seen = planets.seen();
    assert_eq!(seen.len(), 2);
    for one in seen {
        assert_eq!(one.header("x-seen"), Some("seen own"));
    }
}

#[test]
fn the_answers_to_a_list_are_bounded_together() {
    let long = "x".repeat(200_000);
    let body = json!({"data": {"locations": [{"name": long}]}}).to_string();
    let stub = Stub::start(move |_| answer_json(&body));
    let config = format!("{ON}limits: {{response_max_bytes: 500KiB}}\n");
    let gateway = Gateway::start(&stub.config(&config));
    let list = json!(vec![item(NAMES); 20]).to_string();
    let response = gateway.send(&post(&list));
    let answers = response.json();
    let answers = answers.as_array().unwrap();
    let whole = answers.iter().filter(|it| it["data"].is_object()).count();
    assert_eq!((answers.len(), whole), (20, 2));
    let code = &answers[19]["errors"][0]["extensions"]["code"];
    assert_eq!(code, "RESPONSE_TOO_LARGE");
    assert!(response.text().len() < 520_000);
}

#[test]
fn apollo_client_sends_what_is_asked_for_at_once_in_one_request() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(ON));
    let url = format!("http://{}/", gateway.address);
    let words = ["batch.mjs", &url];
    let Some(said) = test_client::node::run(&folder, "@apollo/client", &words) else {
        return;
    };
    assert_eq!(said, "a list of 3\n[2,2,\"CombinedGraphQLErrors\"]\n");
}
