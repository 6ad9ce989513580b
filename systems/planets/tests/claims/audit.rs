//! GraphQL over HTTP, held to the npm package graphql-http.

use crate::server::Server;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let server = Server::start(&[]);
    for path in ["locations", "reviews"] {
        test_client::audit::all_are_ok(&format!("http://{}/{path}", server.address), &[]);
    }
}
