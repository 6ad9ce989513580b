//! The steps of a scenario, each over all measurements of a variant.

use stats::Histogram;

use crate::digits;
use crate::metric::float;
use crate::recording::{Outcomes, RoundRecord};
use crate::summary::named_outcomes;

/// One step over several measurements.
pub(crate) struct Step {
    pub(crate) name: String,
    latency: Histogram,
    outcomes: Outcomes,
    skipped: u64,
}

/// The steps of these measurements; none for a rotation.
pub(crate) fn all(rounds: &[&RoundRecord]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let is_kept = |round: &&&RoundRecord| !round.disturbed;
    for round in rounds.iter().filter(is_kept) {
        for (index, record) in round.steps.iter().enumerate() {
            if steps.len() == index {
                steps.push(Step {
                    name: record.name.clone(),
                    latency: Histogram::new(),
                    outcomes: Outcomes::default(),
                    skipped: 0,
                });
            }
            let step = &mut steps[index];
            step.latency.add(&record.latency_ns_hdr.histogram());
            step.outcomes.add(&record.outcomes);
            step.skipped += record.skipped;
        }
    }
    steps
}

impl Step {
    /// p50, p99 and the longest, in microseconds; none without an answer.
    pub(crate) fn quantiles_us(&self) -> [Option<f64>; 3] {
        [
            self.latency.quantile_ns(0.5),
            self.latency.quantile_ns(0.99),
            self.latency.max_ns(),
        ]
        .map(|ns| ns.map(|ns| float(ns) / 1e3))
    }

    /// `passed 990, mismatched 10 (status 10), skipped 5`.
    pub(crate) fn outcomes(&self) -> String {
        let mut words = named_outcomes(&self.outcomes);
        if self.skipped > 0 {
            words += &format!(", skipped {}", digits::count(self.skipped));
        }
        words
    }
}
