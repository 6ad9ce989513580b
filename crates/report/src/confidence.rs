//! How sure intervals and verdicts are.

/// The confidence of every interval, and of all verdicts together.
pub const CONFIDENCE: f64 = 0.95;

/// The confidence that each of so many comparisons needs for all of them to hold together at
/// [`CONFIDENCE`] (Bonferroni). A run that is watched goes on until its intervals are narrow: it has
/// looked at them many times, for which they must have more.
pub(crate) fn each(is_watched: bool, comparisons: usize) -> f64 {
    let overall = if is_watched {
        stats::width::watched_confidence(CONFIDENCE)
    } else {
        CONFIDENCE
    };
    stats::per_comparison_confidence(overall, comparisons)
}
