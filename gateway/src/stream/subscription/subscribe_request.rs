//! The request that subscribes at a subgraph.

use std::sync::Arc;

use gateway_extensions::EventRequest;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Memory for a header in addition to its name and value, in bytes.
const HEADER_BYTES: usize = 64;

/// The request that subscribes at a subgraph.
#[derive(Debug)]
pub(super) struct SubscribeRequest {
    /// Name of the subgraph.
    pub(super) name: Arc<str>,
    pub(super) request: EventRequest,
    /// Payload of the WebSocket's `connection_init` message.
    pub(super) parameters: Option<Value>,
}

impl SubscribeRequest {
    /// Approximate memory use in bytes.
    pub(super) fn weight(&self) -> usize {
        let parameters = self.parameters.as_ref();
        let parameters = parameters.map_or(0, |it| it.to_string().len());
        self.request.body.len() + headers_weight(&self.request.headers) + parameters
    }
}

/// Minimum memory use of headers in bytes.
pub(super) fn headers_weight(headers: &HeaderMap) -> usize {
    let weigh = |(name, value): (&HeaderName, &HeaderValue)| {
        HEADER_BYTES + name.as_str().len() + value.len()
    };
    headers.iter().map(weigh).sum()
}
