//! The reason that a null server cannot behave as requested.

/// The reason that a null server cannot behave as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BehaviorError {
    /// The weights of a mix are all 0, or their sum has more than 32 bits.
    #[error("expected weights of which one is above 0, such as `90:1ms,10:20ms`")]
    Weights,
    /// Wrong answers are asked for, and the body has no byte that could be wrong.
    #[error("a body of 0 bytes cannot be wrong; let it have at least 1")]
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
    /// Only gzip has a place for bytes that vary.
    #[error("`{0}` has the same bytes for the same content; bytes that vary need gzip")]
    Varying(String),
    /// A number that says how often something happens is 0.
    #[error("expected `every` or `after` at least 1 request, found 0")]
    Never,
}
