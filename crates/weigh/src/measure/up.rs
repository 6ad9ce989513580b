//! A candidate whose systems are up beside those of others.

use std::time::Duration;

use super::groups::CoresUsed;
use super::round::Seat;
use super::running::Running;
use crate::invalid::Invalid;

/// A candidate whose systems are up.
pub(super) struct Up {
    pub(super) seat: Seat,
    pub(super) running: Running,
    /// What settling and warming up have shown; none where neither was done.
    pub(super) used: Option<CoresUsed>,
}

/// Why there is no measurement of a round.
pub(super) struct Spoiled {
    /// The candidate that spoiled it, as a position among those that are up; none when all did.
    pub(super) by: Option<usize>,
    pub(super) invalid: Invalid,
}

impl From<Invalid> for Spoiled {
    fn from(invalid: Invalid) -> Spoiled {
        Spoiled { by: None, invalid }
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("no round lasts for centuries")
}
