//! The switch for web pages of other origins (CORS), for services whose answers any page may read once it is
//! named.
//!
//! The rate limiter and the webhook have rules of their own: theirs follow their originals.

use std::sync::Arc;

use hyper::header::{ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD};
use hyper::header::{HeaderMap, HeaderName, HeaderValue, ORIGIN};

/// The methods of GraphQL and of reads.
const METHODS: &str = "GET, HEAD, POST";
/// Maximum time that a browser may keep the answer to a preflight, in seconds.
const REMEMBER: &str = "600";

/// The flag of a service that web pages may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct CorsFlags {
    /// Origins of web pages that may use the service from a browser, such as https://shop.example.
    /// `*` allows all pages [default: none].
    #[arg(long, env, value_name = "ORIGIN,ORIGIN", value_delimiter = ',')]
    pub cors_origins: Vec<String>,
}

/// The origins that may use a service. A handle, which is cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct AllowedOrigins(Arc<[String]>);

/// A header of a response.
pub type CorsHeader = (&'static str, HeaderValue);

impl AllowedOrigins {
    /// The origins of the flag.
    #[must_use]
    pub fn of(flags: &CorsFlags) -> Self {
        let names = flags.cors_origins.iter().map(|name| name.trim());
        let names = names.filter(|name| !name.is_empty());
        Self(names.map(str::to_owned).collect())
    }

    /// True if no page may use the service.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers that let a page read a response. `origin` is the header of the request.
    #[must_use]
    pub fn headers(&self, origin: Option<&[u8]>) -> Vec<CorsHeader> {
        if self.is_empty() {
            return Vec::new();
        }
        // Also if the origin is refused, because a cache must not reuse one origin's response for another.
        let mut headers = vec![("vary", HeaderValue::from_static("Origin"))];
        let allowed = origin.filter(|origin| self.has(origin));
        if let Some(Ok(origin)) = allowed.map(HeaderValue::from_bytes) {
            headers.push(("access-control-allow-origin", origin));
        }
        headers
    }

    /// The headers of the response to a preflight. `None` if no page may use the service, or if the request
    /// is no preflight. `wanted` are the headers that the page wants to send.
    #[must_use]
    pub fn preflight(
        &self,
        origin: Option<&[u8]>,
        method: Option<&[u8]>,
        wanted: Option<&[u8]>,
    ) -> Option<Vec<CorsHeader>> {
        let (origin, _) = (origin?, method?);
        if self.is_empty() {
            return None;
        }
        let mut headers = self.headers(Some(origin));
        // Without these headers, the browser refuses the page.
        if self.has(origin) {
            headers.push((
                "access-control-allow-methods",
                HeaderValue::from_static(METHODS),
            ));
            headers.push(("access-control-max-age", HeaderValue::from_static(REMEMBER)));
            if let Some(Ok(names)) = wanted.map(HeaderValue::from_bytes) {
                headers.push(("access-control-allow-headers", names));
            }
        }
        Some(headers)
    }

    /// [`AllowedOrigins::preflight`] for a request of any library. `header` returns the value of a header by its
    /// name.
    #[must_use]
    pub fn preflight_of<'a>(
        &self,
        header: impl Fn(HeaderName) -> Option<&'a [u8]>,
    ) -> Option<Vec<CorsHeader>> {
        self.preflight(
            header(ORIGIN),
            header(ACCESS_CONTROL_REQUEST_METHOD),
            header(ACCESS_CONTROL_REQUEST_HEADERS),
        )
    }

    fn has(&self, origin: &[u8]) -> bool {
        // Compared as bytes: an origin that is not ASCII matches no allowed origin.
        let mut names = self.0.iter();
        names.any(|name| name == "*" || name.as_bytes() == origin)
    }
}

/// Adds headers to a response of hyper.
pub fn add_cors(headers: Vec<CorsHeader>, answer: &mut HeaderMap) {
    for (name, value) in headers {
        // Appended, because a response may already vary by another header.
        answer.append(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(origins: &str, origin: &str, method: Option<&str>) -> Option<Vec<&'static str>> {
        let cors_origins = origins.split(',').map(str::to_owned).collect();
        let origins = AllowedOrigins::of(&CorsFlags { cors_origins });
        let headers = origins.preflight(
            Some(origin.as_bytes()),
            method.map(str::as_bytes),
            Some(b"content-type"),
        );
        Some(headers?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn only_named_origins_are_allowed() {
        let all = [
            "vary",
            "access-control-allow-origin",
            "access-control-allow-methods",
            "access-control-max-age",
            "access-control-allow-headers",
        ];
        let post = Some("POST");
        assert_eq!(names(" http://a ,http://b", "http://a", post).unwrap(), all);
        assert_eq!(names("*", "http://c", post).unwrap(), all);
        assert_eq!(names("http://a", "http://c", post).unwrap(), ["vary"]);
        assert_eq!(names("http://a", "http://a", None), None);
        assert_eq!(names("", "http://a", post), None);
    }

    #[test]
    fn a_response_names_the_origin_that_asked() {
        let origins = AllowedOrigins::of(&CorsFlags {
            cors_origins: vec!["*".to_owned()],
        });
        let headers = origins.headers(Some(b"http://a"));
        assert_eq!(headers[1].1, "http://a");
        assert_eq!(origins.headers(None).len(), 1);
        assert!(
            AllowedOrigins::default()
                .headers(Some(b"http://a"))
                .is_empty()
        );
    }
}
