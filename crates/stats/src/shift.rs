//! The shift function: the delay of each quantile of the variant against its baseline (Doksum, "Empirical
//! Probability Plots and Statistical Inference for Nonlinear Models in the Two-Sample Case", 1974).
//!
//! It is the honest picture of an overhead. A cost that every request pays is a flat line. A cost that few
//! requests pay shows at the right end only, and the mean would hide it. The intervals of one shift function
//! hold all at once (see [`crate::simultaneous`]), so its whole course may be read.
//!
//! Quantiles are taken inside each round and compared round by round. Quantiles of different rounds are never
//! averaged into one.

use crate::histogram::Histogram;
use crate::paired::{Estimate, PairError};
use crate::simultaneous;

/// One point of a shift function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Share of requests, 0 to 1.
    pub quantile: f64,
    /// This quantile of the variant minus the quantile of the baseline, in ns.
    pub difference_ns: Estimate,
}

/// The reason why there is no shift function.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ShiftError {
    /// The rounds do not form pairs.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// A round without any request has no quantiles.
    #[error("expected requests in every round, found none in round {round}")]
    EmptyRound {
        /// Index of the round, from 0.
        round: usize,
    },
}

/// The shift function at these quantiles. Histograms with the same index belong to the same round. All
/// intervals together have the given confidence. They are `None` if there are too few rounds.
///
/// # Errors
/// If the numbers of rounds differ or are 0, if a round is empty, or if `confidence` does not lie strictly
/// between 0 and 1.
pub fn shift(
    baseline: &[Histogram],
    variant: &[Histogram],
    quantiles: &[f64],
    confidence: f64,
) -> Result<Vec<Shift>, ShiftError> {
    check(baseline, variant, confidence)?;
    let differences: Vec<Vec<f64>> = quantiles
        .iter()
        // The quantile of each round, then the difference within the round. The order matters, see the
        // module.
        .map(|quantile| {
            (0..)
                .zip(baseline.iter().zip(variant))
                .map(|(round, (base, value))| {
                    base.quantile_ns(*quantile)
                        .zip(value.quantile_ns(*quantile))
                        .map(|(base, value)| value as f64 - base as f64)
                        .ok_or(ShiftError::EmptyRound { round })
                })
                .collect()
        })
        .collect::<Result<_, _>>()?;
    let estimates = simultaneous::locations(&differences, confidence).unwrap_or_default();
    // `check` has rejected all other inputs without an estimate. Only an empty list of quantiles is left.
    Ok(quantiles
        .iter()
        .zip(estimates)
        .map(|(quantile, difference_ns)| Shift {
            quantile: *quantile,
            difference_ns,
        })
        .collect())
}

/// Checks that the rounds form pairs and that each pair has requests on both sides.
pub(crate) fn check(
    baseline: &[Histogram],
    variant: &[Histogram],
    confidence: f64,
) -> Result<(), ShiftError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(PairError::Confidence { confidence }.into());
    }
    if baseline.len() != variant.len() {
        return Err(PairError::Unequal {
            baseline: baseline.len(),
            variant: variant.len(),
        }
        .into());
    }
    if baseline.is_empty() {
        return Err(PairError::NoRounds.into());
    }
    let mut rounds = (0..).zip(baseline.iter().zip(variant));
    let empty = rounds.find(|(_, (base, own))| base.is_empty() || own.is_empty());
    empty.map_or(Ok(()), |(round, _)| Err(ShiftError::EmptyRound { round }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::sample;

    const QUANTILES: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];
    const MS: f64 = 1e6;

    /// Ten rounds of 5,000 requests that take 5 to 5.5 ms, each round a little slower or faster than the
    /// other rounds. `cost` is the cost that the variant adds to a request, in ms.
    fn rounds(seed: u64, cost: impl Fn(f64) -> f64) -> Vec<Histogram> {
        let mut random = Random::new(seed);
        let mut uniform = || (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (0..10)
            .map(|_| {
                let speed = 1.0 + 0.01 * (uniform() - 0.5);
                let mut round = Histogram::new();
                for _ in 0..5_000 {
                    let latency_ms = (5.0 + 0.5 * uniform()) * speed + cost(uniform());
                    #[expect(clippy::cast_possible_truncation, reason = "whole nanoseconds")]
                    round.record_ns((latency_ms * MS) as u64);
                }
                round
            })
            .collect()
    }

    #[test]
    fn a_cost_that_few_requests_pay_shows_at_the_right_end_only() {
        let baseline = rounds(1, |_| 0.0);
        let variant = rounds(2, |luck| if luck < 0.02 { 20.0 } else { 0.0 });
        let shifts = shift(&baseline, &variant, &QUANTILES, 0.95).unwrap();
        let median = shifts[2].difference_ns;
        assert!(median.interval.unwrap().contains(0.0), "{median:?}");
        let p99 = shifts[6].difference_ns;
        assert!((p99.value / MS - 20.0).abs() < 1.0, "{p99:?}");
        assert!(p99.interval.unwrap().low > 19.0 * MS, "{p99:?}");

        let means = |rounds: &[Histogram]| -> Vec<f64> {
            rounds.iter().filter_map(Histogram::mean_ns).collect()
        };
        let mean =
            sample::mean(&means(&variant)).unwrap() - sample::mean(&means(&baseline)).unwrap();
        assert!((mean / MS - 0.4).abs() < 0.1, "{mean}");
    }

    #[test]
    fn a_cost_that_every_request_pays_is_a_flat_line() {
        let baseline = rounds(3, |_| 0.0);
        let variant = rounds(4, |_| 5.0);
        for point in shift(&baseline, &variant, &QUANTILES, 0.95).unwrap() {
            let interval = point.difference_ns.interval.unwrap();
            assert!(interval.low > 4.95 * MS, "{point:?}");
            assert!(interval.high < 5.05 * MS, "{point:?}");
        }
    }

    #[test]
    fn rounds_that_make_no_pairs_are_refused() {
        let three = vec![Histogram::new(); 3];
        let refused = |baseline: &[Histogram], variant: &[Histogram]| {
            shift(baseline, variant, &QUANTILES, 0.95)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(&three, &three),
            "expected requests in every round, found none in round 0"
        );
        assert_eq!(
            refused(&three, &three[..2]),
            "expected 3 rounds of the variant, the number of the baseline, found 2"
        );
        assert_eq!(refused(&[], &[]), "expected at least one round, found none");
    }
}
