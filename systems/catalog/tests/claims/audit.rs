//! GraphQL over HTTP, held to the npm package graphql-http.

use crate::databases::Database;
use crate::server::start;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let server = start(&Database::sqlite(), &[]);
    test_client::audit::all_are_ok(&format!("http://{}/graphql", server.address), &[]);
}
