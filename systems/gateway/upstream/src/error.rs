//! Why a call got no answer.

use std::io;
use std::time::Duration;

/// Why a call got no answer. The text fits behind `HTTP fetch failed from 'x': `.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// All connections are in use, and as many calls as may wait for one do already.
    #[error("too many requests wait for a connection to {origin}")]
    Crowded {
        /// Its URL.
        origin: String,
    },
    /// As many connections that last are open as there may be; waiting for one would be in vain.
    #[error("too many WebSockets are open, and there is none for {origin}")]
    Occupied {
        /// Its URL.
        origin: String,
    },
    /// No connection: the name, the address, the socket.
    #[error("cannot connect to {origin}: {source}")]
    Unreachable {
        /// Host and port, or the path of the socket.
        origin: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The connection stands, its encryption does not.
    #[error("no TLS with {origin}: {source}")]
    Tls {
        /// Host and port.
        origin: String,
        /// What the TLS library said.
        source: io::Error,
    },
    /// Connecting and the whole answer took longer than allowed.
    #[error("no complete answer within {limit:?}")]
    TimedOut {
        /// What was allowed.
        limit: Duration,
    },
    /// The other side closed or broke the connection.
    #[error("connection closed before the answer was complete: {source}")]
    Closed {
        /// What the operating system said.
        source: io::Error,
    },
    /// The answer is longer than allowed.
    #[error("the answer is longer than {limit_bytes} bytes")]
    TooLarge {
        /// What is allowed.
        limit_bytes: usize,
    },
    /// The answer is not HTTP.
    #[error("the answer is not valid HTTP: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// HTTP/2 went wrong.
    #[error("HTTP/2 failed: {source}")]
    Http2 {
        /// What the HTTP library said.
        source: hyper::Error,
    },
}

impl SendError {
    /// Whether it was not sent because too many others have a connection, or wait for one.
    pub fn is_crowded(&self) -> bool {
        matches!(self, Self::Crowded { .. } | Self::Occupied { .. })
    }

    /// Whether time ran out, which is reported differently from other failures.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}
