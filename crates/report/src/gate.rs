//! Gates: limits that a build must keep, judged on the interval and not on the point.
//!
//! A gate holds when the *whole* interval is within its limit, and is broken when the whole
//! interval is beyond. In between it is undecided, and says why: the rounds were too few or the
//! machine too restless for an answer. A point estimate below a limit is luck half of the time.
//!
//! Absent on purpose: a limit on a figure without an interval, which would be a coin toss.

mod judge;
pub(crate) mod judgement;
pub(crate) mod shown;

pub(crate) use judge::{Judged, Role, judge};
pub use judgement::{Judgement, Ruling, Undecided};
pub use model::{Gate, GateError, Relation, Subject, gate_grammar as grammar};

#[cfg(test)]
mod tests;
