//! A response. Its headers stay bytes until a caller needs them.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// Maximum number of header lines in a response.
pub(crate) const HEADERS_MAX: usize = 100;

/// A complete response of a service.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status code.
    pub status: StatusCode,
    /// The body, without its transfer coding.
    pub body: Bytes,
    pub(crate) head: Head,
    /// The trailers after the body, over HTTP/2. Boxed, because only gRPC sends them.
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

/// Small, because each caller on the way moves the response.
#[derive(Clone, Debug)]
pub(crate) enum Head {
    Raw(RawHead),
    Map(Box<HeaderMap>),
}

/// The whole head of an HTTP/1 response, already validated.
#[derive(Clone, Debug)]
pub(crate) struct RawHead {
    pub(crate) bytes: Bytes,
    /// Positions of the values of two headers that nearly every caller reads.
    pub(crate) content_type: Option<Place>,
    pub(crate) content_encoding: Option<Place>,
}

/// A part of a head. A head is shorter than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    start: u32,
    end: u32,
}

impl From<Range<usize>> for Place {
    fn from(range: Range<usize>) -> Self {
        let within = |at| u32::try_from(at).expect("a head has a limit far below 4 GiB");
        Self {
            start: within(range.start),
            end: within(range.end),
        }
    }
}

impl RawHead {
    fn value(&self, place: Option<Place>) -> Option<&[u8]> {
        let Place { start, end } = place?;
        self.bytes.get(start as usize..end as usize)
    }
}

impl Reply {
    /// Creates a response that did not come from a connection.
    pub fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self {
            status,
            body,
            head: Head::Map(Box::new(headers)),
            trailers: None,
        }
    }

    /// The value of an HTTP/2 trailer. HTTP/1.1 trailers are dropped.
    pub fn trailer(&self, name: &HeaderName) -> Option<HeaderValue> {
        self.trailers.as_ref()?.get(name).cloned()
    }

    /// The value of `content-type`, if there is one.
    pub fn content_type(&self) -> Option<&[u8]> {
        match &self.head {
            Head::Raw(raw) => raw.value(raw.content_type),
            Head::Map(map) => Some(map.get(header::CONTENT_TYPE)?.as_bytes()),
        }
    }

    /// The value of `content-encoding`, if there is one. Bodies are not decoded.
    pub fn content_encoding(&self) -> Option<&[u8]> {
        match &self.head {
            Head::Raw(raw) => raw.value(raw.content_encoding),
            Head::Map(map) => Some(map.get(header::CONTENT_ENCODING)?.as_bytes()),
        }
    }

    /// The values of one header, without building the map.
    pub fn values(&self, name: &HeaderName) -> Vec<HeaderValue> {
        let raw = match &self.head {
            Head::Map(map) => return map.get_all(name).iter().cloned().collect(),
            Head::Raw(raw) => &raw.bytes,
        };
        // Reads line by line and not through the map, because most responses lack the header.
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

    /// True if the response has this header.
    pub fn has(&self, name: &HeaderName) -> bool {
        !self.values(name).is_empty()
    }

    /// All headers as a map, built here because most responses never need it.
    pub fn headers(&self) -> HeaderMap {
        match &self.head {
            Head::Map(map) => (**map).clone(),
            Head::Raw(raw) => header_map(&raw.bytes),
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
        // `httparse` accepts a few bytes that the map refuses. Such a header is left out.
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    map
}
