//! Tests TLS with clients.

use test_client::tls_audit::TlsService;

use crate::server::command;

#[test]
fn clients_are_served_with_tls() {
    let service = TlsService {
        command: &command,
        path: "/.well-known/apollo/server-health",
        protocol: "h2",
    };
    service.check();
}
