//! Audits GraphQL over HTTP with the npm package graphql-http.

use crate::server::both;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    for server in both(&[]) {
        test_client::audit::all_are_ok(&format!("http://{}/graphql", &server.address), &[]);
    }
}
