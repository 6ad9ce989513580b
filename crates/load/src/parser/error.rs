//! What is wrong with the bytes of an answer.

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
        /// What would have been accepted.
        limit: u64,
        /// What `limit` counts.
        unit: &'static str,
    },
}
