//! Answers that counted as passed, and are wrong after all.

use super::{Evidence, Recorder};
use crate::measurement::FailureKind;

/// An answer that had counted as passed, and how it is wrong.
pub(crate) struct FoundWrong {
    pub(crate) slot: u64,
    /// Which request of the rotation, or which step of the scenario.
    pub(crate) request: usize,
    pub(crate) kind: FailureKind,
    /// When the answer was complete.
    pub(crate) at_ns: u64,
}

impl Recorder {
    /// Counts an answer as failed that had counted as passed.
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
