//! What a subgraph is asked for when it is subscribed to.

use std::sync::Arc;

use gateway_extensions::EventRequest;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Bytes that a header keeps beside its name and value.
const HEADER_BYTES: usize = 64;

/// What a subgraph is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    /// The subgraph's name.
    pub(super) name: Arc<str>,
    pub(super) request: EventRequest,
    /// With which a WebSocket begins.
    pub(super) parameters: Option<Value>,
}

impl Asked {
    /// Bytes that it keeps.
    pub(super) fn weight(&self) -> usize {
        let parameters = self.parameters.as_ref();
        let parameters = parameters.map_or(0, |it| it.to_string().len());
        self.request.body.len() + headers_weight(&self.request.headers) + parameters
    }
}

/// Bytes that headers keep, at least.
pub(super) fn headers_weight(headers: &HeaderMap) -> usize {
    let weigh = |(name, value): (&HeaderName, &HeaderValue)| {
        HEADER_BYTES + name.as_str().len() + value.len()
    };
    headers.iter().map(weigh).sum()
}
