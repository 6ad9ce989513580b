//! Tests TLS with clients.

use test_client::tls_audit::TlsService;

use crate::databases::Database;
use crate::server::command;

#[test]
fn clients_are_served_with_tls() {
    let database = Database::sqlite();
    let service = TlsService {
        command: &|flags| command(&database, flags),
        path: "/health",
        protocol: "h2",
    };
    service.check();
}
