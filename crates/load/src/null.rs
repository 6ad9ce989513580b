//! A server with trivial responses at exact times.
//!
//! The instrument is calibrated against it, and self-tests use it as their target. It has one thread, one
//! event loop, HTTP/1.1, and responses that are rendered beforehand. Arithmetic decides the time of a
//! response when its request arrives ([`Pace`]), without a sleep in between. A late wakeup therefore delays
//! one response and never shifts later responses.
//!
//! Absent on purpose: files, TLS over TCP, chunked requests, and responses that depend on the request. The exception
//! is `GET /seen`, which returns the counts of the server.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

mod behavior;
mod client;
mod draw;
mod error;
mod frames;
mod grpc;
mod http3;
mod pace;
mod planted;
mod seen;
mod server;
mod stream;
mod websocket;

pub use behavior::{Behavior, Mix, NullEncoding, Pace, Stall};
pub use draw::{Jitter, Slow};
pub use error::BehaviorError;
pub use grpc::{GrpcBehavior, serve_grpc};
pub use http3::{NullCertificate, NullEarlyData, serve_http3};
pub use seen::Seen;
pub use stream::NullStream;
pub use websocket::{SocketBehavior, serve_websocket};

/// The largest number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// The longest wait of an event loop, so that the stop flag is read in time.
const WAIT_MAX_NS: u64 = 20_000_000;

/// The token of the listener. Clients have smaller tokens.
const LISTENER: u64 = u64::MAX;

/// Serves until `stop` is set, and returns its counts.
///
/// # Errors
/// If the listener cannot be used with an event loop.
pub fn serve(listener: TcpListener, behavior: &Behavior, stop: &AtomicBool) -> io::Result<Seen> {
    prepare(&listener)?;
    let mut server = server::Server::new(OwnedFd::from(listener), behavior)?;
    server.run(stop);
    Ok(server.seen())
}

/// Prepares a listener and this thread for an event loop.
fn prepare(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    // Again, because the standard library requests a queue of 128.
    rustix::net::listen(listener, BACKLOG)?;
    // Refused only if the kernel does not support the call. Responses are then up to 50 microseconds later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    Ok(())
}
