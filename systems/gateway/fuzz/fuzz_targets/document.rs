//! A document that passes the limits is parsed without losing the stack, and its fragments are counted
//! without following them for ever.
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
