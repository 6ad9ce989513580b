//! Paired overhead: the difference between a variant and its baseline, and its uncertainty.
//!
//! The unit is the round. Every round measures baseline and variant once, close together, so slow drift of
//! the machine cancels in the difference. The estimate is the Hodges-Lehmann estimate of the per-round
//! differences (the median of all pairwise averages), and one spoiled round hardly moves it. The interval
//! belongs to Wilcoxon's signed-rank test, exact for small numbers of rounds.
//!
//! Signed-rank statistics are whole numbers, so only some confidences exist for a given number of rounds. At
//! 6 rounds they are 96.9 % and 93.8 %, without a value between them. The ends of an interval are
//! interpolated between the two. With `n` rounds the signed ranks support no more confidence than
//! `1 - 2 / 2^n`, so fewer than 6 rounds never support 95 %.
//!
//! Several variants need more confidence for each of them, and 6 or 7 rounds do not have it by their signed
//! ranks. Then the interval is the interval of Student's t around the mean. It assumes that differences of
//! rounds are normal. It is wider, and one spoiled round makes it much wider.
//!
//! Both intervals assume that rounds do not depend on one another, and that their differences lie
//! symmetrically around the true one. For asymmetric differences, the estimate is the pseudo-median: the
//! median of the mean of two rounds.
//!
//! Absent on purpose: p-values, and claims without an interval.

use crate::covariate::{Adjustment, adjusted, usual};
use crate::sample;
use crate::signed_rank::{self, Cut};
use crate::student;

/// A range that contains the true value with the stated confidence, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, in the unit of the values.
    pub low: f64,
    /// Upper end, in the unit of the values.
    pub high: f64,
    /// Confidence, strictly between 0 and 1.
    pub confidence: f64,
}

impl Interval {
    /// True if `value` lies inside the interval or on an end.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of the distance between the ends.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// A value with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best single value.
    pub value: f64,
    /// `None` if there are too few rounds for the requested confidence.
    pub interval: Option<Interval>,
}

/// The cost of a variant compared with its baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// Variant minus baseline, in the unit of the values.
    pub difference: Estimate,
    /// Variant divided by baseline, from the differences of logarithms. `None` if a value is not positive.
    pub ratio: Option<Estimate>,
    /// Median of the variant minus median of the baseline, to compare with `difference`.
    pub difference_of_medians: f64,
    /// The conclusion that the interval of `difference` allows.
    pub claim: Claim,
}

impl Overhead {
    /// True if the estimate and the plain difference of medians have opposite signs. It happens when rounds
    /// fall into several groups. Then neither number alone describes the difference.
    #[must_use]
    pub fn is_sign_disputed(&self) -> bool {
        self.difference.value * self.difference_of_medians < 0.0
    }
}

/// A conclusion about a difference, from the position of its interval relative to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The variant's values are higher.
    Higher,
    /// The variant's values are lower.
    Lower,
    /// The interval contains zero. Not a proof that there is no difference.
    NoDifferenceShown,
    /// This many rounds could never support the requested confidence.
    TooFewRounds {
        /// The fewest rounds that could support it.
        needed: usize,
    },
}

/// The reason why two series cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PairError {
    /// The series have different lengths.
    #[error(
        "expected {baseline} rounds of the variant, the number of the baseline, found {variant}"
    )]
    Unequal {
        /// Number of rounds of the baseline.
        baseline: usize,
        /// Number of rounds of the variant.
        variant: usize,
    },
    /// Both series have no values.
    #[error("expected at least one round, found none")]
    NoRounds,
    /// A value is infinite or not a number.
    #[error("expected finite values, found {value} in round {round}")]
    NotFinite {
        /// Index of the round, from 0.
        round: usize,
        /// The value of the baseline or of the variant that is not finite.
        value: f64,
    },
    /// A confidence outside of its range.
    #[error("expected a confidence between 0 and 1, such as 0.95, found {confidence}")]
    Confidence {
        /// The requested confidence.
        confidence: f64,
    },
}

/// Compares a variant with its baseline. Values with the same index belong to the same round.
///
/// # Errors
/// If the series differ in length, are empty or contain a value that is not finite, or if `confidence` does
/// not lie strictly between 0 and 1.
pub fn overhead(baseline: &[f64], variant: &[f64], confidence: f64) -> Result<Overhead, PairError> {
    let unchanged = |values: &[f64]| Adjustment {
        values: values.to_vec(),
        lost: 0,
    };
    between(baseline, variant, confidence, unchanged, unchanged)
}

/// Returns the rounds that [`overhead_adjusted`] takes. `None` if the usual rounds are too few for an
/// interval of this confidence. A line through all rounds would follow the unusual ones, so no value is
/// adjusted then.
#[must_use]
pub fn usual_rounds(slowness: &[f64], confidence: f64) -> Option<Vec<usize>> {
    Some(usual(slowness)).filter(|rounds| rounds.len() >= rounds_needed(confidence))
}

/// Like [`overhead`], over the [`usual_rounds`], when the machine had its usual speed. If there are no such
/// rounds, it is [`overhead`] over all rounds. `slowness` contains the logarithm of the machine's slowness in
/// each round, and must not depend on either of the two series.
///
/// A difference grows in proportion to the slowness, and the logarithm of a ratio with its logarithm. So each
/// is adjusted on its own scale, because a line has the right shape there.
///
/// # Errors
/// Like [`overhead`].
pub fn overhead_adjusted(
    baseline: &[f64],
    variant: &[f64],
    slowness: &[f64],
    confidence: f64,
) -> Result<Overhead, PairError> {
    let Some(rounds) = usual_rounds(slowness, confidence) else {
        return overhead(baseline, variant, confidence);
    };
    let factors = factors(slowness);
    let scales = [factors.as_slice(), slowness];
    let [of_differences, of_ratios] =
        scales.map(|covariate| |values: &[f64]| adjusted(values, covariate, &rounds));
    between(baseline, variant, confidence, of_differences, of_ratios)
}

/// Differences by round, and the degrees of freedom that their adjustment took.
#[derive(Clone, Debug, PartialEq)]
pub struct Differences {
    /// The difference of each round. `None` for a round that is not used.
    pub by_round: Vec<Option<f64>>,
    /// See [`Adjustment::lost`].
    pub lost: usize,
}

/// The adjusted differences of the rounds that [`overhead_adjusted`] takes. `None` for any other round.
/// Without [`usual_rounds`], all differences unchanged.
#[must_use]
pub fn differences_adjusted(
    baseline: &[f64],
    variant: &[f64],
    slowness: &[f64],
    confidence: f64,
) -> Differences {
    let pairs = baseline.iter().zip(variant);
    let differences: Vec<f64> = pairs.map(|(base, value)| value - base).collect();
    let unchanged = |differences: Vec<f64>| Differences {
        by_round: differences.into_iter().map(Some).collect(),
        lost: 0,
    };
    let Some(rounds) = usual_rounds(slowness, confidence) else {
        return unchanged(differences);
    };
    let left = adjusted(&differences, &factors(slowness), &rounds);
    if left.values.len() != rounds.len() {
        return unchanged(differences);
    }
    let mut all = vec![None; differences.len()];
    for (round, value) in rounds.into_iter().zip(left.values) {
        all[round] = Some(value);
    }
    Differences {
        by_round: all,
        lost: left.lost,
    }
}

/// The slowness of each round in proportion to the middle one, from logarithms. The logarithm of a latency in
/// nanoseconds may be any number.
fn factors(slowness: &[f64]) -> Vec<f64> {
    let middle = sample::median(slowness).unwrap_or(0.0);
    slowness.iter().map(|log| libm::exp(log - middle)).collect()
}

fn between(
    baseline: &[f64],
    variant: &[f64],
    confidence: f64,
    adjust: impl Fn(&[f64]) -> Adjustment,
    adjust_logs: impl Fn(&[f64]) -> Adjustment,
) -> Result<Overhead, PairError> {
    check(baseline, variant, confidence)?;
    let pairs = || baseline.iter().zip(variant);
    let differences: Vec<f64> = pairs().map(|(base, value)| value - base).collect();
    let difference = location_of(&adjust(&differences), confidence).ok_or(PairError::NoRounds)?;
    let are_positive = pairs().all(|(base, value)| *base > 0.0 && *value > 0.0);
    let ratio = are_positive
        .then(|| {
            let logs: Vec<f64> = pairs()
                // By `libm`, not by the platform, so that the same recording gives the same digits on every
                // machine.
                .map(|(base, value)| libm::log(*value) - libm::log(*base))
                .collect();
            location_of(&adjust_logs(&logs), confidence).map(exponentiate)
        })
        .flatten();
    let difference_of_medians = sample::median(variant)
        .zip(sample::median(baseline))
        .map(|(value, base)| value - base)
        .ok_or(PairError::NoRounds)?;
    let claim = difference.interval.map_or(
        Claim::TooFewRounds {
            needed: rounds_needed(confidence),
        },
        claim,
    );
    Ok(Overhead {
        difference,
        ratio,
        difference_of_medians,
        claim,
    })
}

fn check(baseline: &[f64], variant: &[f64], confidence: f64) -> Result<(), PairError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(PairError::Confidence { confidence });
    }
    if baseline.len() != variant.len() {
        return Err(PairError::Unequal {
            baseline: baseline.len(),
            variant: variant.len(),
        });
    }
    if baseline.is_empty() {
        return Err(PairError::NoRounds);
    }
    for (round, (&base, &value)) in baseline.iter().zip(variant).enumerate() {
        // The difference is checked too, because the difference of two huge values can be infinite.
        if let Some(value) = [base, value, value - base]
            .into_iter()
            .find(|value| !value.is_finite())
        {
            return Err(PairError::NotFinite { round, value });
        }
    }
    Ok(())
}

pub(crate) fn claim(interval: Interval) -> Claim {
    if interval.low > 0.0 {
        Claim::Higher
    } else if interval.high < 0.0 {
        Claim::Lower
    } else {
        Claim::NoDifferenceShown
    }
}

// Exponentiates value and ends. The interval keeps its confidence, because exponentiation keeps the order of
// its ends.
pub(crate) fn exponentiate(logs: Estimate) -> Estimate {
    Estimate {
        value: libm::exp(logs.value),
        interval: logs.interval.map(|interval| Interval {
            low: libm::exp(interval.low),
            high: libm::exp(interval.high),
            ..interval
        }),
    }
}

/// The Hodges-Lehmann estimate of one series with one value per round, and its Wilcoxon interval. If the
/// signed ranks of few rounds do not support the confidence, it has the interval of Student's t. `None` for
/// an empty series or a value that is not finite. The interval is `None` with fewer rounds than
/// [`rounds_needed`].
#[must_use]
pub fn location(values: &[f64], confidence: f64) -> Option<Estimate> {
    located(values, None, confidence)
}

/// Like [`location`], for values that were adjusted along a line. An interval is wider by the factor
/// `t(n - 1 - lost) / t(n - 1)`, with the quantile `t` of Student's distribution at this confidence. An
/// interval by Student's t thereby gets the right degrees of freedom. Each end of an interval by signed ranks
/// is moved away from the estimate by this factor. Signed ranks have no degrees of freedom. But those of
/// residuals miss the truth about as often as Student's t does, and the factor mends both
/// (`tests/simulated_labs/neighbors.rs`).
#[must_use]
pub fn location_of(adjusted: &Adjustment, confidence: f64) -> Option<Estimate> {
    let by = widening(adjusted.values.len(), adjusted.lost, confidence);
    located(&adjusted.values, by, confidence)
}

/// The estimate, with an interval that is wider by a factor.
fn located(values: &[f64], wider: Option<f64>, confidence: f64) -> Option<Estimate> {
    let averages = walsh_averages(values)?;
    let value = sample::median(&averages)?;
    let by_ranks = signed_rank::cut(values.len(), confidence)
        .and_then(|cut| cut_averages(&averages, cut, confidence));
    let from_value = |interval: Interval| match wider {
        Some(by) => Interval {
            low: value + by * (interval.low - value),
            high: value + by * (interval.high - value),
            ..interval
        },
        None => interval,
    };
    Some(Estimate {
        value,
        interval: by_ranks
            .map(from_value)
            .or_else(|| interval_by_t(values, value, wider, confidence)),
    })
}

/// The factor of [`location_of`]. `None` if no degree of freedom is lost.
fn widening(values: usize, lost: usize, confidence: f64) -> Option<f64> {
    let is_possible = confidence > 0.0 && confidence < 1.0;
    let whole = values.checked_sub(1)?;
    let left = whole.checked_sub(lost).filter(|left| *left > 0)?;
    if lost == 0 || !is_possible {
        return None;
    }
    Some(student::quantile(confidence, left) / student::quantile(confidence, whole))
}

/// The interval of Student's t around the mean, wider by a factor, and extended to contain the estimate.
/// `None` with fewer than [`ROUNDS_BY_T`] rounds.
fn interval_by_t(
    values: &[f64],
    estimate: f64,
    wider: Option<f64>,
    confidence: f64,
) -> Option<Interval> {
    let is_possible = confidence > 0.0 && confidence < 1.0;
    if values.len() < ROUNDS_BY_T || !is_possible {
        return None;
    }
    let (mean, half_width) = (
        sample::mean(values)?,
        student::half_width(values, confidence)? * wider.unwrap_or(1.0),
    );
    Some(Interval {
        low: (mean - half_width).min(estimate),
        high: (mean + half_width).max(estimate),
        confidence,
    })
}

/// Median of the averages of all pairs, each value paired with itself too (Hodges and Lehmann, "Estimates of
/// Location Based on Rank Tests", 1963). `None` for an empty series or a value that is not finite.
///
/// Memory grows with the square of the number of values. It is meant for rounds, not requests.
#[must_use]
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    sample::median(&walsh_averages(values)?)
}

/// The interval of all centers that Wilcoxon's signed-rank test does not reject, with interpolated ends.
/// `None` if the signed ranks of this many rounds do not support the confidence. Also `None` if a value is
/// not finite, or if `confidence` does not lie strictly between 0 and 1.
#[must_use]
pub fn wilcoxon_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let cut = signed_rank::cut(values.len(), confidence)?;
    cut_averages(&walsh_averages(values)?, cut, confidence)
}

/// The interval between the two positions that cut the sorted averages.
pub(crate) fn cut_averages(averages: &[f64], cut: Cut, confidence: f64) -> Option<Interval> {
    let last = averages.len().checked_sub(1)?;
    let end = |outer: usize, inner: usize| -> Option<f64> {
        let (outer, inner) = (*averages.get(outer)?, *averages.get(inner)?);
        Some(outer + cut.inward * (inner - outer))
    };
    let (outer, inner) = (cut.rank - 1, cut.rank.min(last));
    Some(Interval {
        low: end(outer, inner)?,
        high: end(last.checked_sub(outer)?, last - inner)?,
        confidence,
    })
}

/// Averages of all pairs, sorted.
pub(crate) fn walsh_averages(values: &[f64]) -> Option<Vec<f64>> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    // n (n + 1) / 2 pairs, each value with itself included.
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, first) in values.iter().enumerate() {
        averages.extend(
            values[index..]
                .iter()
                .map(|second| f64::midpoint(*first, *second)),
        );
    }
    averages.sort_unstable_by(f64::total_cmp);
    Some(averages)
}

/// The fewest rounds that have an interval by Student's t. The signed ranks of as many support 95 %.
const ROUNDS_BY_T: usize = 6;

/// The fewest rounds that can have an interval of this confidence: 5 for 0.9, 6 for 0.95 and more.
/// Confidences of 1 and more need more rounds than can be counted. Confidences of 0 and less need one.
#[must_use]
pub fn rounds_needed(confidence: f64) -> usize {
    match rounds_by_ranks(confidence) {
        usize::MAX => usize::MAX,
        ranks => ranks.min(ROUNDS_BY_T),
    }
}

/// The fewest rounds with signed ranks that support this confidence, so that the interval needs no normal
/// differences: 6 for 0.95, 8 for 0.99. Confidences of 1 and more need more rounds than can be counted.
#[must_use]
pub fn rounds_by_ranks(confidence: f64) -> usize {
    if confidence.is_nan() || confidence >= 1.0 {
        return usize::MAX;
    }
    let mut rounds = 1;
    // Two-sided, the most extreme outcome of n rounds has a chance of 2 / 2^n.
    let mut chance = 1.0;
    while chance > 1.0 - confidence {
        rounds += 1;
        chance /= 2.0;
    }
    rounds
}

#[cfg(test)]
mod tests;
