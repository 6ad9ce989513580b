//! Tests of the two running servers. Each test holds for both.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod audit;
mod chart;
mod connections;
mod http;
mod lifecycle;
mod pages;
mod server;
mod tls;
mod transport;
