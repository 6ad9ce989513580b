//! Checks that the request decoder never panics, and that its result equals the result of `serde_json`.
#![no_main]

use graphql_http::{GraphqlRequest, RawObject, RawObjectBuf, from_body, from_parameters, to_json};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde_json::Value;

type Raw<'a> = GraphqlRequest<'a, RawObject<'a>, RawObject<'a>>;

fn assert_survives_writing<V: Serialize, E: Serialize>(request: &GraphqlRequest<'_, V, E>) {
    let written = to_json(request);
    let again: Raw<'_> = from_body(&written).expect("what was read once is read again");
    assert_eq!(to_json(&again), written);
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = from_body::<RawObject<'_>, RawObject<'_>>(bytes) {
        assert_survives_writing(&request);
        // All readers accept an accepted request, with equal results.
        let body: Value = serde_json::from_slice(bytes).expect("all readers read it");
        assert_eq!(body["query"], *request.query);
        assert_eq!(body["operationName"].as_str(), request.operation_name.as_deref());
        for (name, text) in [
            ("variables", request.variables),
            ("extensions", request.extensions),
        ] {
            let text = text.map_or("null", RawObject::text);
            assert_eq!(body[name], serde_json::from_str::<Value>(text).unwrap());
        }
    }
    if let Ok(parameters) = std::str::from_utf8(bytes)
        && let Ok(request) = from_parameters::<RawObjectBuf, RawObjectBuf>(parameters)
    {
        assert_survives_writing(&request);
    }
});
