//! Quantiles, intervals and paired overhead: numbers in, numbers out.
//!
//! Inside a round, requests are counted in a [`Histogram`] that merges without loss. Between rounds, the unit
//! of statistics is the round. Requests of one round share its conditions, so an interval over requests would
//! be far too narrow. [`paired::overhead`] compares a variant with its baseline round by round.
//! [`unpaired::overhead`] compares series that were not measured together. [`bootstrap::pooled_shift`]
//! compares the requests of all rounds together. [`width`] computes the number of rounds for an interval of a
//! given width.
//!
//! Absent on purpose: means over percentiles, p-values, and every test that treats requests as independent.

#![warn(missing_docs)]

pub mod blocks;
pub mod bootstrap;
pub mod change_points;
pub mod covariate;
pub mod cycles;
pub mod factorial;
pub mod histogram;
pub mod little;
pub mod multiple;
pub mod nested;
mod normal;
pub mod occupied;
pub mod paired;
mod random;
mod rank_sum;
pub mod sample;
pub mod sequential;
pub mod shift;
mod signed_rank;
pub mod simultaneous;
pub mod slices;
mod student;
pub mod trend;
mod trimmed;
pub mod unpaired;
pub mod width;

pub use histogram::{DecodeError, Histogram};
pub use multiple::per_comparison_confidence;
pub use paired::{
    Claim, Estimate, Interval, Overhead, PairError, hodges_lehmann, location, overhead,
    rounds_needed, wilcoxon_interval,
};
pub use trimmed::{trimmed_mean, typical_of_mixture};
