//! Runs the audits of the npm package graphql-http for GraphQL over HTTP.

use crate::gateway::Gateway;
use crate::remote_schemas::PRODUCTS;
use crate::stub::Stub;

/// The header that proves that no foreign page made a browser send the request. Three audits send GETs that
/// the CSRF check would refuse without it.
const NO_FOREIGN_PAGE: &str = "apollo-require-preflight: true";

#[test]
fn every_audit_of_a_supergraph_is_ok() {
    let planets = Stub::planets();
    for path in ["/", "/graphql"] {
        let config = planets.config(&format!(
            "supergraph: {{introspection: true, path: {path}}}"
        ));
        let gateway = Gateway::start(&config);
        let url = format!("http://{}{path}", gateway.address);
        test_client::audit::all_are_ok(&url, &[NO_FOREIGN_PAGE]);
    }
}

#[test]
fn every_audit_of_merged_schemas_is_ok() {
    let gateway = Gateway::merged(PRODUCTS);
    let url = format!("http://{}/", gateway.address);
    test_client::audit::all_are_ok(&url, &[NO_FOREIGN_PAGE]);
}

#[test]
fn every_audit_is_ok_without_a_header_where_csrf_is_off() {
    let planets = Stub::planets();
    let more = "supergraph: {introspection: true}\ncsrf: {unsafe_disabled: true}";
    let gateway = Gateway::start(&planets.config(more));
    test_client::audit::all_are_ok(&format!("http://{}/", gateway.address), &[]);
}
