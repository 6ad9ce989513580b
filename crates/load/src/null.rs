//! A server that does nothing but answer, exactly when it was told to.
//!
//! It is what the instrument is calibrated against, and its null server when it weighs itself: one
//! thread, one event loop, HTTP/1.1, every answer rendered beforehand. When an answer leaves is
//! decided at the arrival of its request by arithmetic ([`Pace`]), not by sleeping in between, so
//! that a late wakeup makes one answer late and never shifts the later ones.
//!
//! Absent on purpose: files, TLS, chunked requests, and anything that depends on the request but
//! `GET /seen`, which tells what was asked so far.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;

mod behavior;
mod client;
mod draw;
mod error;
mod pace;
mod seen;
mod server;

pub use behavior::{Behavior, Mix, NullEncoding, Pace, Stall};
pub use draw::{Jitter, Slow};
pub use error::BehaviorError;
pub use seen::Seen;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Serves until `stop` is set, and tells what it saw.
///
/// # Errors
/// When the listener cannot be used with an event loop.
pub fn serve(listener: TcpListener, behavior: &Behavior, stop: &AtomicBool) -> io::Result<Seen> {
    listener.set_nonblocking(true)?;
    let listener = OwnedFd::from(listener);
    // Once more, because the standard library asks for a queue of 128.
    rustix::net::listen(&listener, BACKLOG)?;
    // Refused only where the call is unknown; answers are then up to 50 microseconds later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut server = server::Server::new(listener, behavior)?;
    server.run(stop);
    Ok(server.seen)
}
