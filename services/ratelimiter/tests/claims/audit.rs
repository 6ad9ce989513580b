//! Audits GraphQL over HTTP with the npm package graphql-http.

use crate::server::start;

/// SHOULD rules that require 200 for `application/json`. The contract's clients expect 400 for documents that
/// cannot be parsed or are not valid, and for variables that do not fit.
const DIFFERENT: [&str; 3] = ["572B", "FDE2", "7B9B"];

#[test]
fn every_audit_is_ok_but_the_three_that_the_contract_answers_otherwise() {
    // Every path is the endpoint. The original's clients use the first path.
    for (flags, path) in [
        (&[][..], ""),
        (&[], "graphql"),
        (&["--compat", "original"], "graphql"),
    ] {
        let server = start(flags);
        let url = format!("http://{}/{path}", server.address);
        if let Some(report) = test_client::audit::run(&url, &[]) {
            assert_eq!(report.not_ok, DIFFERENT, "{flags:?}: {}", report.text);
            let text = report.text;
            assert!(text.contains("58 of 61 audits ok"), "{text}");
        }
    }
}
