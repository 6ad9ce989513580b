//! When two requests to a subgraph are the same, so that one is enough.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// What makes two requests equal: all that is sent and can differ, once header rules, scripts and
/// coprocessors are through with it. The method is always the same, and so is the subgraph.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    body: Bytes,
    /// The address, where it is not the subgraph's own, and the headers; empty without either.
    head: Vec<u8>,
}

impl RequestKey {
    /// `moved_to` is the address that a stage has chosen instead of the subgraph's own.
    pub(crate) fn new<'a>(
        moved_to: Option<&str>,
        headers: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>,
        body: &Bytes,
    ) -> Self {
        let mut head = Vec::new();
        if let Some(address) = moved_to {
            head.extend_from_slice(address.as_bytes());
            // No name of a header is empty, so this line cannot be mistaken for a header.
            head.extend_from_slice(b"\n:\n");
        }
        for (name, value) in headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.push(b':');
            // No value has a line end.
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
