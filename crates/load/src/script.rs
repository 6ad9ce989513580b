//! The steps of a scenario, and the next action after each step.
//!
//! A rotation is a scenario without steps: its slot has one request and no think time.

use std::time::Duration;

use crate::check::Findings;
use crate::clock::to_ns;
use crate::recorder::Times;
use crate::scenario::{CapturedValue, Step};

/// The steps of a scenario. A rotation has no steps.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Think time before each step.
    think_ns: Vec<u64>,
    /// Number of values that an iteration captures.
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

    /// Returns the think time before a step. `None` after the last step.
    pub(crate) fn think_ns(&self, step: usize) -> Option<u64> {
        self.think_ns.get(step).copied()
    }

    pub(crate) fn captures(&self) -> usize {
        self.captures
    }
}

/// The next action in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The request is filled in and leaves immediately.
    Send,
    /// The request is filled in and leaves after the think time, at `due_ns`.
    Wait { due_ns: u64 },
    /// The slot has ended, and its place is free.
    Over,
    /// The slot has ended, because the load is over at `end_ns`, before its next step would be due. Until
    /// then its place stays idle, because another iteration would end in the same way.
    Cut { end_ns: u64 },
}

/// A slot under way: one request, or an iteration of the scenario. Its buffers are reused from slot to slot.
#[derive(Debug, Default)]
pub(crate) struct SlotState {
    /// Position in the whole load.
    pub(crate) index: u64,
    /// Index of the request in the rotation, or of the step in the scenario.
    pub(crate) request: usize,
    /// The due time of this request: from a plan, after think time, or the time at which it began to wait for
    /// a connection. `None` if the send itself is the start.
    pub(crate) due_ns: Option<u64>,
    pub(crate) sent_ns: u64,
    /// Time of the first byte. 0 until a byte arrived.
    pub(crate) first_byte_ns: u64,
    /// True if it began in a part of a slice that does not count.
    pub(crate) is_discarded: bool,
    /// Due time and send time of the whole slot, not only of its last request.
    pub(crate) slot_due_ns: Option<u64>,
    pub(crate) slot_sent_ns: Option<u64>,
    /// The values that the iteration has captured.
    pub(crate) captured: Vec<CapturedValue>,
    /// The bytes to send, if the request differs from slot to slot.
    pub(crate) filled: Vec<u8>,
    pub(crate) findings: Findings,
}

impl SlotState {
    /// The time at which the latency of the request begins: its due time, or else its send.
    #[inline]
    pub(crate) fn start_ns(&self) -> u64 {
        self.due_ns.unwrap_or(self.sent_ns)
    }

    /// Returns the times of a response that is complete now.
    #[inline]
    pub(crate) fn times(&self, done_ns: u64) -> Times {
        Times {
            due_ns: self.start_ns(),
            sent_ns: self.sent_ns,
            first_byte_ns: match self.first_byte_ns {
                // Only the end of the connection completed the response.
                0 => done_ns,
                // The first byte of a response in one piece may be read before the clock for its end.
                first_byte_ns => first_byte_ns.min(done_ns),
            },
            first_event_ns: self.findings.stream.first_ns(),
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
