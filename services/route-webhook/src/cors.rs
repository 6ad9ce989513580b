//! Decides which web pages may use the service from a browser (CORS).

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

/// The methods that pages may use.
const METHODS: &str = "GET, PUT";
/// The headers that pages may send.
const HEADERS: &str = "Accept, Accept-Language, Content-Language, Content-Type";
/// Maximum time that a browser may cache a preflight, in seconds.
const REMEMBER: &str = "600";

/// The allowed origins. An empty list switches CORS off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origins(Vec<String>);

impl Origins {
    /// Reads a comma-separated list. Items are trimmed, and empty items are skipped.
    pub(crate) fn read(list: &str) -> Self {
        let items = list.split(',').map(str::trim);
        let items = items.filter(|item| !item.is_empty());
        Self(items.map(str::to_owned).collect())
    }

    fn has(&self, origin: &HeaderValue) -> bool {
        let origin = origin.as_bytes();
        let mut known = self.0.iter();
        // Compared as bytes: an origin that is not ASCII matches no allowed origin.
        known.any(|known| known == "*" || known.as_bytes() == origin)
    }

    /// The response to a preflight. A browser sends one to check if a page may send a request.
    pub(crate) fn preflight(&self, request: &HeaderMap) -> Option<Response<Full<Bytes>>> {
        let origin = request.get(header::ORIGIN)?;
        let method = request.get(header::ACCESS_CONTROL_REQUEST_METHOD)?;
        // Without allowed origins this is an ordinary OPTIONS request.
        if self.0.is_empty() {
            return None;
        }
        let is_allowed_method = method
            .to_str()
            .is_ok_and(|method| METHODS.split(", ").any(|allowed| allowed == method));
        let refusal = match (self.has(origin), is_allowed_method) {
            (true, true) => None,
            // The texts of Starlette, the framework of the original.
            (false, _) => Some("Disallowed CORS origin"),
            (true, false) => Some("Disallowed CORS method"),
        };
        let mut reply = Response::new(Full::new(Bytes::from_static(
            refusal.unwrap_or("OK").as_bytes(),
        )));
        if refusal.is_some() {
            *reply.status_mut() = StatusCode::BAD_REQUEST;
        }
        for (name, value) in [
            (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
            (header::ACCESS_CONTROL_MAX_AGE, REMEMBER),
        ] {
            reply
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        self.allow(Some(origin), reply.headers_mut());
        Some(reply)
    }

    /// Marks a response so that the requesting page may read it, if it is allowed.
    pub(crate) fn allow(&self, origin: Option<&HeaderValue>, answer: &mut HeaderMap) {
        let Some(origin) = origin.filter(|_| !self.0.is_empty()) else {
            return;
        };
        // Even if the origin is refused, because a cache must not reuse one origin's response for another.
        answer.insert(header::VARY, HeaderValue::from_static("Origin"));
        if self.has(origin) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preflight(origins: &str, origin: &str, method: &str) -> Option<(u16, bool)> {
        let mut request = HeaderMap::new();
        request.insert(header::ORIGIN, origin.parse().unwrap());
        let name = header::ACCESS_CONTROL_REQUEST_METHOD;
        request.insert(name, method.parse().unwrap());
        let reply = Origins::read(origins).preflight(&request)?;
        let is_allowed = reply
            .headers()
            .contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        Some((reply.status().as_u16(), is_allowed))
    }

    #[test]
    fn only_named_origins_may_get_and_put() {
        let origins = " http://a:1 ,, http://b ";
        assert_eq!(preflight(origins, "http://a:1", "PUT"), Some((200, true)));
        assert_eq!(preflight(origins, "http://b", "GET"), Some((200, true)));
        assert_eq!(preflight(origins, "http://b", "POST"), Some((400, true)));
        assert_eq!(preflight(origins, "http://c", "PUT"), Some((400, false)));
        assert_eq!(preflight("*", "http://c", "PUT"), Some((200, true)));
        assert_eq!(preflight(" , ", "http://c", "PUT"), None);
    }
}
