//! Record of a stopping rule and its result.

use model::Until;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stopping rule of a lab: how narrow the interval of each difference was to be, and what became of
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntilText {
    /// The metric and the width.
    #[serde(flatten)]
    pub until: Until,
    /// The longest time to measure, in microseconds, counted from the first round on.
    pub max_time_us: u64,
    /// Why no more rounds were measured.
    pub ended: UntilEnd,
    /// What the pilot let expect; absent when the run ended before its last round.
    pub pilot: Option<PilotText>,
}

/// Gates that a run went on for, and what became of that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedText {
    /// The gates as written: `typical overhead < 20us`.
    pub gates: Vec<String>,
    /// The most rounds.
    pub rounds_max: u32,
    /// The longest time to measure, in microseconds, counted from the first round on.
    pub max_time_us: u64,
    /// Why no more rounds were measured.
    pub ended: UntilEnd,
}

/// Why no more rounds were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UntilEnd {
    /// Every interval was as narrow as it was to be, or the gates were decided.
    Reached,
    /// Another round would have ended after `max_time_us`.
    MaxTime,
    /// The most rounds were measured: 1,000 for a width, and 24 for gates.
    MaxRounds,
    /// The user stopped the run, or nothing was left to compare.
    Stopped,
}

/// What the pilot let expect: the rounds before the widths were first looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PilotText {
    /// Rounds of the pilot.
    pub rounds: u32,
    /// Rounds in all that were expected to be needed; absent when more than 1,000.
    pub rounds_expected: Option<u32>,
    /// How long all rounds together were expected to take, in microseconds; absent likewise.
    pub time_us_expected: Option<u64>,
}
