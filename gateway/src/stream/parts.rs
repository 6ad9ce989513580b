//! The parts of a response with a body that continues after its first part.
//!
//! A stream produces the parts. It owns all its data (`Rc`s of the generation and of the exchange), so a
//! reload does not affect it. Only the body drives the stream, so the stream does no work while the
//! connection accepts no bytes. If the client disconnects, the body is dropped with all its work. A stream
//! waits before each part. When its [`Term`](crate::stream::drain::Term) is over, it writes a last part that
//! contains the reason, because the connection would be cut a moment later.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use chassis::Work;
use futures_util::Stream;

use crate::http::admission::Permit;

/// The parts of a response after its first part.
#[must_use]
pub(crate) struct BodyTail {
    parts: Pin<Box<dyn Stream<Item = Part>>>,
    /// Writes the first part, which is the reply that passes the stages.
    opener: fn(&[u8]) -> Bytes,
    /// True if the response continues until the client leaves. Such a response counts as a request only until
    /// it begins.
    is_endless: bool,
    /// Held so that limits count the request to its end.
    held: (Option<Permit>, Option<Work>),
}

/// One part, ready to send.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// The bytes, with the framing of the format.
    pub(crate) body: Bytes,
    /// Errors of the execution in it.
    pub(crate) error_count: usize,
    /// True if data is missing because of `limits`.
    pub(crate) is_cut: bool,
}

impl BodyTail {
    /// The parts of a stream. The body ends with the stream.
    pub(crate) fn new(parts: impl Stream<Item = Part> + 'static) -> Self {
        Self {
            parts: Box::pin(parts),
            opener: Multipart::first,
            is_endless: false,
            held: (None, None),
        }
    }

    /// The parts of a response that continues until the client leaves.
    pub(crate) fn endless(
        parts: impl Stream<Item = Part> + 'static,
        opener: fn(&[u8]) -> Bytes,
    ) -> Self {
        Self {
            opener,
            is_endless: true,
            ..Self::new(parts)
        }
    }

    /// The first part, ready to send.
    pub(crate) fn first(&self, body: &[u8]) -> Bytes {
        (self.opener)(body)
    }

    /// True if the response continues until the client leaves.
    pub(crate) fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// Keeps the permit of the admission limits, unless the response continues until the client leaves.
    pub(crate) fn hold_permit(&mut self, permit: Permit) {
        self.held.0 = Some(permit).filter(|_| !self.is_endless);
    }

    /// Keeps the permit of the connection.
    pub(crate) fn hold_work(&mut self, work: Work) {
        self.held.1 = Some(work);
    }

    /// The next part, or `None` at the end of the body.
    pub(crate) fn poll_part(&mut self, task: &mut Context<'_>) -> Poll<Option<Part>> {
        self.parts.as_mut().poll_next(task)
    }
}

impl std::fmt::Debug for BodyTail {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("BodyTail")
    }
}

/// The format of a `multipart/mixed` body.
///
/// A part is sent together with the boundary after it. So the client can read the part without waiting for
/// more bytes.
pub(crate) struct Multipart;

impl Multipart {
    /// The bytes before the first part.
    const START: &'static [u8] = b"\r\n--graphql";
    const HEAD: &'static [u8] = b"\r\ncontent-type: application/json\r\n\r\n";
    const BOUNDARY: &'static [u8] = b"\r\n--graphql";
    /// The bytes after the boundary of the last part.
    pub(crate) const END: &'static [u8] = b"--\r\n";

    /// The first part of several.
    pub(crate) fn first(json: &[u8]) -> Bytes {
        let text = [Self::START, Self::HEAD, json, Self::BOUNDARY];
        text.concat().into()
    }

    /// A part after the first.
    pub(crate) fn next(json: &[u8], is_last: bool) -> Bytes {
        let end = if is_last { Self::END } else { b"" };
        [Self::HEAD, json, Self::BOUNDARY, end].concat().into()
    }
}
