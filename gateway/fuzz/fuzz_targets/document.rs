//! Checks that a document within the limits is parsed without a stack overflow. Its fragments are counted
//! without endless recursion.
#![no_main]

use async_graphql::parser::parse_query;
use graphql_document::{check_fragments, check_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if check_text(text).is_ok()
        && let Ok(document) = parse_query(text)
    {
        let _ = check_fragments(&document);
    }
});
