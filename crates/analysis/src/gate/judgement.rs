//! The judgement on a gate.

use schemars::JsonSchema;
use serde::Serialize;

/// The result of a gate for one variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The gate, as the user wrote it.
    pub gate: String,
    /// The name of the judged variant.
    pub variant: String,
    /// The state of the gate: it holds, it is broken, or it is undecided.
    pub ruling: Ruling,
    /// True if the gate holds, or if it is undecided and undecided gates pass.
    pub is_passed: bool,
    /// The figure and its interval in words, or the reason why there is no interval.
    pub reason: String,
}

impl Judgement {
    /// The reason without the ruling. The reason of an undecided gate begins with the ruling.
    #[must_use]
    pub fn why(&self) -> &str {
        self.reason.trim_start_matches("undecided: ")
    }
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
