//! Results of the search for the highest rate, by round.

use recording::{RoundRecord, SearchStep};
use serde::Serialize;

/// The search of one round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchSummary {
    /// The highest sustained rate.
    pub sustained_per_s: f64,
    /// Latency that 99 % of the responses at the sustained rate did not exceed.
    pub sustained_latency_us_p99: Option<f64>,
    /// The lowest higher rate that was not sustained. Absent if all rates were sustained.
    pub refused_per_s: Option<f64>,
    /// Latency that 99 % of the responses at the refused rate did not exceed.
    pub refused_latency_us_p99: Option<f64>,
    /// Requests at the refused rate that did not pass.
    pub refused_not_passed: u64,
    /// Number of tries, including repeated tries.
    pub steps: usize,
}

/// The searches of the measurements, in their order.
pub(super) fn of(complete: &[&RoundRecord]) -> Vec<SearchSummary> {
    let summary = |round: &&RoundRecord| {
        let steps = &round.search.as_ref()?.steps;
        // Rates are finite, so the total order of floats is their numeric order.
        let by_rate =
            |one: &&SearchStep, other: &&SearchStep| one.rate_per_s.total_cmp(&other.rate_per_s);
        let sustained = steps.iter().filter(|step| step.is_sustained);
        let sustained = sustained.max_by(by_rate)?;
        // A rate that was sustained in its second try was not refused.
        let refused = steps
            .iter()
            .filter(|step| step.rate_per_s > sustained.rate_per_s && !step.is_disturbed);
        let refused = refused.min_by(by_rate);
        Some(SearchSummary {
            sustained_per_s: sustained.rate_per_s,
            sustained_latency_us_p99: sustained.latency_us_p99,
            refused_per_s: refused.map(|step| step.rate_per_s),
            refused_latency_us_p99: refused.and_then(|step| step.latency_us_p99),
            refused_not_passed: refused.map_or(0, |step| step.not_passed),
            steps: steps.len(),
        })
    };
    complete.iter().filter_map(summary).collect()
}

#[cfg(test)]
mod tests {
    use recording::SearchRecord;
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn the_rate_above_the_one_that_was_sustained_says_why_it_was_the_highest() {
        let mut recording = SampleRun::open().variant("a", 700.0).build();
        let step = |rate_per_s: f64, p99: f64, is_sustained: bool| SearchStep {
            rate_per_s,
            latency_us_p99: Some(p99),
            not_passed: u64::from(!is_sustained),
            is_sustained,
            is_disturbed: false,
        };
        let disturbed = SearchStep {
            is_disturbed: true,
            ..step(300.0, 500.0, false)
        };
        recording.rounds[0].search = Some(SearchRecord {
            steps: vec![
                step(100.0, 1.0, true),
                step(200.0, 30.0, false),
                step(200.0, 3.0, true),
                disturbed,
                step(800.0, 90.0, false),
                step(400.0, 20.0, false),
                step(400.0, 21.0, false),
            ],
            is_at_top: false,
        });
        recording.rounds[1].search = Some(SearchRecord {
            steps: vec![step(100.0, 1.0, true)],
            is_at_top: true,
        });
        let rounds: Vec<&RoundRecord> = recording.rounds.iter().collect();
        let found = of(&rounds);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].sustained_per_s, 200.0);
        assert_eq!(found[0].sustained_latency_us_p99, Some(3.0));
        assert_eq!(found[0].refused_per_s, Some(400.0));
        assert_eq!((found[0].refused_not_passed, found[0].steps), (1, 7));
        assert_eq!(found[1].refused_per_s, None);
    }
}
