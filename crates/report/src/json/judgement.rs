//! The layout of a judgement on a gate in JSON.

use analysis::gate::{self, Ruling};
use schemars::JsonSchema;
use serde::Serialize;

use crate::words;

/// The result of a gate for one variant.
#[derive(Serialize, JsonSchema)]
pub(super) struct Judgement {
    /// The gate, as the user wrote it.
    gate: String,
    /// The name of the judged variant.
    variant: String,
    /// The state of the gate: it holds, it is broken, or it is undecided.
    ruling: Ruling,
    /// True if the gate holds, or if it is undecided and undecided gates pass.
    is_passed: bool,
    /// The figure and its interval in words, or the reason why there is no interval.
    reason: String,
}

impl Judgement {
    pub(super) fn of(judgement: &gate::Judgement) -> Self {
        Self {
            gate: judgement.gate.clone(),
            variant: judgement.variant.clone(),
            ruling: judgement.ruling,
            is_passed: judgement.is_passed,
            reason: words::gate_reason(judgement),
        }
    }
}
