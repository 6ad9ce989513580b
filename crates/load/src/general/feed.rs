//! Messages of a gRPC call that leave at planned times.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use model::GrpcCall;

use super::planned::{Alarm, Alarms, Planned};
use crate::clock::{Clock, to_ns};

/// The messages of a call that were sent, for their replies.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The planned times of the messages without a reply.
    awaited: VecDeque<u64>,
    /// Number of messages that were sent.
    sent: u64,
    /// Number of messages that are still to be sent.
    left: u64,
}

impl Ledger {
    /// Returns the planned time of the message that the next reply belongs to.
    pub(super) fn reply(&mut self) -> Option<u64> {
        self.awaited.pop_front()
    }

    /// Number of messages without a reply, and of all messages.
    pub(super) fn unanswered(&self) -> (u64, u64) {
        (self.awaited.len() as u64 + self.left, self.sent + self.left)
    }
}

/// The messages of a call that leave at planned times.
pub(super) struct Feed<'a> {
    frames: Vec<Bytes>,
    planned: Vec<Planned>,
    /// The end of the hold. Messages that are planned before it leave, even if they are late. `None` without a
    /// hold.
    hold_ns: Option<u64>,
    /// True after the end of the hold, and without a hold.
    is_released: bool,
    clock: Clock,
    alarms: &'a dyn Alarms,
    alarm: Option<(u64, Alarm<'a>)>,
    ledger: Rc<RefCell<Ledger>>,
}

impl<'a> Feed<'a> {
    /// Plans the messages from now.
    pub(super) fn new(
        call: &GrpcCall,
        frames: Vec<Bytes>,
        clock: Clock,
        alarms: &'a dyn Alarms,
    ) -> Feed<'a> {
        let start_ns = clock.now_ns();
        let messages = call.messages.iter().enumerate();
        let hold_ns = call.hold.map(|hold| start_ns.saturating_add(to_ns(hold)));
        let planned: Vec<Planned> = messages
            .map(|(part, message)| Planned::new(part, message, start_ns))
            .filter(|planned| is_to_send(planned, hold_ns))
            .collect();
        let ledger = Ledger {
            left: planned.iter().filter_map(|planned| planned.left).sum(),
            ..Ledger::default()
        };
        Feed {
            frames,
            planned,
            is_released: hold_ns.is_none(),
            hold_ns,
            clock,
            alarms,
            alarm: None,
            ledger: Rc::new(RefCell::new(ledger)),
        }
    }

    /// Sends each message once and without a hold. A proof takes no longer than its messages.
    pub(super) fn once(mut self) -> Feed<'a> {
        self.hold_ns = None;
        self.is_released = true;
        for planned in &mut self.planned {
            planned.left = Some(1);
        }
        self
    }

    pub(super) fn ledger(&self) -> Rc<RefCell<Ledger>> {
        Rc::clone(&self.ledger)
    }

    /// Returns the next message when it is due, and `None` after the last message. A message that waits for
    /// room delays later messages, but not their planned times.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let now_ns = self.clock.now_ns();
            self.is_released |= self.hold_ns.is_some_and(|hold_ns| hold_ns <= now_ns);
            if self.planned.is_empty() && self.is_released {
                self.alarm = None;
                self.ledger.borrow_mut().left = 0;
                return Poll::Ready(None);
            }
            if let Some(frame) = self.take_due(now_ns) {
                return Poll::Ready(Some(frame));
            }
            let due = self.planned.iter().map(|planned| planned.due_ns);
            let end_ns = self.hold_ns.filter(|_| !self.is_released);
            let Some(wake_ns) = due.chain(end_ns).min() else {
                return Poll::Ready(None);
            };
            if self.alarm.as_ref().map(|(at_ns, _)| *at_ns) != Some(wake_ns) {
                // Dropped first, because a place waits for one time at once.
                self.alarm = None;
                self.alarm = Some((wake_ns, self.alarms.at(wake_ns)));
            }
            if let Some((_, alarm)) = &mut self.alarm {
                std::task::ready!(alarm.as_mut().poll(context));
                self.alarm = None;
            }
        }
    }

    fn take_due(&mut self, now_ns: u64) -> Option<Bytes> {
        let due = self.planned.iter_mut().min_by_key(|it| it.due_ns);
        let planned = due.filter(|planned| planned.due_ns <= now_ns)?;
        let (part, due_ns) = (planned.part, planned.due_ns);
        planned.left = planned.left.map(|left| left - 1);
        planned.due_ns = due_ns.saturating_add(planned.gap_ns.unwrap_or(0));
        let hold_ns = self.hold_ns;
        self.planned.retain(|planned| is_to_send(planned, hold_ns));
        let mut ledger = self.ledger.borrow_mut();
        ledger.sent += 1;
        ledger.awaited.push_back(due_ns);
        ledger.left = self.planned.iter().filter_map(|planned| planned.left).sum();
        Some(self.frames[part].clone())
    }
}

fn is_to_send(planned: &Planned, hold_ns: Option<u64>) -> bool {
    planned.left != Some(0) && hold_ns.is_none_or(|hold_ns| planned.due_ns < hold_ns)
}
