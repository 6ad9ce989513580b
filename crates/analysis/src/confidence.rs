//! Confidence of intervals and verdicts.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Recording, RoundPart};

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
pub(crate) fn each_of(looks: Looks, comparisons: &[BTreeMap<RoundPart, f64>]) -> f64 {
    let parts = comparisons.iter().flat_map(BTreeMap::keys);
    let parts: BTreeSet<&RoundPart> = parts.collect();
    let row = |differences: &BTreeMap<RoundPart, f64>| {
        let each = parts.iter().map(|part| differences.get(part).copied());
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
