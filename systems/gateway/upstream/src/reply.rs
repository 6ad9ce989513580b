//! An answer, with its headers left as bytes until they are needed.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::http1::HEADERS_MAX;

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The body, without its transfer coding.
    pub body: Bytes,
    pub(crate) content_type: Option<Bytes>,
    pub(crate) content_encoding: Option<Bytes>,
    pub(crate) head: Head,
    /// What came behind the body, over HTTP/2; boxed, as only gRPC sends it.
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Head {
    /// The whole head of an HTTP/1 answer, already found to be valid.
    Raw(Bytes),
    Map(HeaderMap),
}

impl Reply {
    /// An answer that did not come over a connection just now.
    pub fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        let copy = |name: HeaderName| {
            let value = headers.get(name)?;
            Some(Bytes::copy_from_slice(value.as_bytes()))
        };
        Self {
            status,
            body,
            content_type: copy(header::CONTENT_TYPE),
            content_encoding: copy(header::CONTENT_ENCODING),
            head: Head::Map(headers),
            trailers: None,
        }
    }

    /// A value that came behind the body. Those of HTTP/1.1 are dropped.
    pub fn trailer(&self, name: &HeaderName) -> Option<HeaderValue> {
        self.trailers.as_ref()?.get(name).cloned()
    }

    /// The value of `content-type`, if there is one.
    pub fn content_type(&self) -> Option<&[u8]> {
        self.content_type.as_deref()
    }

    /// The value of `content-encoding`, if there is one. Bodies are left as they are.
    pub fn content_encoding(&self) -> Option<&[u8]> {
        self.content_encoding.as_deref()
    }

    /// The values of one header, without building the map.
    pub fn values(&self, name: &HeaderName) -> Vec<HeaderValue> {
        let raw = match &self.head {
            Head::Map(map) => return map.get_all(name).iter().cloned().collect(),
            Head::Raw(raw) => raw,
        };
        // Line by line instead of by the map: one header is wanted, and most answers lack it.
        let wanted = name.as_str().as_bytes();
        let lines = raw.split(|byte| *byte == b'\n').skip(1);
        let values = lines.filter_map(|line| {
            let (found, rest) = line.split_at_checked(wanted.len())?;
            let value = rest.strip_prefix(b":")?;
            let value = found.eq_ignore_ascii_case(wanted).then_some(value)?;
            // A slice of the head, so that a value costs a reference count and no copy.
            HeaderValue::from_maybe_shared(raw.slice_ref(value.trim_ascii())).ok()
        });
        values.collect()
    }

    /// All headers as a map. It is built here: most answers are never asked.
    pub fn headers(&self) -> HeaderMap {
        match &self.head {
            Head::Map(map) => map.clone(),
            Head::Raw(raw) => header_map(raw),
        }
    }
}

fn header_map(raw: &Bytes) -> HeaderMap {
    let mut slots = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut slots);
    let parsed = response.parse(raw);
    assert!(parsed.is_ok(), "the head was parsed when it arrived");
    let mut map = HeaderMap::with_capacity(response.headers.len());
    for header in response.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(raw.slice_ref(header.value));
        // `httparse` lets pass a few bytes that the map refuses; such a header is left out.
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    map
}
