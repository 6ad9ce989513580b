//! Answers that counted as passed, and are wrong after all.

use super::{Evidence, Recorder};
use crate::measurement::FailureKind;

impl Recorder {
    /// An answer to this request in this slot had counted as passed, at `at_ns`.
    pub(crate) fn found_wrong(
        &mut self,
        (slot, request): (u64, usize),
        (kind, at_ns): (FailureKind, u64),
        evidence: Evidence<'_>,
        reason: String,
    ) {
        self.outcomes.passed -= 1;
        self.failed(kind, at_ns, evidence, || reason);
        if let Some(step) = self.steps.get_mut(request) {
            step.outcomes.passed -= 1;
            step.outcomes.count(kind);
        }
        let slots = self.slots.iter_mut().flatten();
        for slot in slots.filter(|it| u64::from(it.index) == slot) {
            slot.passed = false;
        }
    }
}
