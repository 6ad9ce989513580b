//! Helpers for tests of systems.
//!
//! They include an HTTP/1.1 client that sends exact bytes, a service as a process, and the audit of GraphQL
//! over HTTP. They also include a GraphQL field under many aliases, and the loops of benches.
//!
//! The functions fail a test by panicking, like `assert!`, so they return no errors. [`tls`] has certificates and a client with
//! TLS. Absent on purpose: HTTP/2 and chunked bodies, because no test here needs them.

use std::time::Instant;

pub mod audit;
pub mod bench;
pub mod chart;
mod client;
mod connection;
pub mod node;
mod process;
mod redis;
pub mod tls;
pub mod tls_audit;
mod yaml;

pub use client::{JSON, TestClient};
pub use connection::{Connection, Request, Response, get, post_json};
pub use process::Process;
pub use redis::{Redis, Sentinel};
pub use yaml::Yaml;

/// The clock for tests about time.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "a claim about a delay or a deadline needs the clock"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// A GraphQL field `count` times, as `NAME0: FIELD NAME1: FIELD ` and so on.
#[must_use]
pub fn aliased(count: usize, name: &str, field: &str) -> String {
    let fields = (0..count).map(|at| format!("{name}{at}: {field} "));
    fields.collect()
}
