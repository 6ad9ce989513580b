//! The result of two short loads to a variant.

use std::time::Duration;

use schedule::fit::Observed;

/// The behavior of a variant under two short loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) observed: Observed,
    /// The standard error of the typical latency of a single request, in seconds. The error of `n` requests
    /// is smaller by the square root of `n`.
    pub(super) error_s: f64,
    /// Time that the systems needed for their start and their proof.
    pub(super) start: Duration,
}
