//! GraphQL over HTTP, held to the npm package graphql-http.

use crate::databases::Database;
use crate::server::Server;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let server = Server::start(&Database::sqlite(), &[]);
    test_client::audit::all_are_ok(&format!("http://{}/graphql", server.address), &[]);
}
