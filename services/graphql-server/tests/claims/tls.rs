//! Tests TLS with clients.

use test_client::tls_audit::TlsService;

use crate::server::{PROGRAMS, command};

#[test]
fn clients_are_served_with_tls() {
    for program in PROGRAMS {
        let service = TlsService {
            command: &|flags| command(program, flags),
            path: "/health",
            protocol: "http/1.1",
        };
        service.check();
    }
}
