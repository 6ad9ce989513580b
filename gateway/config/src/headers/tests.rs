//! Tests of the headers that telemetry masks.

use serde_json::json;

use super::*;
use crate::header_masking::SENSITIVE;

fn names(masked: &[HeaderName]) -> String {
    let names: Vec<&str> = masked.iter().map(HeaderName::as_str).collect();
    names.join(" ")
}

/// The original merges the lists in the same way.
#[test]
fn a_subgraph_extends_the_list_of_all() {
    let usual = names(&SENSITIVE);
    let more = |names: &str| format!("{usual} {names}");
    let off = json!({"enabled": false});
    let x = json!({"sensitive_headers": ["X"]});
    let y = json!({"sensitive_headers": ["y"]});
    let only_y = json!({"sensitive_headers": ["y"], "replace_defaults": true});
    for (all, own, client, subgraph) in [
        (json!(null), json!(null), usual.clone(), usual.clone()),
        (x.clone(), json!(null), more("x"), more("x")),
        (off.clone(), json!(null), String::new(), String::new()),
        (only_y.clone(), json!(null), "y".to_owned(), "y".to_owned()),
        (x.clone(), y.clone(), more("x"), more("x y")),
        (off.clone(), y.clone(), String::new(), more("y")),
        (x.clone(), off.clone(), more("x"), String::new()),
        (x, only_y, more("x"), "y".to_owned()),
    ] {
        let headers: Headers = serde_json::from_value(json!({
            "all": {"request": {"masking": all}},
            "subgraphs": {"a": {"request": {"masking": own}}},
        }))
        .unwrap();
        assert_eq!(names(&headers.masked_in_requests(None)), client, "{all}");
        let found = headers.masked_in_requests(Some("a"));
        assert_eq!(names(&found), subgraph, "{all} {own}");
        let found = headers.masked_in_responses(Some("a"));
        assert_eq!(names(&found), usual, "{all} {own}");
    }
}
