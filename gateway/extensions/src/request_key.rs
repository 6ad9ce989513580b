//! Compares subgraph requests, so that identical requests are sent once.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// The parts of a subgraph request that can differ, after header rules, scripts and coprocessors. Two
/// requests with equal keys are identical. Method and subgraph are no part of the key, because they are
/// always equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    body: Bytes,
    /// The address, if a stage has changed it, and the headers. Empty without both.
    head: Vec<u8>,
}

impl RequestKey {
    /// Builds the key. `moved_to` is the address that a stage chose instead of the subgraph's own.
    pub(crate) fn new<'a>(
        moved_to: Option<&str>,
        headers: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>,
        body: &Bytes,
    ) -> Self {
        let mut head = Vec::new();
        if let Some(address) = moved_to {
            head.extend_from_slice(address.as_bytes());
            // No header name is empty, so this line cannot be confused with a header.
            head.extend_from_slice(b"\n:\n");
        }
        for (name, value) in headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.push(b':');
            // A header value contains no line end.
            head.extend_from_slice(value.as_bytes());
            head.push(b'\n');
        }
        Self {
            body: body.clone(),
            head,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn requests_are_equal_when_all_that_is_sent_is_equal() {
        let headers = |lines: &[(&'static str, &str)]| -> HeaderMap {
            let line = |(name, value): &(&'static str, &str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            };
            lines.iter().map(line).collect()
        };
        let body = Bytes::from_static(b"{}");
        let keys = [
            RequestKey::new(None, &headers(&[]), &body),
            RequestKey::new(None, &headers(&[]), &Bytes::from_static(b"{ }")),
            RequestKey::new(None, &headers(&[("x-a", "1")]), &body),
            RequestKey::new(None, &headers(&[("x-a", "2")]), &body),
            RequestKey::new(None, &headers(&[("x-a", "1"), ("x-b", "2")]), &body),
            RequestKey::new(Some("http://a/"), &headers(&[]), &body),
            RequestKey::new(Some("http://b/"), &headers(&[]), &body),
            RequestKey::new(Some("http://a/"), &headers(&[("x-a", "1")]), &body),
        ];
        for (index, one) in keys.iter().enumerate() {
            for (other_index, other) in keys.iter().enumerate() {
                assert_eq!(one == other, index == other_index, "{one:?} {other:?}");
            }
        }
    }
}
