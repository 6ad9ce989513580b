//! For tests of systems only: an HTTP/1.1 client that sends what a test wants to send, byte for
//! byte, a service as a process, the audit of GraphQL over HTTP, a field under many names, and the loop
//! of benches.
//!
//! It fails a test by panicking, as `assert!` does; that is why its functions return no errors.
//! Absent on purpose: TLS, HTTP/2 and chunked bodies, which no test here needs.

use std::time::Instant;

pub mod audit;
pub mod bench;
mod client;
mod connection;
pub mod node;
mod process;
mod redis;
mod yaml;

pub use client::{Client, JSON};
pub use connection::{Connection, Request, Response, get, post_json};
pub use process::Process;
pub use redis::Redis;
pub use yaml::Yaml;

/// The clock of tests that claim something about time.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a claim about a delay or a deadline needs the clock"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// A GraphQL field so many times, as `NAME0: FIELD NAME1: FIELD ` and so on.
#[must_use]
pub fn aliased(count: usize, name: &str, field: &str) -> String {
    let fields = (0..count).map(|at| format!("{name}{at}: {field} "));
    fields.collect()
}
