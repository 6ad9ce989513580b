//! The wish for a narrow interval that a lab went on for.

use model::Until;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wish for a narrow interval that a lab went on for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntilText {
    /// What was wished for.
    #[serde(flatten)]
    pub until: Until,
    /// The longest time to measure, in microseconds, counted from the first round on.
    pub max_time_us: u64,
    /// Why no more rounds were measured.
    pub ended: UntilEnd,
    /// What the first rounds promised; absent when the run ended before.
    pub pilot: Option<PilotText>,
}

/// Why no more rounds were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UntilEnd {
    /// Every interval was as narrow as wished.
    Reached,
    /// Another round would have ended after the longest time.
    MaxTime,
    /// No lab has more rounds.
    MaxRounds,
    /// The user stopped the run, or nothing was left to compare.
    Stopped,
}

/// What the first rounds promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PilotText {
    /// Rounds of the pilot.
    pub rounds: u32,
    /// Rounds in all that were expected to be needed; absent when beyond all measure.
    pub rounds_expected: Option<u32>,
    /// How long all rounds together were expected to take, in microseconds; absent likewise.
    pub time_us_expected: Option<u64>,
}
