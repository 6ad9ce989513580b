//! Ports for systems.

use std::io;
use std::net::SocketAddr;

/// A port that nobody else gets until this is dropped.
#[derive(Debug)]
pub struct PortLease {}

impl PortLease {
    /// The port's number.
    #[must_use]
    pub fn port(&self) -> u16 {
        unimplemented!()
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        unimplemented!()
    }
}

/// Reserves a port on which nothing listens. Drop the lease right before
/// spawning the system that is to listen there.
pub fn free_port() -> io::Result<PortLease> {
    unimplemented!()
}
