//! Record of a stopping rule and its result.

use model::Until;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stopping rule of a lab, with its result. The rule is the maximum width of the interval of each
/// difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UntilText {
    /// The metric and the width.
    #[serde(flatten)]
    pub until: Until,
    /// The longest time to measure, in microseconds, from the first round on.
    pub max_time_us: u64,
    /// The reason why `weigh` measured no more rounds.
    pub ended: UntilEnd,
    /// The forecast of the pilot. Absent if the run ended before the last round of the pilot.
    pub pilot: Option<PilotText>,
}

/// Gates that end a run when they are decided, with the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedText {
    /// The gates as written: `typical overhead < 20us`.
    pub gates: Vec<String>,
    /// The maximum number of rounds.
    pub rounds_max: u32,
    /// The longest time to measure, in microseconds, from the first round on.
    pub max_time_us: u64,
    /// The reason why `weigh` measured no more rounds.
    pub ended: UntilEnd,
}

/// The gates that judged a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatesText {
    /// The gates as written: `typical overhead < 20us`.
    pub all: Vec<String>,
    /// True if an undecided gate passes.
    pub undecided_passes: bool,
}

/// The reason why `weigh` measured no more rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UntilEnd {
    /// Every interval was at most as wide as the rule allows, or the gates were decided.
    Reached,
    /// Another round would have ended after `max_time_us`.
    MaxTime,
    /// The maximum number of rounds was measured: 1,000 for a width, and 24 for gates.
    MaxRounds,
    /// The user stopped the run, or no variant was left to compare.
    Stopped,
}

/// The forecast of the pilot. The pilot consists of the rounds before `weigh` computed the widths for the
/// first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PilotText {
    /// Number of rounds of the pilot.
    pub rounds: u32,
    /// Expected number of all rounds. Absent if it exceeds 1,000.
    pub rounds_expected: Option<u32>,
    /// Expected time of all rounds together, in microseconds. Absent if `rounds_expected` is absent.
    pub time_us_expected: Option<u64>,
}
