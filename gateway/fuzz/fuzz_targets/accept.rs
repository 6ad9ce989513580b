//! Checks that several `Accept` lines count as one joined line, for any bytes. The gateway chooses a page
//! only if it has one.
#![no_main]

use graphql_http::{Negotiated, is_json, negotiate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = is_json(Some(bytes), &["application/json"]);
    let lines = || bytes.split(|byte| *byte == b'\n');
    let chosen = negotiate(lines(), true);
    assert_ne!(negotiate(lines(), false), Some(Negotiated::Page));
    // An open quote would extend over the comma.
    if !bytes.contains(&b'"') {
        let joined = lines().collect::<Vec<_>>().join(&b", "[..]);
        assert_eq!(negotiate([joined.as_slice()].into_iter(), true), chosen);
    }
});
