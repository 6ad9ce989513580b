//! From one step of a scenario to the next.
//!
//! A rotation is the scenario without steps: its slot has one request and no think time.

use std::time::Duration;

use crate::check::Findings;
use crate::clock::to_ns;
use crate::recorder::Times;
use crate::scenario::Step;

/// The steps of a scenario; a rotation has none.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Think time before each step.
    think_ns: Vec<u64>,
    /// How many values an iteration captures.
    captures: usize,
}

impl Script {
    pub(crate) fn new(steps: &[Step], captures: usize) -> Script {
        let think_time = |step: &Step| -> Duration { step.pause };
        Script {
            think_ns: steps.iter().map(think_time).map(to_ns).collect(),
            captures,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.think_ns.is_empty()
    }

    /// The think time before a step; `None` after the last one.
    pub(crate) fn think_ns(&self, step: usize) -> Option<u64> {
        self.think_ns.get(step).copied()
    }

    pub(crate) fn captures(&self) -> usize {
        self.captures
    }
}

/// What comes next in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its request is filled in and leaves now.
    Send,
    /// Its request is filled in and leaves after the think time, at `due_ns`.
    Wait { due_ns: u64 },
    /// Nothing: the slot has ended, and its place is free.
    Over,
    /// Nothing: the slot has ended, because the load is over at `end_ns`, before its next step would
    /// be due. Until then its place has nothing to do, as another iteration would end in the same way.
    Cut { end_ns: u64 },
}

/// A slot under way: one request, or an iteration of the scenario. Its buffers are used for one slot
/// after the other.
#[derive(Debug, Default)]
pub(crate) struct SlotState {
    /// Position in the whole load.
    pub(crate) index: u64,
    /// Which request of the rotation, or which step of the scenario.
    pub(crate) request: usize,
    /// When this request was due: from a plan, after think time, or when it had to wait for a
    /// connection. `None` where the send itself is the start.
    pub(crate) due_ns: Option<u64>,
    pub(crate) sent_ns: u64,
    /// 0 until something came.
    pub(crate) first_byte_ns: u64,
    /// It began in a part of a slice that does not count.
    pub(crate) is_discarded: bool,
    /// When the slot, not only its last request, was due and left.
    pub(crate) slot_due_ns: Option<u64>,
    pub(crate) slot_sent_ns: Option<u64>,
    /// What the iteration has captured so far.
    pub(crate) captured: Vec<String>,
    /// What is sent, where the request differs from slot to slot.
    pub(crate) filled: Vec<u8>,
    pub(crate) findings: Findings,
}

impl SlotState {
    /// The times of an answer that is complete now.
    #[inline]
    pub(crate) fn times(&self, done_ns: u64) -> Times {
        Times {
            due_ns: self.due_ns.unwrap_or(self.sent_ns),
            sent_ns: self.sent_ns,
            first_byte_ns: match self.first_byte_ns {
                // An answer that is complete by the end of the connection alone.
                0 => done_ns,
                // An answer in one piece may have been seen before the clock was read for its end.
                first_byte_ns => first_byte_ns.min(done_ns),
            },
            done_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_counts_from_due_where_there_is_one() {
        let mut slot = SlotState {
            sent_ns: 500,
            first_byte_ns: 600,
            ..SlotState::default()
        };
        assert_eq!(slot.times(700).due_ns, 500);
        slot.due_ns = Some(100);
        let times = slot.times(700);
        assert_eq!(
            (times.due_ns, times.sent_ns, times.first_byte_ns),
            (100, 500, 600)
        );
    }
}
