//! Variation of the rate within rounds.

use recording::{RoundRecord, float};
use serde::Serialize;
use stats::sample;

/// Requests per second in windows within rounds, without windows that the end of a round cut short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateWindows {
    /// Width of a window in microseconds.
    pub width_us: u64,
    /// Number of complete windows over all rounds.
    pub windows: usize,
    /// Mean rate over all windows.
    pub requests_per_s_mean: f64,
    /// Standard deviation over windows. Absent with fewer than two windows.
    pub requests_per_s_stdev: Option<f64>,
    /// Rate of the highest window.
    pub requests_per_s_max: f64,
}

impl RateWindows {
    /// Figures over the complete windows of these measurements. `None` without a window.
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

/// Responses per second in each window that the end of its round did not cut short.
pub fn rates(complete: &[&RoundRecord]) -> Vec<f64> {
    let mut rates = Vec::new();
    for round in complete {
        rates.extend(of_whole(round, round.windows.completed.iter().copied()));
    }
    rates
}

/// Passed responses per second in each complete window. Every error subtracts a response, even if there was
/// no response. So with missing responses the rate is slightly too low.
pub(super) fn passed(round: &RoundRecord) -> Vec<f64> {
    let windows = round.windows.completed.iter().zip(&round.windows.errors);
    of_whole(
        round,
        windows.map(|(all, errors)| all.saturating_sub(*errors)),
    )
}

/// Counts of windows as counts per second, without a window that the end cut short.
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
