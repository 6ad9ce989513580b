//! Decides which web pages may use the service from a browser (CORS).
//!
//! By default no page may. The callers are login services, and a page that can report failed logins can ban
//! any address.

use hyper::header::{self, HeaderMap, HeaderValue};

/// The methods that allowed pages may use.
const METHODS: &str = "GET,HEAD,POST";
/// The methods that the original allows.
const METHODS_OF_ORIGINAL: &str = "GET,HEAD,PUT,PATCH,POST,DELETE";

/// The origins of the allowed pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origins {
    /// Only pages of these origins. The list may be empty.
    Named(Vec<String>),
    /// Every page, as in the original.
    Any,
}

impl Origins {
    /// Marks a response so that an allowed page can read it.
    pub(crate) fn mark(&self, request: Option<&HeaderValue>, answer: &mut HeaderMap) {
        match self {
            Self::Any => {
                let any = HeaderValue::from_static("*");
                answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
            }
            Self::Named(names) if names.is_empty() => {}
            Self::Named(_) => {
                // Also if the origin is refused, because a cache must not reuse one origin's response for
                // another. Appended, because the page already varies by `Accept`.
                answer.append(header::VARY, HeaderValue::from_static("Origin"));
                if let Some(origin) = request.filter(|origin| self.has(origin)) {
                    answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                }
            }
        }
    }

    /// Adds the methods and headers that the page may use to the response of OPTIONS.
    pub(crate) fn permit(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        let methods = match self {
            Self::Any => METHODS_OF_ORIGINAL,
            Self::Named(_) => METHODS,
        };
        let origin = request.get(header::ORIGIN);
        if *self != Self::Any && !origin.is_some_and(|origin| self.has(origin)) {
            return;
        }
        let name = header::ACCESS_CONTROL_ALLOW_METHODS;
        answer.insert(name, HeaderValue::from_static(methods));
        // An allowed page may send any headers that it requests, as in the original.
        if let Some(names) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
    }

    fn has(&self, origin: &HeaderValue) -> bool {
        match self {
            Self::Any => true,
            // Compared as bytes: an origin that is not ASCII matches no allowed origin.
            Self::Named(names) => names
                .iter()
                .any(|name| name.as_bytes() == origin.as_bytes()),
        }
    }
}
