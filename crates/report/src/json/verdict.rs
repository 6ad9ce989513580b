//! The layout of a verdict in JSON.

use analysis::summary::{self, CheckName, Invalidity};
use schemars::JsonSchema;
use serde::Serialize;

use crate::words;

/// The conclusion about a variant.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// The variant is the baseline.
    Baseline,
    /// The variant was measured without a comparison: a single load.
    Measured,
    /// The variant is worse than the baseline in the headline metric.
    Slower {
        /// The difference from interval end to interval end, as a sentence: `slower by 0.10 to 0.14 ms`.
        sentence: String,
    },
    /// The variant is better than the baseline in the headline metric.
    Faster {
        /// The difference from interval end to interval end, as a sentence: `12 % to 14 % more requests/s`.
        sentence: String,
    },
    /// The interval contains zero. This does not prove that there is no difference.
    NoDifferenceShown,
    /// There are too few rounds for any claim.
    TooFewRounds {
        /// Minimum number of rounds that could support a claim.
        needed: usize,
        /// Number of rounds that measured both sides.
        measured: usize,
    },
    /// The variant was measured, but the baseline has no number.
    NotCompared,
    /// The variant did its work, but a check of the measurement failed. There is an estimate, which is not
    /// trusted.
    Withheld {
        /// The check that explains the failure best, by its name in `checks`.
        check: CheckName,
        /// The cause in few words: `other programs used 74 % of the cores`.
        cause: String,
        /// The remedy, as an instruction.
        remedy: String,
        /// All checks that failed.
        failed: Vec<CheckName>,
    },
    /// The variant has no number.
    Invalid {
        /// The kind of the problem.
        kind: Invalidity,
        /// The problem in words.
        reason: String,
    },
}

impl Verdict {
    pub(super) fn of(verdict: &summary::Verdict) -> Self {
        let sentence = || words::verdict(verdict);
        match verdict {
            summary::Verdict::Baseline => Self::Baseline,
            summary::Verdict::Measured => Self::Measured,
            summary::Verdict::Slower { .. } => Self::Slower {
                sentence: sentence(),
            },
            summary::Verdict::Faster { .. } => Self::Faster {
                sentence: sentence(),
            },
            summary::Verdict::NoDifferenceShown => Self::NoDifferenceShown,
            summary::Verdict::TooFewRounds { needed, measured } => Self::TooFewRounds {
                needed: *needed,
                measured: *measured,
            },
            summary::Verdict::NotCompared => Self::NotCompared,
            summary::Verdict::Withheld {
                check,
                figure,
                headline,
                failed,
            } => Self::Withheld {
                check: *check,
                cause: words::cause(*check, *figure),
                remedy: words::remedy_for(*check, *headline),
                failed: failed.clone(),
            },
            summary::Verdict::Invalid { kind, reason } => Self::Invalid {
                kind: *kind,
                reason: words::reason(reason),
            },
        }
    }
}
