//! Audits GraphQL over HTTP with the npm package graphql-http.

use crate::databases::Database;
use crate::server::start;

#[test]
fn every_audit_of_graphql_over_http_is_ok() {
    for database in Database::both() {
        let server = start(&database, &[]);
        for path in ["graphql", "v1/graphql"] {
            test_client::audit::all_are_ok(&format!("http://{}/{path}", server.address), &[]);
        }
    }
}
