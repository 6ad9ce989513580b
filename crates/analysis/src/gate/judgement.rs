//! The judgement on a gate.

use schemars::JsonSchema;
use serde::Serialize;

use crate::summary::Verdict;

/// The result of a gate for one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The gate, as the user wrote it.
    pub gate: String,
    /// The name of the judged variant.
    pub variant: String,
    /// The state of the gate: it holds, it is broken, or it is undecided.
    pub ruling: Ruling,
    /// True if the gate holds, or if it is undecided and undecided gates pass.
    pub is_passed: bool,
    /// The reason for the ruling.
    pub grounds: Grounds,
}

/// The reason for a ruling.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grounds {
    /// The figure and its interval, or the reason why there is no interval.
    Figure(String),
    /// A variant has no trusted number.
    NoNumber {
        /// The name of the variant.
        variant: String,
        /// The verdict on it.
        verdict: Verdict,
    },
    /// One of two compared results has no number.
    NoNumberIn {
        /// The side, `A` or `B`.
        side: &'static str,
        /// The verdict on it.
        verdict: Verdict,
    },
}

/// The state of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// The whole interval is within the limit.
    Holds,
    /// The whole interval is beyond the limit.
    Broken,
    /// The limit lies inside of the interval, or there is no interval.
    Undecided,
}

/// Effect of an undecided gate on the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The gate fails, because a claim needs evidence.
    Fails,
    /// The gate passes and is shown as undecided.
    Passes,
}

impl std::fmt::Display for Ruling {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Holds => "holds",
            Self::Broken => "broken",
            Self::Undecided => "undecided",
        })
    }
}
