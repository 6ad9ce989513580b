//! The conclusions from recordings: figures with intervals, checks, verdicts and gates.
//!
//! [`Summary::of`] computes the figures of one recording. [`compare`] compares two results, [`curve`] orders
//! the levels of a sweep, and [`history`] follows one cost over many runs. All take their data from
//! recordings alone. So `weigh report` can repeat them on another machine or in a later year.
//!
//! This crate is pure on purpose: no sockets, no clock, no environment, no files.

#![warn(missing_docs)]

pub mod company;
pub mod compare;
mod confidence;
pub mod curve;
pub mod gate;
pub mod history;
mod metric;
mod pace;
pub mod quoted;
#[cfg(test)]
mod reference_tests;
#[cfg(any(test, feature = "sample"))]
#[expect(
    clippy::unwrap_used,
    reason = "values for tests, with parts that exist by construction"
)]
pub mod sample;
pub mod summary;
pub mod until;

pub use compare::Comparison;
pub use confidence::CONFIDENCE;
pub use summary::{MetricSummary, Summary, Verdict, body_notes};
