//! Two series that were not measured together, such as runs of different days or files of other tools.
//!
//! The estimate is the Hodges-Lehmann estimate of the shift between two samples: the median of the
//! differences of all pairs, one value of each series. The interval belongs to the Mann-Whitney test, exact
//! for small numbers of rounds (Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd
//! edition, sections 4.2 and 4.3).
//!
//! The interval includes only the spread *within* each series. Two runs of the same system on different days
//! differ by more than that, so a report must mark such an interval as unpaired.
//!
//! As with pairs, fewer than 6 rounds on either side never support 95 % or more. For two series the
//! arithmetic would allow four, but the few rounds of one run share that run's conditions.

use crate::paired::{Claim, Estimate, Overhead, PairError, claim, cut_averages, exponentiate};
use crate::{paired, rank_sum, sample};

/// This confidence needs at least the number of rounds that pairs need.
const CONFIDENCE_DEFAULT: f64 = 0.95;

/// The difference between `variant` and `baseline`. The values of the two belong to different runs.
///
/// # Errors
/// If a series is empty or contains a value that is not finite, or if `confidence` does not lie strictly
/// between 0 and 1.
pub fn overhead(baseline: &[f64], variant: &[f64], confidence: f64) -> Result<Overhead, PairError> {
    check(baseline, variant, confidence)?;
    let difference = shift(baseline, variant, confidence).ok_or(PairError::NoRounds)?;
    let are_positive = baseline.iter().chain(variant).all(|value| *value > 0.0);
    let ratio = are_positive
        .then(|| {
            let logs = |values: &[f64]| values.iter().map(|value| libm::log(*value)).collect();
            let (base, own): (Vec<f64>, Vec<f64>) = (logs(baseline), logs(variant));
            shift(&base, &own, confidence).map(exponentiate)
        })
        .flatten();
    let difference_of_medians = sample::median(variant)
        .zip(sample::median(baseline))
        .map(|(value, base)| value - base)
        .ok_or(PairError::NoRounds)?;
    let needed = rounds_needed(confidence);
    Ok(Overhead {
        difference,
        ratio,
        difference_of_medians,
        claim: difference
            .interval
            .map_or(Claim::TooFewRounds { needed }, claim),
    })
}

/// The Hodges-Lehmann estimate of the shift from `baseline` to `variant`, with the interval of the
/// Mann-Whitney test if both have enough rounds. `None` if there is no pair or a difference is not finite.
///
/// Memory grows with the product of the numbers of values. It is meant for rounds, not requests.
#[must_use]
pub fn shift(baseline: &[f64], variant: &[f64], confidence: f64) -> Option<Estimate> {
    let mut differences: Vec<f64> = baseline
        .iter()
        .flat_map(|base| variant.iter().map(move |value| value - base))
        .collect();
    if differences.is_empty() || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    differences.sort_unstable_by(f64::total_cmp);
    let fewest = baseline.len().min(variant.len());
    let cut = rank_sum::cut(baseline.len(), variant.len(), confidence)
        // The exact distribution would allow fewer rounds. The minimum is a decision, see the module.
        .filter(|_| fewest >= rounds_needed(confidence));
    Some(Estimate {
        value: sample::median(&differences)?,
        interval: cut.and_then(|cut| cut_averages(&differences, cut, confidence)),
    })
}

/// The fewest rounds on both sides that can have an interval of this confidence: 6 for 0.95 and for all
/// corrections of it that occur in practice. Confidences of 1 and more need more rounds than can be counted.
#[must_use]
pub fn rounds_needed(confidence: f64) -> usize {
    let fewest = paired::rounds_needed(confidence.min(CONFIDENCE_DEFAULT));
    // With 20 values each, the most extreme order has a chance of 1 in 7 x 10^10.
    (fewest..=20)
        // By search, because the most extreme order's chance has no closed inverse for two series.
        .find(|rounds| rank_sum::cut(*rounds, *rounds, confidence).is_some())
        .unwrap_or_else(|| paired::rounds_needed(confidence))
}

fn check(baseline: &[f64], variant: &[f64], confidence: f64) -> Result<(), PairError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(PairError::Confidence { confidence });
    }
    if baseline.is_empty() || variant.is_empty() {
        return Err(PairError::NoRounds);
    }
    for values in [baseline, variant] {
        let odd = values.iter().position(|value| !value.is_finite());
        if let Some(round) = odd {
            return Err(PairError::NotFinite {
                round,
                value: values[round],
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
