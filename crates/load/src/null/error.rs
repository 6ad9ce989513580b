//! The reason that a null server cannot behave as requested.

/// An impossible behavior of a null server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BehaviorError {
    /// The weights of a mix are all 0, or their sum has more than 32 bits.
    #[error("expected weights with at least one above 0, such as `90:1ms,10:20ms`")]
    Weights,
    /// Wrong responses are requested, but the body has no bytes.
    #[error("a body of 0 bytes cannot be wrong. Give it at least 1 byte")]
    NothingToBeWrong,
    /// The coefficient of variation of a jitter is out of range.
    #[error("expected a jitter from 0 to 500 %")]
    Variation,
    /// The share of slow requests is out of range.
    #[error("expected a share from 0 to 100 %")]
    Share,
    /// The coding of bodies is unknown.
    #[error("{0}")]
    Encoding(#[from] crate::CodingError),
    /// Only gzip supports varying bytes.
    #[error("`{0}` encodes the same content to the same bytes. Varying bytes need gzip")]
    Varying(String),
    /// A number for how often an event happens is 0.
    #[error("expected `every` or `after` at least 1 request, found 0")]
    Never,
}
