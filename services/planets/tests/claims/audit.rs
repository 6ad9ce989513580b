//! Audits GraphQL over HTTP with the npm package graphql-http.

use crate::server::start;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let server = start(&[]);
    for path in ["locations", "reviews"] {
        test_client::audit::all_are_ok(&format!("http://{}/{path}", server.address), &[]);
    }
}
