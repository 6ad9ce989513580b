//! From one step of a scenario to the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rustix::event::epoll::EventFlags;

use super::Worker;
use crate::clock::to_ns;
use crate::connection::Phase;
use crate::socket::{self, Moved};

/// The steps of a scenario as one thread carries them out.
#[derive(Debug)]
pub(super) struct Script {
    /// How long a pass rests before each step.
    pauses_ns: Vec<u64>,
    /// How many values a pass captures.
    captures: usize,
    /// Passes that rest, by the time their next step is due.
    resting: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Script {
    pub(super) fn new(pauses: impl Iterator<Item = Duration>, captures: usize) -> Script {
        Script {
            pauses_ns: pauses.map(to_ns).collect(),
            captures,
            resting: BinaryHeap::new(),
        }
    }

    /// When the next step after a rest is due.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.resting.peek().map(|Reverse((due_ns, _))| *due_ns)
    }
}

impl Worker<'_> {
    /// When the next request is due: a slot of the plan, or a step after its rest.
    #[inline]
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        let slot = self.supply.next_due_ns();
        match self.script.as_ref().and_then(Script::next_due_ns) {
            None => slot,
            Some(step_ns) => Some(slot.map_or(step_ns, |slot_ns| slot_ns.min(step_ns))),
        }
    }

    /// A pass begins on this connection.
    pub(super) fn begin_pass(&mut self, index: usize, pass: u64) {
        let Some(script) = &self.script else {
            return;
        };
        let pause_ns = script.pauses_ns[0];
        let connection = &mut self.connections[index];
        connection.pass = pass;
        connection.captured.clear();
        connection
            .captured
            .resize_with(script.captures, String::new);
        if pause_ns > 0 {
            let from_ns = connection.due_ns.unwrap_or(self.now_ns);
            self.begin_step(index, 0, from_ns.saturating_add(pause_ns));
        } else {
            self.fill(index);
            self.go(index);
        }
    }

    /// The answer to a step was complete; the connection carries the next one, or another pass.
    pub(super) fn after_step(&mut self, index: usize, is_right: bool) {
        let Some(script) = &self.script else {
            return;
        };
        let connection = &mut self.connections[index];
        connection.has_slot = false;
        let next = connection.request + 1;
        if is_right {
            for (place, value) in connection.findings.captured.drain(..) {
                connection.captured[place] = value;
            }
            if let Some(pause_ns) = script.pauses_ns.get(next) {
                let due_ns = self.now_ns.saturating_add(*pause_ns);
                return self.begin_step(index, next, due_ns);
            }
            self.recorder.passes.completed += 1;
        }
        self.active -= 1;
        self.release(index);
    }

    /// Sends a step at its time, unless the load is over by then.
    fn begin_step(&mut self, index: usize, step: usize, due_ns: u64) {
        if let Some(end_ns) = self.supply.end_ns().filter(|end_ns| due_ns >= *end_ns) {
            self.recorder.passes.cut += 1;
            self.active -= 1;
            // Until the end there is nothing for it to do: another pass would be cut as well.
            self.connections[index].phase = Phase::Pausing;
            return self.wake_at(index, end_ns);
        }
        let connection = &mut self.connections[index];
        connection.request = step;
        connection.due_ns = Some(due_ns);
        self.fill(index);
        if due_ns <= self.now_ns {
            return self.go(index);
        }
        let connection = &mut self.connections[index];
        connection.phase = Phase::Resting;
        connection.wake_ns = u64::MAX;
        if let Some(script) = &mut self.script {
            script.resting.push(Reverse((due_ns, index)));
        }
    }

    fn fill(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        self.rotation.requests[connection.request].fill(
            connection.pass,
            &connection.captured,
            &mut connection.filled,
        );
    }

    /// Sends the steps whose rest is over.
    pub(super) fn resume(&mut self) {
        while let Some(script) = &mut self.script
            && let Some(Reverse((due_ns, index))) = script.resting.peek().copied()
            && due_ns <= self.now_ns
        {
            script.resting.pop();
            self.go(index);
        }
    }

    /// The server may close a connection while its pass rests; the next step opens another.
    pub(super) fn on_rest_event(&mut self, index: usize, flags: EventFlags) {
        let Some(socket) = &self.connections[index].socket else {
            return;
        };
        if !flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
        {
            return;
        }
        match socket::receive(socket, &mut self.buffer) {
            Ok(Moved::Later) => return,
            Ok(Moved::Bytes(0)) | Err(_) => {}
            Ok(Moved::Bytes(_)) => self.recorder.unsolicited += 1,
        }
        let connection = &mut self.connections[index];
        connection.close();
        connection.phase = Phase::Resting;
    }
}
