//! One request to an endpoint.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};

/// One request.
#[derive(Debug)]
pub struct Call<'a> {
    /// The method; `POST` for everything but key sets.
    pub method: Method,
    /// Headers. Those about the connection, the host and the length are ignored.
    pub headers: &'a HeaderMap,
    /// Further headers, as `name: value\r\n` lines, rendered once by the caller.
    pub rendered_headers: &'static [u8],
    /// The body.
    pub body: Bytes,
    /// How long connecting and the whole answer may take; `None` is for ever.
    pub timeout: Option<Duration>,
    /// A longer body of the answer is refused; `None` for the client's own limit, which holds in
    /// any case.
    pub reply_bytes_max: Option<usize>,
    /// Whether sending it twice does no harm. Then it is sent again when a
    /// connection kept alive turns out to be closed only after the write.
    pub is_idempotent: bool,
}
