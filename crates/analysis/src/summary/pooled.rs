//! Differences of percentiles over the requests of all rounds, for tails with too few requests in a single
//! round.
//!
//! Percentiles with enough requests per round are compared round by round.

use std::collections::BTreeMap;

use recording::{RoundPart, RoundRecord};
use serde::Serialize;
use stats::Histogram;
use stats::bootstrap::{self, pooled_shift};

/// The compared percentiles, as shares.
const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Difference of a latency percentile over the requests of all rounds: the variant's minus the baseline's.
/// The interval is from a bootstrap over rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledDifference {
    /// Share of the requests, 0 to 1.
    pub quantile: f64,
    /// The difference in microseconds.
    pub latency_us: f64,
    /// Lower end of the interval. Absent with too few requests beyond the percentile.
    pub latency_us_low: Option<f64>,
    /// Upper end of the interval. Absent with too few requests beyond the percentile.
    pub latency_us_high: Option<f64>,
}

/// The differences over the rounds with measurements of both. Empty with too few rounds for an interval.
pub(super) fn differences(
    baseline: &[&RoundRecord],
    variant: &[&RoundRecord],
    confidence: f64,
) -> Vec<PooledDifference> {
    let of_baseline: BTreeMap<RoundPart, &RoundRecord> = baseline
        .iter()
        .map(|round| (round.part(), *round))
        .collect();
    // Only the baseline's rounds that the variant has are used, so that both pools had the same conditions.
    let pairs = variant.iter().filter_map(|own| {
        let base = of_baseline.get(&own.part())?;
        Some((
            base.latency_ns_hdr.histogram(),
            own.latency_ns_hdr.histogram(),
        ))
    });
    let (base, own): (Vec<Histogram>, Vec<Histogram>) = pairs.unzip();
    // With fewer rounds, the bootstrap has too few distinct draws to guarantee its confidence.
    if base.len() < bootstrap::ROUNDS_MIN {
        return Vec::new();
    }
    // A round without any request has no percentiles, so there is no difference.
    let shifts = pooled_shift(&base, &own, &QUANTILES, confidence).unwrap_or_default();
    let us = |nanoseconds: f64| nanoseconds / 1e3;
    let differences = shifts.into_iter().map(|shift| PooledDifference {
        quantile: shift.quantile,
        latency_us: us(shift.difference_ns.value),
        latency_us_low: shift
            .difference_ns
            .interval
            .map(|interval| us(interval.low)),
        latency_us_high: shift
            .difference_ns
            .interval
            .map(|interval| us(interval.high)),
    });
    differences.collect()
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use crate::summary::Summary;

    #[test]
    fn a_cost_of_every_request_shows_at_every_percentile_of_all_rounds() {
        let recording = SampleRun::closed()
            .rounds(12)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let summary = Summary::of(&recording);
        assert!(summary.variants[0].pooled_differences.is_empty());
        let differences = &summary.variants[1].pooled_differences;
        assert_eq!(differences.len(), 7);
        for difference in differences {
            // Only ten of a hundred thousand requests are beyond the last percentile, which is too few.
            let low = difference.latency_us_low.unwrap();
            assert_eq!(low > 0.0, difference.quantile < 0.9999, "{difference:?}");
            assert!(low <= difference.latency_us, "{difference:?}");
            assert!(difference.latency_us <= difference.latency_us_high.unwrap());
        }
    }

    #[test]
    fn few_rounds_have_no_pooled_differences() {
        let recording = SampleRun::closed()
            .rounds(9)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        assert!(
            Summary::of(&recording).variants[1]
                .pooled_differences
                .is_empty()
        );
    }
}
