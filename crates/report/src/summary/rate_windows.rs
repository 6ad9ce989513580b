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
        let width_us = round.windows.width_us;
        if width_us == 0 {
            continue;
        }
        let whole = usize::try_from(round.elapsed_us / width_us).expect("a usize has 64 bits");
        let counts = round.windows.completed.iter().take(whole);
        rates.extend(counts.map(|count| float(*count) * 1e6 / float(width_us)));
    }
    rates
}
