//! Confidence of intervals and verdicts.

use std::collections::BTreeSet;

use recording::{Recording, RoundPart};

use crate::pace::RoundDifferences;

/// The confidence of every interval, and of all verdicts together.
pub const CONFIDENCE: f64 = 0.95;

/// The confidence of each of `comparisons` comparisons, so that all hold together at [`CONFIDENCE`]
/// (Bonferroni). A run with a stopping rule checks its intervals many times, so they need a higher
/// confidence.
pub(crate) fn each(looks: Looks, comparisons: usize) -> f64 {
    stats::per_comparison_confidence(overall(looks), comparisons)
}

/// The confidence of each of these comparisons, from their differences by round. It is lower than with
/// Bonferroni's correction if the differences correlate through a common baseline.
///
/// Adjusted differences have Bonferroni's correction. Flips of residuals make intervals too narrow: those of
/// eight variants and seven rounds would hold together in 93 % (`crates/stats/tests/simulated_labs`).
pub(crate) fn each_of(looks: Looks, comparisons: &[RoundDifferences]) -> f64 {
    if comparisons.iter().any(|it| it.is_adjusted) {
        return each(looks, comparisons.len());
    }
    let parts = comparisons.iter().flat_map(|it| it.by_part.keys());
    let parts: BTreeSet<&RoundPart> = parts.collect();
    let row = |differences: &RoundDifferences| {
        let each = parts
            .iter()
            .map(|part| differences.by_part.get(part).copied());
        each.collect::<Vec<Option<f64>>>()
    };
    let rows: Vec<Vec<Option<f64>>> = comparisons.iter().map(row).collect();
    stats::simultaneous::confidence_each(&rows, overall(looks))
}

/// Number and kind of the checks on intervals before the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// One check, because the number of rounds was fixed.
    Once,
    /// A check of the widths after each round.
    AtWidths,
    /// A check of the side of a limit after each round.
    AtGates,
}

impl Looks {
    pub(crate) fn of(recording: &Recording) -> Self {
        match (&recording.until, &recording.decided) {
            (_, Some(_)) => Self::AtGates,
            (Some(_), None) => Self::AtWidths,
            (None, None) => Self::Once,
        }
    }
}

fn overall(looks: Looks) -> f64 {
    match looks {
        Looks::Once => CONFIDENCE,
        Looks::AtWidths => stats::width::watched_confidence(CONFIDENCE),
        Looks::AtGates => stats::sequential::look_confidence(CONFIDENCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_differences_have_the_correction_of_bonferroni() {
        // Three equal rows, which need no correction at all.
        let row = |is_adjusted: bool| RoundDifferences {
            by_part: (0..8)
                .map(|round| {
                    let value = f64::from(round * round % 7) - 2.5;
                    (RoundPart { round, group: 0 }, value)
                })
                .collect(),
            is_adjusted,
        };
        let of = |is_adjusted| each_of(Looks::Once, &[row(false), row(false), row(is_adjusted)]);
        let bonferroni = 1.0 - 0.05 / 3.0;
        assert!((of(true) - bonferroni).abs() < 1e-12, "{}", of(true));
        assert!(of(false) < 0.96, "{}", of(false));
        let alone = each_of(Looks::Once, &[row(true)]);
        assert!((alone - CONFIDENCE).abs() < 1e-12, "{alone}");
    }
}
