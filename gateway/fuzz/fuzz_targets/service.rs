//! Merges any schema of a remote service, and checks that the result can be queried. Any response of the
//! service must become JSON, and so must any request to a REST endpoint.
#![no_main]

use std::path::Path;
use std::sync::{Arc, LazyLock};

use gateway_config::{Config, Surroundings, read};
use gateway_federation::OperationOptions;
use gateway_remote::{
    Merged, REST_PREFIX, RestAnswer, RestEndpoints, RestRequest, SourceSchema, unwrap_response,
};
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

const CONFIG: &str = "
remote_schemas:
  - {name: one, url: 'http://one', customization: {type_names: {prefix: One_}, root_fields_namespace: one}}
  - {name: two, url: 'http://two'}
query_collections:
  - {name: all, queries: [{name: read, query: 'query ($id: ID!, $n: Int, $f: Float, $b: Boolean, $l: [Int]) { a }'}]}
rest_endpoints:
  - {name: read, url: 'thing/:id', methods: [GET, POST], query: {collection_name: all, query_name: read}}
";

static READY: LazyLock<(Config, RestEndpoints)> = LazyLock::new(|| {
    let reading = read(Path::new("router.yaml"), CONFIG, &Nothing, false);
    let config = reading.unwrap_or_else(|mistakes| panic!("{mistakes}")).config;
    let endpoints = RestEndpoints::new(&config);
    (config, endpoints)
});

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fuzz_target!(|bytes: &[u8]| {
    let (config, endpoints) = &*READY;
    if let Ok(schema) = SourceSchema::read(bytes, 1_000) {
        let schema = Some(Arc::new(schema));
        let options = OperationOptions::default();
        let merged = Merged::new(config, &[schema.clone(), schema], options, false);
        assert!(merged.prepare("{ __typename }", None).is_ok());
    }
    let (RestAnswer::Data(answer) | RestAnswer::Error(_, answer)) = unwrap_response(bytes);
    assert!(is_json(&answer));
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (path, rest) = text.split_once('\0').unwrap_or((text, ""));
    let (parameters, body) = rest.split_once('\0').unwrap_or((rest, ""));
    let asked = RestRequest {
        method: if body.is_empty() { "GET" } else { "POST" },
        path: &format!("{REST_PREFIX}{path}"),
        parameters,
        body: body.as_bytes(),
    };
    match endpoints.graphql(asked) {
        Ok(body) => assert!(is_json(&body)),
        Err(error) => assert!(is_json(&error.body())),
    }
});
