//! Tests automatic persisted queries: hashes instead of texts.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Request, code, get, post};
use crate::gateway::Gateway;
use crate::stub::Stub;

const QUERY: &str = "query Names { locations { name } }";

/// SHA-256 of [`QUERY`], by `printf '…' | sha256sum`.
const HASH: &str = "c363c782d1abc98a27877f98ad4b74e6b33a0d5abdb16ec9b1b5fe5114a7bb75";

const ANSWER: &str = r#"{"data":{"locations":[{"name":"A"},{"name":"B"}]}}"#;

fn extensions(hash: &str) -> Value {
    json!({"persistedQuery": {"version": 1, "sha256Hash": hash}})
}

fn hashed(hash: &str) -> String {
    json!({"extensions": extensions(hash)}).to_string()
}

fn registering(query: &str, hash: &str) -> String {
    json!({"query": query, "extensions": extensions(hash)}).to_string()
}

#[test]
fn a_text_is_sent_once_and_its_hash_from_then_on() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let unknown = gateway.send(&post(&hashed(HASH)));
    assert_eq!(unknown.status, 200);
    assert_eq!(code(&unknown), "PERSISTED_QUERY_NOT_FOUND");
    assert!(unknown.text().contains("PersistedQueryNotFound"));
    let never = Some("private, no-cache, must-revalidate");
    assert_eq!(unknown.header("cache-control"), never);
    assert_eq!(planets.seen().len(), 0);
    let first = gateway.send(&post(&registering(QUERY, HASH)));
    assert_eq!(first.text(), ANSWER);
    // Upper-case and lower-case digits are one hash. It works on every connection, with any worker.
    for hash in [HASH.to_owned(), HASH.to_ascii_uppercase()] {
        for _ in 0..8 {
            assert_eq!(gateway.send(&post(&hashed(&hash))).text(), ANSWER);
        }
    }
    let target = format!(
        "/?extensions=%7B%22persistedQuery%22%3A%7B%22version%22%3A1%2C%22sha256Hash%22%3A%22{HASH}%22%7D%7D"
    );
    let headers = [("apollo-require-preflight", "1")];
    let by_get = Request {
        headers: &headers,
        ..get(&target)
    };
    assert_eq!(gateway.send(&by_get).text(), ANSWER);
    let metrics = gateway.ask_health("/metrics");
    let metrics = metrics.text();
    assert!(
        metrics.contains("apollo_router_cache_hit_count_total{kind=\"APQ\"} 17"),
        "{metrics}"
    );
    assert!(metrics.contains("apollo_router_cache_size{kind=\"APQ\"} 1"));
}

#[test]
fn a_hash_of_another_text_is_refused_and_nothing_is_remembered() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let wrong = gateway.send(&post(&registering("{ locations { id } }", HASH)));
    assert_eq!(wrong.status, 400);
    assert_eq!(code(&wrong), "PERSISTED_QUERY_HASH_MISMATCH");
    let unknown = gateway.send(&post(&hashed(HASH)));
    assert_eq!(code(&unknown), "PERSISTED_QUERY_NOT_FOUND");
    // A request that is not a persisted query is treated as if it had no extensions.
    for body in [
        hashed("12"),
        json!({"extensions": {"persistedQuery": {"version": 2, "sha256Hash": HASH}}}).to_string(),
        json!({"extensions": {"persistedQuery": "x"}}).to_string(),
    ] {
        let response = gateway.send(&post(&body));
        assert_eq!(code(&response), "MISSING_QUERY_STRING", "{body}");
    }
    // A text next to a hash that cannot be its hash is a mistake of the client.
    for extensions in [
        json!({"persistedQuery": {"version": 1, "sha256Hash": "12"}}),
        json!({"persistedQuery": {"version": 1, "sha256Hash": "x".repeat(64)}}),
        json!({"persistedQuery": {"version": 2, "sha256Hash": HASH}}),
    ] {
        let body = json!({"query": QUERY, "extensions": extensions}).to_string();
        let response = gateway.send(&post(&body));
        assert_eq!(response.status, 400, "{body}");
        assert_eq!(code(&response), "PERSISTED_QUERY_HASH_MISMATCH", "{body}");
    }
    let text = json!({"query": QUERY, "extensions": {"persistedQuery": 7}}).to_string();
    assert_eq!(gateway.send(&post(&text)).text(), ANSWER);
    assert_eq!(planets.seen().len(), 1);
}

#[test]
fn what_is_switched_off_says_so_and_texts_are_still_taken() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("apq: {enabled: false}"));
    assert_eq!(
        gateway.send(&post(&registering(QUERY, HASH))).text(),
        ANSWER
    );
    let refused = gateway.send(&post(&hashed(HASH)));
    assert_eq!(refused.status, 200);
    assert_eq!(code(&refused), "PERSISTED_QUERY_NOT_SUPPORTED");
    let metrics = gateway.ask_health("/metrics");
    assert!(!metrics.text().contains("kind=\"APQ\""));
}

#[test]
fn a_client_cannot_fill_the_memory_or_push_all_others_out_with_one_text() {
    let planets = Stub::planets();
    let limits = "apq: {router: {cache: {in_memory: {limit: 2, max_bytes: 64KiB}}}}";
    let gateway = Gateway::start(&planets.config(limits));
    assert_eq!(
        gateway.send(&post(&registering(QUERY, HASH))).text(),
        ANSWER
    );
    // More than a sixteenth of the cache.
    let long = format!("{QUERY}{}", " ".repeat(5000));
    let hash = "542d7b7bc8e0717cca6867ef58a9b63d1406c97288bc6547879010f2d49ced5a";
    assert_eq!(
        gateway.send(&post(&registering(&long, hash))).text(),
        ANSWER
    );
    let unknown = gateway.send(&post(&hashed(hash)));
    assert_eq!(code(&unknown), "PERSISTED_QUERY_NOT_FOUND");
    assert_eq!(gateway.send(&post(&hashed(HASH))).text(), ANSWER);
}

#[test]
fn scripts_see_the_text_and_whether_it_was_known() {
    let planets = Stub::planets();
    let script = "fn supergraph_service(service) { service.map_request(Fn(\"ask\")); }\n\
        fn ask(request) {\n\
          let hit = request.context[\"apollo::apq::cache_hit\"];\n\
          let registered = request.context[\"apollo::apq::registered\"];\n\
          request.headers[\"x-seen\"] = `${hit} ${registered} ${request.body.query}`;\n\
        }\n";
    let config = "rhai: {scripts: ., main: main.rhai}\n\
        headers: {all: {request: [{propagate: {named: x-seen}}]}}";
    let setup = crate::gateway::Setup::new(&planets.config(config));
    let gateway = setup.file("main.rhai", script).start();
    gateway.send(&post(&registering(QUERY, HASH)));
    gateway.send(&post(&hashed(HASH)));
    let seen = planets.seen();
    let told: Vec<_> = seen.iter().map(|it| it.header("x-seen")).collect();
    let (first, second) = (format!(" true {QUERY}"), format!("true  {QUERY}"));
    assert_eq!(told, [Some(first.trim()), Some(&*second)]);
}

#[test]
fn apollo_client_sends_a_text_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let first = "hash alone\n";
    for (config, how, expected) in [
        ("", "post", ["POST", "POST with text", "POST"]),
        ("", "get", ["GET", "POST with text", "GET"]),
    ] {
        let planets = Stub::planets();
        let gateway = Gateway::start(&planets.config(config));
        let url = format!("http://{}/", gateway.address);
        let Some(said) = test_client::node::run(&folder, "@apollo/client", &["apq.mjs", &url, how])
        else {
            return;
        };
        let [one, two, three] = expected;
        let expected = format!("{one} {first}{two}\n{three} {first}[\"A\",\"B\"]\n");
        assert_eq!(said, expected);
    }
    // If the feature is off, the client receives this error and then sends texts.
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("apq: {enabled: false}"));
    let url = format!("http://{}/", gateway.address);
    let said = test_client::node::run(&folder, "@apollo/client", &["apq.mjs", &url, "post"]);
    let expected = format!("POST {first}POST with text\nPOST with text\n[\"A\",\"B\"]\n");
    assert_eq!(said, Some(expected));
}
