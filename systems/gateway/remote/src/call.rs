//! The interface to services and handlers: one HTTP request, one answer.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::session::{Session, is_session_header};

/// A request to a service or a handler.
#[derive(Debug)]
pub struct Call {
    /// Position among all sources: remote schemas first, then actions.
    pub source: usize,
    /// The method.
    pub method: Method,
    /// The URL when it is not the configured one.
    pub url: Option<String>,
    /// All headers but those of the connection.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether it may be sent again when a connection breaks.
    pub is_idempotent: bool,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct CallAnswer {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: Bytes,
    /// The values of `set-cookie`.
    pub cookies: Vec<HeaderValue>,
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

/// Carries requests to services and handlers.
///
/// The future need not be `Send`: a request stays on the thread that accepted it.
pub trait Sources {
    /// Sends one request and waits for its whole answer.
    fn call(&self, call: Call) -> impl Future<Output = Result<CallAnswer, CallError>>;

    /// Lets the other requests of this thread go on; called now and then while a large answer is
    /// made.
    fn give_way(&self) -> impl Future<Output = ()>;
}

/// Headers of clients that never reach a service, besides those that end with each connection.
const NEVER_FORWARDED: &[&str] = &[
    "content-length",
    "content-md5",
    "user-agent",
    "host",
    "origin",
    "referer",
    "accept",
    "accept-encoding",
    "accept-language",
    "accept-datetime",
    "cache-control",
    "dnt",
    "content-type",
    "expect",
];

fn is_forwarded(name: &HeaderName) -> bool {
    !is_session_header(name)
        && !gateway_hop::is_hop_by_hop(name.as_str())
        && !NEVER_FORWARDED.contains(&name.as_str())
}

/// Which headers a source gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderSettings {
    pub(crate) configured: Vec<(HeaderName, HeaderValue)>,
    pub(crate) forwards: bool,
}

impl HeaderSettings {
    pub(crate) fn new(headers: &[gateway_config::ConfiguredHeader], forwards: bool) -> Self {
        let configured = headers
            .iter()
            .map(|header| (header.name.0.clone(), header.value.0.clone()));
        Self {
            configured: configured.collect(),
            forwards,
        }
    }

    /// The headers of a request: configured ones win over session variables, those over what the
    /// client sent.
    pub(crate) fn of(&self, client: &HeaderMap, session: &Session) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.configured.len() + 4);
        if self.forwards {
            for (name, value) in client {
                if is_forwarded(name) {
                    headers.append(name.clone(), value.clone());
                }
            }
        }
        for (name, value) in session.headers() {
            headers.insert(name.clone(), value.clone());
        }
        // Last, so that a client cannot overwrite what the operator has configured.
        for (name, value) in &self.configured {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }
}
