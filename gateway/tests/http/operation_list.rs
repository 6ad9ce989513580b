//! Tests lists of registered operations.

use std::path::Path;

use serde_json::json;

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::Stub;

const NAMES: &str = "query Names { locations { name } }";
const ANSWER: &str = r#"{"data":{"locations":[{"name":"A"},{"name":"B"}]}}"#;

fn manifest() -> String {
    json!({
        "format": "apollo-persisted-query-manifest",
        "version": 1,
        "operations": [
            {"id": "names-1", "name": "Names", "type": "query", "body": NAMES},
            {"id": "for-web", "name": "Ids", "type": "query", "body": "query Ids { locations { id } }", "clientName": "web"},
        ],
    })
    .to_string()
}

fn gateway(planets: &Stub, config: &str) -> Gateway {
    let setup = Setup::new(&planets.config(config));
    setup.file("list.json", &manifest()).start()
}

fn by_id(id: &str) -> String {
    json!({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": id}}}).to_string()
}

fn by_text(text: &str) -> String {
    json!({ "query": text }).to_string()
}

const LIST: &str = "persisted_queries: {enabled: true, local_manifests: [list.json]}\n";
const SAFELIST: &str = "apq: {enabled: false}\npersisted_queries: {enabled: true, local_manifests: [list.json], safelist: {enabled: true}}\n";
const IDS_ONLY: &str = "apq: {enabled: false}\nsupergraph: {introspection: true}\npersisted_queries: {enabled: true, log_unknown: true, local_manifests: [list.json], safelist: {enabled: true, require_id: true}}\n";

#[test]
fn an_id_of_the_list_is_carried_out_and_registered_hashes_still_are() {
    let planets = Stub::planets();
    let gateway = gateway(&planets, LIST);
    assert_eq!(gateway.send(&post(&by_id("names-1"))).text(), ANSWER);
    assert_eq!(gateway.send(&post(&by_text(NAMES))).text(), ANSWER);
    // An id that is not in a list is looked up in the hashes that clients register.
    let unknown = gateway.send(&post(&by_id("x")));
    assert_eq!(code(&unknown), "MISSING_QUERY_STRING");
    let hash = "c363c782d1abc98a27877f98ad4b74e6b33a0d5abdb16ec9b1b5fe5114a7bb75";
    let unknown = gateway.send(&post(&by_id(hash)));
    assert_eq!(code(&unknown), "PERSISTED_QUERY_NOT_FOUND");
}

#[test]
fn a_safelist_lets_texts_of_the_list_pass_and_no_others() {
    let planets = Stub::planets();
    let gateway = gateway(&planets, SAFELIST);
    for text in [
        NAMES,
        "query Names{locations{name}}",
        "# a note\nquery Names {\n  locations { name, }\n}",
    ] {
        for _ in 0..2 {
            assert_eq!(gateway.send(&post(&by_text(text))).text(), ANSWER, "{text}");
        }
    }
    let asked = planets.seen().len();
    for text in [
        "query Other { locations { name } }",
        "query Names { locations { name id } }",
        "query Names { a: locations { name } }",
        "query Names { locations { name } } query B { locations { id } }",
        "{ __schema { queryType { name } } }",
        "{ locations { name",
        "query Names { locations { name } } fragment F on Location { id }",
    ] {
        for _ in 0..2 {
            let refused = gateway.send(&post(&by_text(text)));
            assert_eq!(
                (refused.status, code(&refused).as_str()),
                (403, "QUERY_NOT_IN_SAFELIST"),
                "{text}"
            );
        }
    }
    let unknown = gateway.send(&post(&by_id("nothing")));
    assert_eq!(
        (unknown.status, code(&unknown).as_str()),
        (404, "PERSISTED_QUERY_NOT_IN_LIST")
    );
    let never = Some("private, no-cache, must-revalidate");
    assert_eq!(unknown.header("cache-control"), never);
    let both = json!({"query": NAMES, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "names-1"}}});
    let both = gateway.send(&post(&both.to_string()));
    assert_eq!(
        (both.status, code(&both).as_str()),
        (400, "CANNOT_SEND_PQ_ID_AND_BODY")
    );
    assert_eq!(planets.seen().len(), asked);
    let metrics = gateway.ask_health("/metrics");
    let metrics = metrics.text();
    assert!(
        metrics.contains("apollo_router_operations_persisted_queries_rejected_total 14"),
        "{metrics}"
    );
    assert!(metrics.contains("apollo_router_operations_persisted_queries_not_found_total 1"));
}

#[test]
fn where_ids_are_required_only_introspection_comes_as_a_text() {
    let planets = Stub::planets();
    let gateway = gateway(&planets, IDS_ONLY);
    assert_eq!(gateway.send(&post(&by_id("names-1"))).text(), ANSWER);
    let refused = gateway.send(&post(&by_text(NAMES)));
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (400, "PERSISTED_QUERY_ID_REQUIRED")
    );
    let schema = gateway.send(&post(&by_text("{ __schema { queryType { name } } }")));
    assert_eq!(schema.status, 200);
    let mixed = by_text("{ __typename locations { id } }");
    assert_eq!(
        code(&gateway.send(&post(&mixed))),
        "PERSISTED_QUERY_ID_REQUIRED"
    );
}

#[test]
fn an_id_of_one_client_is_for_that_client() {
    let planets = Stub::planets();
    let gateway = gateway(&planets, SAFELIST);
    let body = by_id("for-web");
    let other = gateway.send(&post(&body));
    assert_eq!(code(&other), "PERSISTED_QUERY_NOT_IN_LIST");
    let mut headers = post(&body).headers.to_vec();
    headers.push(("apollographql-client-name", "web"));
    let own = crate::client::Request {
        headers: &headers,
        ..post(&body)
    };
    let answer = gateway.send(&own).json();
    assert_eq!(answer["data"]["locations"][0]["id"], "1");
}

#[test]
fn stages_see_the_text_and_the_id_and_the_extension_is_gone() {
    let planets = Stub::planets();
    let script = "fn supergraph_service(service) { service.map_request(Fn(\"ask\")); }\n\
        fn ask(request) {\n\
          let id = request.context[Router.APOLLO_PERSISTED_QUERY_ID_KEY];\n\
          request.headers[\"x-seen\"] = `${id} ${request.body.query} ${request.body.extensions}`;\n\
        }\n";
    let config = format!(
        "{LIST}rhai: {{scripts: ., main: main.rhai}}\nheaders: {{all: {{request: [{{propagate: {{named: x-seen}}}}]}}}}"
    );
    let setup = Setup::new(&planets.config(&config));
    let gateway = setup
        .file("list.json", &manifest())
        .file("main.rhai", script)
        .start();
    let body =
        json!({"extensions": {"a": 1, "persistedQuery": {"version": 1, "sha256Hash": "names-1"}}});
    gateway.send(&post(&body.to_string()));
    let seen = planets.only();
    let expected = format!("names-1 {NAMES} #{{\"a\": 1}}");
    assert_eq!(seen.header("x-seen"), Some(expected.as_str()));
}

#[test]
fn what_a_list_needs_is_told_at_the_start() {
    let planets = Stub::planets();
    let fails = |config: &str, list: &str| {
        let setup = Setup::new(&planets.config(config)).file("list.json", list);
        let (status, said) = setup.fail();
        assert_eq!(status.code(), Some(2), "{said}");
        said
    };
    let with_apq = "persisted_queries: {enabled: true, local_manifests: [list.json], safelist: {enabled: true}}";
    assert!(fails(with_apq, &manifest()).contains("set `apq.enabled: false`"));
    let without = "persisted_queries: {enabled: true}";
    assert!(fails(without, &manifest()).contains("name files in `local_manifests`"));
    assert!(fails(LIST, "{}").contains("list.json"));
    let other = manifest().replace("\"version\":1", "\"version\":2");
    assert!(fails(LIST, &other).contains("in version 1"));
    let twice = manifest()
        .replace("for-web", "names-1")
        .replace(",\"clientName\":\"web\"", "");
    let twice = twice.replace("\"clientName\":\"web\",", "");
    assert!(fails(LIST, &twice).contains("has two texts"), "{twice}");
    let missing = "persisted_queries: {enabled: true, local_manifests: [none.json]}";
    assert!(fails(missing, "{}").contains("none.json"));
}

#[test]
fn a_changed_list_is_read_again_and_a_broken_one_is_not_used() {
    let planets = Stub::planets();
    let config = SAFELIST.replace(
        "enabled: true, local",
        "enabled: true, hot_reload: true, local",
    );
    let mut gateway = gateway(&planets, &config);
    let path = gateway.path("list.json");
    let body = by_id("names-2");
    assert_eq!(
        code(&gateway.send(&post(&body))),
        "PERSISTED_QUERY_NOT_IN_LIST"
    );
    std::fs::write(&path, manifest().replace("names-1", "names-2")).unwrap();
    gateway.wait_for("reloaded: files changed");
    let answer = gateway.send(&post(&body)).json();
    assert_eq!(answer["data"]["locations"][0]["name"], "A");
    std::fs::write(&path, "{").unwrap();
    gateway.wait_for("not reloaded");
    assert_eq!(gateway.send(&post(&body)).json(), answer);
}

#[test]
fn apollo_client_asks_by_the_ids_of_a_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let planets = Stub::planets();
    // The client's link for lists sends the id of its text, never the text.
    let gateway = gateway(&planets, IDS_ONLY);
    let url = format!("http://{}/", gateway.address);
    let words = ["list.mjs", &url, "names-1"];
    let Some(said) = test_client::node::run(&folder, "@apollo/client", &words) else {
        return;
    };
    assert_eq!(said, "POST hash alone\n[\"A\",\"B\"]\n");
}
