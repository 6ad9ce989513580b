//! Faults of the bytes of a response.

use crate::measurement::FailureKind;

/// The reason that the bytes cannot be an acceptable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The bytes are not HTTP/1.
    #[error("expected an HTTP/1 answer, found {0}")]
    Malformed(&'static str),
    /// The response is larger than [`Bounds`](crate::Bounds) allow.
    #[error("the {part} of the answer is larger than the {limit} {unit} allowed")]
    TooLarge {
        /// The part that is too large, such as `head` or `body`.
        part: &'static str,
        /// The largest accepted size.
        limit: u64,
        /// The unit of `limit`.
        unit: &'static str,
    },
    /// The check needs more bytes of the body than are kept.
    #[error(
        "the body of the answer has more than {limit} bytes. It is too large to capture from \
         or to compare in parts"
    )]
    TooLargeToCapture {
        /// The limit for kept bytes.
        limit: usize,
    },
}

impl ParseError {
    /// Returns its outcome.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            ParseError::Malformed(_) => FailureKind::Protocol,
            ParseError::TooLarge { .. } | ParseError::TooLargeToCapture { .. } => {
                FailureKind::TooLarge
            }
        }
    }
}
