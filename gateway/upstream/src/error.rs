//! Errors of calls without a usable response.

use std::io;
use std::time::Duration;

/// Reason for a missing response. The text fits after `HTTP fetch failed from 'x': `.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// All connections are in use, and the maximum number of calls is already waiting.
    #[error("too many requests wait for a connection to {origin}")]
    Crowded {
        /// The URL of the origin.
        origin: String,
    },
    /// The maximum number of WebSockets is open. Waiting for one would take too long.
    #[error("too many WebSockets are open, and there is none for {origin}")]
    Occupied {
        /// The URL of the origin.
        origin: String,
    },
    /// The connection failed, because of the name, the address or the socket.
    #[error("cannot connect to {origin}: {source}")]
    Unreachable {
        /// Host and port, or the path of the socket.
        origin: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The connection is open, but its TLS handshake failed.
    #[error("no TLS with {origin}: {source}")]
    Tls {
        /// Host and port of the origin.
        origin: String,
        /// The error of the TLS library.
        source: io::Error,
    },
    /// Connecting and receiving the response took longer than the limit.
    #[error("no complete answer within {limit:?}")]
    TimedOut {
        /// The time limit of the call.
        limit: Duration,
    },
    /// The other side closed or broke the connection.
    #[error("connection closed before the answer was complete: {source}")]
    Closed {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The response body is longer than the limit.
    #[error("the answer is longer than {limit_bytes} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// The response is not valid HTTP.
    #[error("the answer is not valid HTTP: {reason}")]
    Malformed {
        /// The violated rule of the HTTP specification.
        reason: String,
    },
    /// HTTP/2 failed on this connection.
    #[error("HTTP/2 failed: {source}")]
    Http2 {
        /// The error of the HTTP library.
        source: hyper::Error,
    },
}

impl SendError {
    /// True if the request was not sent, because too many others have a connection or wait for one.
    pub fn is_crowded(&self) -> bool {
        matches!(self, Self::Crowded { .. } | Self::Occupied { .. })
    }

    /// True if the time limit was exceeded. This is reported differently from other failures.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}
