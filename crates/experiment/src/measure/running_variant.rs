//! A candidate that is running side by side with other candidates.

use std::time::Duration;

use super::groups::CoresUsed;
use super::round::Position;
use super::running::Running;
use crate::invalid::Invalid;

/// A candidate with its running systems.
pub(super) struct RunningVariant {
    pub(super) position: Position,
    pub(super) running: Running,
    /// Processor use seen during settling and warm-up. `None` without both.
    pub(super) used: Option<CoresUsed>,
}

/// The failure of a round, with its culprit.
pub(super) struct RoundFailure {
    /// The culprit, as a position among the running candidates. `None` if all failed.
    pub(super) culprit: Option<usize>,
    pub(super) invalid: Invalid,
}

impl From<Invalid> for RoundFailure {
    fn from(invalid: Invalid) -> RoundFailure {
        RoundFailure {
            culprit: None,
            invalid,
        }
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("no round lasts for centuries")
}
