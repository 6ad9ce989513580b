//! Gates: limits that a build must keep, judged on the interval and not on the point.
//!
//! A gate holds if the *whole* interval is within its limit, and is broken if the whole interval is beyond.
//! In between it is undecided, and the reason names the cause: too few rounds, or a noisy machine. A point
//! estimate below a limit would be chance half of the time.
//!
//! A limit on a figure without an interval is absent on purpose, because its result would be random.

mod judge;
mod judgement;

pub(crate) use judge::{Judged, Role, judge};
pub use judgement::{Grounds, Judgement, Ruling, Undecided};

#[cfg(test)]
mod tests;
