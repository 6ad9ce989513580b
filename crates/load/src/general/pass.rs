//! From one step of a scenario to the next, and rests that end to the microsecond.

use std::collections::BTreeMap;

use tokio::sync::oneshot::{self, Sender};

use super::Desk;
use super::lane::Slot;
use crate::clock::to_ns;
use crate::measurement::FailureKind;
use crate::scenario::Step;
use crate::supply::Taken;

/// The steps of a scenario; a rotation has none.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// How long a pass rests before each step.
    pauses_ns: Vec<u64>,
    /// How many values a pass captures.
    pub(super) captures: usize,
}

impl Script {
    pub(crate) fn new(steps: &[Step], captures: usize) -> Script {
        Script {
            pauses_ns: steps.iter().map(|step| to_ns(step.pause)).collect(),
            captures,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pauses_ns.is_empty()
    }
}

/// Lanes that rest, by the time they go on.
#[derive(Default)]
pub(super) struct Rests(BTreeMap<(u64, usize), Sender<()>>);

impl Rests {
    pub(super) fn next_end_ns(&self) -> Option<u64> {
        let ((end_ns, _), _) = self.0.first_key_value()?;
        Some(*end_ns)
    }
}

/// How a slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With an answer, or without.
    Over,
    /// The target gave no connection.
    Refused,
    /// The load is over at this time, before the next step of the pass would be due.
    Cut { end_ns: u64 },
}

impl Desk {
    /// Carries a slot to its end: one request, or the steps of a pass.
    pub(super) async fn pass(&self, lane: usize, slot: &mut Slot, taken: Taken) -> End {
        slot.index = taken.index;
        slot.due_ns = taken.due_ns;
        slot.is_planned = taken.due_ns.is_some();
        if self.script.is_empty() {
            slot.request = self.rotation.borrow().pick(taken.index);
            return end_of(self.one(lane, slot).await);
        }
        slot.captured.clear();
        slot.captured.resize(self.script.captures, String::new());
        let mut from_ns = taken.due_ns.unwrap_or_else(|| self.clock.now_ns());
        for (step, pause_ns) in self.script.pauses_ns.iter().enumerate() {
            if step > 0 || *pause_ns > 0 {
                let due_ns = from_ns.saturating_add(*pause_ns);
                if let Some(end_ns) = self.cut(due_ns) {
                    return End::Cut { end_ns };
                }
                slot.due_ns = Some(due_ns);
                self.rest(lane, due_ns).await;
            }
            slot.request = step;
            let outcome = self.one(lane, slot).await;
            if outcome.is_err() {
                return end_of(outcome);
            }
            for (place, value) in slot.findings.captured.drain(..) {
                slot.captured[place] = value;
            }
            from_ns = slot.done_ns;
        }
        self.book.borrow_mut().recorder.passes.completed += 1;
        End::Over
    }

    /// Ends a pass whose next step is due when the load is over by time, and says when that is.
    fn cut(&self, due_ns: u64) -> Option<u64> {
        let mut book = self.book.borrow_mut();
        let end_ns = book.supply.end_ns().filter(|end_ns| due_ns >= *end_ns)?;
        book.recorder.passes.cut += 1;
        Some(end_ns)
    }

    /// Waits until this time.
    pub(super) async fn rest(&self, lane: usize, end_ns: u64) {
        if end_ns <= self.clock.now_ns() {
            return;
        }
        let (over, rest) = oneshot::channel();
        self.book.borrow_mut().rests.0.insert((end_ns, lane), over);
        self.timer.wake_by(end_ns);
        // Nobody drops the other end but with the lane itself.
        let _ = rest.await;
    }

    /// Lets the lanes go on whose rest is over.
    pub(super) fn end_rests(&self) {
        let now_ns = self.clock.now_ns();
        let mut book = self.book.borrow_mut();
        while book
            .rests
            .next_end_ns()
            .is_some_and(|end_ns| end_ns <= now_ns)
            && let Some((_, over)) = book.rests.0.pop_first()
        {
            let _ = over.send(());
        }
    }
}

fn end_of(outcome: Result<(), FailureKind>) -> End {
    match outcome {
        Err(FailureKind::Connect) => End::Refused,
        Ok(()) | Err(_) => End::Over,
    }
}
