//! The interface to services and handlers: one HTTP request, one response.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::session::{Session, is_session_header};

/// A request to a service or a handler.
#[derive(Debug)]
pub struct Call {
    /// Position among all sources: remote schemas first, then actions.
    pub source: usize,
    /// The HTTP method of the request.
    pub method: Method,
    /// The URL, if it differs from the configured URL.
    pub url: Option<String>,
    /// All headers except connection headers.
    pub headers: HeaderMap,
    /// The body of the request.
    pub body: Bytes,
    /// True if the request may be repeated after a broken connection.
    pub is_idempotent: bool,
}

/// A response of a service or handler.
#[derive(Clone, Debug, Default)]
pub struct CallAnswer {
    /// The HTTP status of the response.
    pub status: StatusCode,
    /// The body of the response.
    pub body: Bytes,
    /// The values of all `set-cookie` headers.
    pub cookies: Vec<HeaderValue>,
}

/// The reason why a request got no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

/// Sends requests to services and handlers.
///
/// The future need not be `Send`: a request stays on the thread that accepted it.
pub trait Sources {
    /// Sends one request and waits for the complete response.
    fn call(&self, call: Call) -> impl Future<Output = Result<CallAnswer, CallError>>;

    /// Lets other requests of this thread continue. Called from time to time while a large response is
    /// written.
    fn give_way(&self) -> impl Future<Output = ()>;
}

/// Client headers that describe the client's own connection or body. They never reach a service, in addition
/// to hop-by-hop headers.
const OF_THE_CONNECTION: &[&str] = &[
    "accept",
    "accept-encoding",
    "content-encoding",
    "content-length",
    "content-md5",
    "content-type",
    "expect",
    "host",
];

/// Client headers that are not forwarded without another list.
const NOT_FORWARDED: &[&str] = &[
    "user-agent",
    "origin",
    "referer",
    "accept-language",
    "accept-datetime",
    "cache-control",
    "dnt",
];

/// The client headers that a source receives.
#[derive(Clone, Debug, Default)]
pub(crate) enum Forwarding {
    /// No header.
    #[default]
    Nothing,
    /// All headers except the usual ones.
    Usual,
    /// All headers except these.
    Except(Vec<HeaderName>),
}

impl Forwarding {
    /// The forwarding of a source without a list of its own.
    pub(crate) fn usual_if(forwards: bool) -> Self {
        if forwards { Self::Usual } else { Self::Nothing }
    }

    fn includes(&self, name: &HeaderName) -> bool {
        let is_listed = match self {
            Self::Nothing => return false,
            Self::Usual => NOT_FORWARDED.contains(&name.as_str()),
            Self::Except(names) => names.contains(name),
        };
        !is_listed
            && !OF_THE_CONNECTION.contains(&name.as_str())
            && !is_session_header(name)
            && !gateway_hop::is_hop_by_hop(name.as_str())
    }
}

/// The headers that a source receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderSettings {
    pub(crate) configured: Vec<(HeaderName, HeaderValue)>,
    pub(crate) forwarding: Forwarding,
}

impl HeaderSettings {
    pub(crate) fn new(
        headers: &[gateway_config::ConfiguredHeader],
        forwarding: Forwarding,
    ) -> Self {
        let configured = headers
            .iter()
            .map(|header| (header.name.0.clone(), header.value.0.clone()));
        Self {
            configured: configured.collect(),
            forwarding,
        }
    }

    /// The headers of a request. Configured headers override session variables, and both override client
    /// headers.
    pub(crate) fn of(&self, client: &HeaderMap, session: &Session) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.configured.len() + 4);
        for (name, value) in client {
            if self.forwarding.includes(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        for (name, value) in session.headers() {
            headers.insert(name.clone(), value.clone());
        }
        // Last, so that a client cannot override headers of the operator's configuration.
        for (name, value) in &self.configured {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }
}
