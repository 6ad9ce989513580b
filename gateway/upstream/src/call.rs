//! One request to an endpoint.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

/// One request with its limits.
#[derive(Debug)]
pub struct Call<'a> {
    /// The method. `POST` for all calls except key sets.
    pub method: Method,
    /// The request headers. Headers about the connection, the host and the length are ignored.
    pub headers: &'a HeaderMap,
    /// Further headers, as `name: value\r\n` lines, rendered once by the caller.
    pub rendered_headers: &'static [u8],
    /// The body. Can be empty.
    pub body: Bytes,
    /// Time limit for connecting and the whole response. `None` for no limit.
    pub timeout: Option<Duration>,
    /// Maximum bytes of the response body. `None` for the client's own limit, which always applies.
    pub reply_bytes_max: Option<usize>,
    /// True if the request may be sent twice. Then the client sends it again if it notices only after the
    /// write that a kept connection was closed.
    pub is_idempotent: bool,
}
