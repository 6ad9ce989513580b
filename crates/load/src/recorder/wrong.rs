//! Responses that counted as passed but are wrong.

use super::{Evidence, Recorder};
use crate::measurement::FailureKind;

/// A response that had counted as passed, and its fault.
pub(crate) struct FoundWrong {
    pub(crate) slot: u64,
    /// Index of the request in the rotation, or of the step in the scenario.
    pub(crate) request: usize,
    pub(crate) kind: FailureKind,
    /// The time at which the response was complete.
    pub(crate) at_ns: u64,
}

impl Recorder {
    /// Counts a response as failed that had counted as passed.
    pub(crate) fn found_wrong(
        &mut self,
        wrong: &FoundWrong,
        evidence: Evidence<'_>,
        reason: impl FnOnce() -> String,
    ) {
        let kind = wrong.kind;
        self.outcomes.passed -= 1;
        self.failed(kind, wrong.at_ns, evidence, reason);
        if let Some(step) = self.steps.get_mut(wrong.request) {
            step.outcomes.passed -= 1;
            step.outcomes.count(kind);
        }
        let slots = self.slots.iter_mut().flatten();
        for slot in slots.filter(|it| u64::from(it.index) == wrong.slot) {
            slot.status = None;
        }
    }
}
