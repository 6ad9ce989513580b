//! What is wrong with the bytes of an answer.

use crate::measurement::FailureKind;

/// Why the bytes cannot be an acceptable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// They are not HTTP/1.
    #[error("expected an HTTP/1 answer, found {0}")]
    Malformed(&'static str),
    /// They are more than [`Bounds`](crate::Bounds) allow.
    #[error("the {part} of the answer is larger than the {limit} {unit} allowed")]
    TooLarge {
        /// `head`, `body`, …
        part: &'static str,
        /// The most that is accepted.
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
        /// Bytes that would have been kept.
        limit: usize,
    },
}

impl ParseError {
    /// The outcome that it counts under.
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
