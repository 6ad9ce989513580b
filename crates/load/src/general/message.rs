//! A request in the form of HTTP/2 and HTTP/3, made from the bytes of its HTTP/1.1 form. One renderer therefore serves
//! both, and templates, lengths and rules about headers are equal.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Method, Request, Uri};

use crate::grpc::Calling;

/// Headers of an HTTP/1.1 connection that must not be sent (RFC 9113, section 8.2.2). `host` becomes the
/// authority.
const LEFT_OUT: [&str; 6] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// The largest number of header lines of a request.
const HEADERS_MAX: usize = 256;

/// The requests of a rotation in the form of HTTP/2. `None` for a request that differs from slot to slot.
/// Empty for HTTP/1.1.
pub(crate) type Messages = Vec<Option<Message>>;

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(super) head: Request<()>,
    /// True if the request asked for another protocol.
    is_upgrade: bool,
    pub(super) body: Bytes,
    /// The messages of a gRPC call that leave at planned times, instead of a body.
    pub(super) frames: Vec<Bytes>,
}

impl Message {
    /// Translates a rendered request.
    ///
    /// # Errors
    ///
    /// A message, if HTTP/2 cannot carry the request.
    pub(super) fn new(bytes: &[u8], is_encrypted: bool) -> Result<Message, String> {
        let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut lines);
        let head_bytes = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
            Ok(httparse::Status::Partial) => return Err("expected a whole head".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let method = parsed.method.expect("a complete head has a method");
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("expected a method, found `{method}`"))?;
        if method == Method::CONNECT {
            return Err("CONNECT opens a tunnel and has no answer to check".to_owned());
        }
        let host = parsed
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case("host"))
            .map_or(&b""[..], |header| header.value);
        let is_upgrade = parsed
            .headers
            .iter()
            .any(|header| header.name.eq_ignore_ascii_case("upgrade"));
        let mut head = Request::new(());
        *head.method_mut() = method;
        let path = parsed.path.expect("a complete head has a path");
        *head.uri_mut() = uri(path, host, is_encrypted)?;
        for line in parsed.headers.iter() {
            let name = HeaderName::from_bytes(line.name.as_bytes())
                .map_err(|_| format!("expected a header name, found `{}`", line.name))?;
            let value = HeaderValue::from_bytes(line.value)
                .map_err(|_| format!("header `{name}` has control characters in its value"))?;
            // `te: trailers` is the only `te` that HTTP/2 allows (RFC 9113, section 8.2.2).
            let travels = !LEFT_OUT.contains(&name.as_str())
                && (name != http::header::TE || line.value.eq_ignore_ascii_case(b"trailers"));
            if travels {
                head.headers_mut().append(name, value);
            }
        }
        Ok(Message {
            head,
            is_upgrade,
            body: Bytes::copy_from_slice(&bytes[head_bytes..]),
            frames: Vec::new(),
        })
    }

    /// Replaces the JSON of a call by its messages.
    ///
    /// # Errors
    ///
    /// A message, if a value does not fit its field.
    pub(super) fn with_call(mut self, calling: Option<&Calling>) -> Result<Message, String> {
        let Some(calling) = calling else {
            return Ok(self);
        };
        let frames = calling.frames(&self.body)?;
        if calling.call.is_spaced() {
            self.body = Bytes::new();
            self.frames = frames;
        } else {
            self.body = Bytes::from(frames.concat());
        }
        Ok(self)
    }

    /// Returns a request that asks for no other protocol.
    ///
    /// # Errors
    ///
    /// A message, if it does.
    pub(super) fn without_upgrade(self) -> Result<Message, String> {
        match self.is_upgrade {
            true => Err(
                "header `Upgrade`: there is no other protocol after HTTP/3. Remove the header"
                    .to_owned(),
            ),
            false => Ok(self),
        }
    }
}

fn uri(path: &str, host: &[u8], is_encrypted: bool) -> Result<Uri, String> {
    let authority = Authority::try_from(host).map_err(|_| {
        format!(
            "expected a host such as `example.test:8080`, found `{}`",
            String::from_utf8_lossy(host)
        )
    })?;
    let path = PathAndQuery::try_from(path)
        .map_err(|error| format!("expected a path, found `{path}`: {error}"))?;
    let scheme = if is_encrypted {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    };
    Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(|error| error.to_string())
}

/// Returns a rendered request as evidence of the bytes that HTTP/2 carried.
pub(super) fn shown_over_http2(bytes: &[u8]) -> Vec<u8> {
    shown(bytes, b" HTTP/2\r\n")
}

/// Returns a rendered request as evidence of the bytes that HTTP/3 carried.
pub(super) fn shown_over_http3(bytes: &[u8]) -> Vec<u8> {
    shown(bytes, b" HTTP/3\r\n")
}

fn shown(bytes: &[u8], spoken: &[u8]) -> Vec<u8> {
    const VERSION: &[u8] = b" HTTP/1.1\r\n";
    let at = bytes
        .windows(VERSION.len())
        .position(|part| part == VERSION);
    match at {
        Some(at) => [&bytes[..at], spoken, &bytes[at + VERSION.len()..]].concat(),
        None => bytes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_connection_stays_behind_and_the_host_becomes_the_authority() {
        let bytes = b"POST /graphql?a=b HTTP/1.1\r\nHost: h.test:81\r\nConnection: close\r\n\
            TE: gzip\r\nX-One: 1\r\nX-One: 2\r\nContent-Length: 2\r\n\r\n{}";
        let message = Message::new(bytes, true).unwrap();
        assert_eq!(message.head.uri(), "https://h.test:81/graphql?a=b");
        let names: Vec<_> = message
            .head
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        assert_eq!(names, ["x-one: 1", "x-one: 2", "content-length: 2"]);
        assert_eq!(message.body, "{}");
    }

    #[test]
    fn what_http_2_cannot_carry_is_refused_in_words() {
        for (request, words) in [
            ("CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", "CONNECT"),
            ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "`a b`"),
            ("GET / HTTP/1.1\r\nHost: h\r\nA: b", "whole head"),
        ] {
            let error = Message::new(request.as_bytes(), false).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn evidence_names_the_version_that_was_spoken() {
        let bytes = b"GET / HTTP/1.1\r\n\r\nx";
        assert_eq!(shown_over_http2(bytes), b"GET / HTTP/2\r\n\r\nx");
        assert_eq!(shown_over_http3(bytes), b"GET / HTTP/3\r\n\r\nx");
    }
}
