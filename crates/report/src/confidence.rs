//! How sure intervals and verdicts are.

use std::collections::{BTreeMap, BTreeSet};

use crate::recording::{Recording, RoundPart};

/// The confidence of every interval, and of all verdicts together.
pub const CONFIDENCE: f64 = 0.95;

/// The confidence that each of so many comparisons needs for all of them to hold together at
/// [`CONFIDENCE`] (Bonferroni). A run that is watched goes on until its intervals are narrow: it has
/// looked at them many times, for which they must have more.
pub(crate) fn each(looks: Looks, comparisons: usize) -> f64 {
    stats::per_comparison_confidence(overall(looks), comparisons)
}

/// The confidence that each of these comparisons needs, whose differences are known round by round: less than
/// by Bonferroni's correction, as far as variants rise and fall with the baseline that they share.
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

/// How often intervals were looked at before the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// Once: the number of rounds was fixed.
    Once,
    /// After each round, at their widths.
    AtWidths,
    /// After each round, at which side of a limit they are.
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
