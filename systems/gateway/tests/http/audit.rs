//! GraphQL over HTTP, held to the npm package graphql-http.

use crate::gateway::Gateway;
use crate::stub::Stub;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("supergraph: {introspection: true}"));
    // The header with which a client says that no foreign page made a browser send this.
    let header = "apollo-require-preflight: true";
    test_client::audit::all_are_ok(&format!("http://{}/", gateway.address), &[header]);
}
