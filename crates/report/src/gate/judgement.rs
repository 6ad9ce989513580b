//! What becomes of a gate.

use schemars::JsonSchema;
use serde::Serialize;

/// What became of a gate on one variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The gate as written.
    pub gate: String,
    /// The variant judged.
    pub variant: String,
    /// Whether it holds.
    pub ruling: Ruling,
    /// Whether that is good enough: it holds, or it is undecided and that was to pass.
    pub is_passed: bool,
    /// The figure and its interval in words, or why it has no interval.
    pub reason: String,
}

impl Judgement {
    /// The reason without the ruling, with which that of an undecided one begins.
    #[must_use]
    pub fn why(&self) -> &str {
        self.reason.trim_start_matches("undecided: ")
    }
}

/// Whether a gate holds.
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

/// What an undecided gate means for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// It fails: what was not shown is not claimed.
    Fails,
    /// It passes, and is shown as undecided.
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
