//! How even the rate was within rounds.

use serde::Serialize;
use stats::sample;

use crate::float::float;
use crate::recording::RoundRecord;

/// Requests per second in windows within rounds; windows that the end cut short are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateWindows {
    /// Width of a window.
    pub width_us: u64,
    /// Complete windows over all rounds.
    pub windows: usize,
    /// Mean over windows.
    pub requests_per_s_mean: f64,
    /// Standard deviation over windows; absent with fewer than two.
    pub requests_per_s_stdev: Option<f64>,
    /// Highest window.
    pub requests_per_s_max: f64,
}

impl RateWindows {
    /// Of the complete windows of these measurements; none without any.
    pub(super) fn of(complete: &[&RoundRecord]) -> Option<Self> {
        let rates = rates(complete);
        Some(Self {
            width_us: complete.first()?.windows.width_us,
            windows: rates.len(),
            requests_per_s_mean: sample::mean(&rates)?,
            requests_per_s_stdev: sample::stddev(&rates),
            requests_per_s_max: sample::max(&rates)?,
        })
    }
}

/// Answers per second in each window that the end of its round did not cut short.
pub(crate) fn rates(complete: &[&RoundRecord]) -> Vec<f64> {
    let mut rates = Vec::new();
    for round in complete {
        rates.extend(of_whole(round, round.windows.completed.iter().copied()));
    }
    rates
}

/// The same of answers that passed. An error takes an answer away, whether it was a wrong one or none at
/// all, so where answers are missing the rate is a little too low.
pub(super) fn passed(round: &RoundRecord) -> Vec<f64> {
    let windows = round.windows.completed.iter().zip(&round.windows.errors);
    of_whole(
        round,
        windows.map(|(all, errors)| all.saturating_sub(*errors)),
    )
}

/// Counts of windows as counts per second, without the window that the end has cut short.
fn of_whole(round: &RoundRecord, counts: impl Iterator<Item = u64>) -> Vec<f64> {
    let width_us = round.windows.width_us;
    // A width of 0 has no windows.
    let whole = round.elapsed_us.checked_div(width_us).unwrap_or(0);
    let whole = usize::try_from(whole).expect("a usize has 64 bits");
    let counts = counts.take(whole);
    counts
        .map(|count| float(count) * 1e6 / float(width_us))
        .collect()
}
