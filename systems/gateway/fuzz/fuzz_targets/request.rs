//! No bytes make the decoder of requests panic, and what it reads is what `serde_json` reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

// The file itself: the crate around it would bring an HTTP server along.
#[path = "../../src/decode.rs"]
mod decode;

use decode::{GraphqlRequest, from_body, from_parameters};

fn assert_same(one: &GraphqlRequest<'_>, other: &GraphqlRequest<'_>) {
    assert_eq!(one.query, other.query);
    assert_eq!(one.operation_name, other.operation_name);
    assert_eq!(one.variables, other.variables);
    assert_eq!(one.extensions, other.extensions);
}

fn assert_survives_writing(request: &GraphqlRequest<'_>) {
    let written = request.to_json();
    let again = from_body(&written).expect("what was read once is read again");
    assert_same(request, &again);
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = from_body(bytes) {
        assert!(!request.query.is_empty());
        assert_survives_writing(&request);
        // The reference gives up on nesting that a raw text may have.
        if let Ok(body) = serde_json::from_slice::<Value>(bytes) {
            assert_eq!(body["query"], *request.query);
            assert_eq!(body["operationName"].as_str(), request.operation_name.as_deref());
            for (name, text) in [
                ("variables", &request.variables),
                ("extensions", &request.extensions),
            ] {
                let text = text.as_deref().unwrap_or("null");
                assert_eq!(body[name], serde_json::from_str::<Value>(text).unwrap());
            }
        }
    }
    if let Ok(parameters) = std::str::from_utf8(bytes)
        && let Ok(request) = from_parameters(parameters)
    {
        assert!(!request.query.is_empty());
        assert_survives_writing(&request);
    }
});
