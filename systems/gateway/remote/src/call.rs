//! The interface to services and handlers: one HTTP request, one answer.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

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
}

/// Headers of clients that never reach a service.
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
    "connection",
    "dnt",
    "content-type",
    // Those that belong to the client's connection.
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "expect",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
];

const SESSION: &str = "x-hasura-";
const ROLE: HeaderName = HeaderName::from_static("x-hasura-role");
const ADMIN: HeaderValue = HeaderValue::from_static("admin");

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
    pub(crate) fn of(&self, client: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.configured.len() + 4);
        for (name, value) in client {
            let is_session = name.as_str().starts_with(SESSION);
            if is_session || (self.forwards && !NEVER_FORWARDED.contains(&name.as_str())) {
                headers.append(name.clone(), value.clone());
            }
        }
        // Without a role the service sees the administrator, as the contract says.
        headers.entry(ROLE).or_insert(ADMIN);
        // Last, so that a client cannot overwrite what the operator has configured.
        for (name, value) in &self.configured {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }
}

/// Appends the session variables as a JSON object: `x-hasura-role` always, others as they came.
pub(crate) fn write_session(client: &HeaderMap, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut is_first = true;
    let mut write = |name: &str, value: &[u8]| {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        gateway_template::write_text(name, out);
        out.push(b':');
        gateway_template::write_text(&String::from_utf8_lossy(value), out);
    };
    // Before the others, so that the role comes first when the gateway adds it.
    if !client.contains_key(ROLE) {
        write(ROLE.as_str(), ADMIN.as_bytes());
    }
    for name in client.keys() {
        if name.as_str().starts_with(SESSION)
            // The first value only: a session variable is one value.
            && let Some(value) = client.get(name)
        {
            write(name.as_str(), value.as_bytes());
        }
    }
    out.push(b'}');
}
