//! What a service allows its clients.

use std::time::Duration;

/// Limits of a service's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time that a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// Time that connections may take that are open when the service is to stop.
    pub stop_timeout: Duration,
}
