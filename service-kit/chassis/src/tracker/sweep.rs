//! The sweep over all connections of a worker: ends timed-out connections, and makes room.

use std::rc::Rc;
use std::time::Duration;

use super::{Order, Protocol, Registry, State, TICK};
use crate::connection_table::Cause;

/// Ticks for a client to end a connection after the idle timeout.
const GRACE_TICKS: u32 = 10;
/// Ticks for a new connection to send its request while the table is nearly full and no other client waits.
const FRESH_TICKS: u32 = 5;
/// Ticks without progress after which a response may be dropped to free memory.
const STALLED_TICKS: u32 = 10;

impl Registry {
    /// Ends timed-out connections, and makes room if places are short.
    pub(super) fn sweep(&self) {
        let now = self.now();
        let write = ticks(self.timeouts.get().write);
        if now.wrapping_sub(self.epoch_began.get()) >= write.div_ceil(2) {
            self.epoch.set(self.epoch.get().wrapping_add(1));
            self.epoch_began.set(now);
        }
        let mut unsent = 0;
        for state in &*self.connections.borrow() {
            state.look(now);
            self.judge(state, now);
            unsent += state.unwritten();
        }
        self.unsent.set(unsent);
        if unsent > self.timeouts.get().unsent_bytes {
            self.drop_unsent(unsent, now);
        }
        let shortages = self.table.shortages();
        if shortages != self.shortages.replace(shortages) {
            self.make_room(0);
        } else if self.table.is_crowded() {
            self.make_room(FRESH_TICKS);
        }
    }

    fn judge(&self, state: &State, now: u32) {
        if let Order::FinishBy(end) = state.order.get()
            && is_past(end, now)
        {
            state.give(Order::Drop);
            return;
        }
        let timeouts = self.timeouts.get();
        let write = ticks(timeouts.write);
        let is_blocked = |since: u32| now.wrapping_sub(since) >= write;
        if state.blocked.get().is_some_and(is_blocked) || state.has_stalled_answer() {
            state.end(Order::Drop, Cause::Write);
            return;
        }
        if !state.is_idle() {
            return;
        }
        let waited = now.wrapping_sub(state.since.get());
        if state.in_head.get() && waited >= ticks(timeouts.head) {
            let order = match state.protocol.get() {
                // It may be an HTTP/2 connection that was opened before its first request.
                Protocol::Unknown => Order::FinishBy(now.wrapping_add(GRACE_TICKS)),
                _ => Order::Drop,
            };
            state.end(order, Cause::Head);
        } else if !state.in_head.get() && waited >= ticks(timeouts.idle) {
            let order = match state.protocol.get() {
                // An HTTP/2 client receives the information which of its requests were too late.
                Protocol::Http2 => Order::FinishBy(now.wrapping_add(GRACE_TICKS)),
                _ => Order::Drop,
            };
            state.end(order, Cause::Idle);
        }
    }

    /// Closes some of the connections that have been idle for longest.
    ///
    /// It closes several at a time, because each sweep costs a little per connection. If a client opens
    /// connections as fast as possible, each new connection then costs sixteen such steps, not thousands.
    ///
    /// Connections that were idle for fewer than `ticks_least` ticks stay open.
    pub(super) fn make_room(&self, ticks_least: u32) {
        let connections = self.connections.borrow();
        let batch = (connections.len() / 16).max(1);
        // Connections with an earlier order to end may still be open.
        if self.leaving.get() >= batch {
            return;
        }
        let now = self.now();
        let is_idle = |it: &&Rc<State>| {
            it.order.get() == Order::Serve
                && it.is_idle()
                && it.slot.is_of(&self.table)
                && now.wrapping_sub(it.since.get()) >= ticks_least
        };
        let mut idle: Vec<&Rc<State>> = connections.iter().filter(is_idle).collect();
        let batch = batch.min(idle.len());
        if batch == 0 {
            return;
        }
        idle.select_nth_unstable_by_key(batch - 1, |it| it.beginning.get());
        for state in &idle[..batch] {
            state.give(Order::MakeRoom);
        }
    }

    /// Closes stalled connections, starting with the most unwritten bytes, until the rest fits.
    fn drop_unsent(&self, mut unsent: usize, now: u32) {
        let connections = self.connections.borrow();
        let mut stalled: Vec<&Rc<State>> = connections
            .iter()
            .filter(|it| it.unwritten() > 0 && now.wrapping_sub(it.taken.get()) >= STALLED_TICKS)
            .collect();
        stalled.sort_unstable_by_key(|it| std::cmp::Reverse(it.unwritten()));
        for state in stalled {
            if unsent <= self.timeouts.get().unsent_bytes {
                return;
            }
            unsent -= state.unwritten();
            state.end(Order::Drop, Cause::Memory);
        }
    }
}

impl State {
    /// Bytes of responses that are not written yet.
    fn unwritten(&self) -> usize {
        self.unsent.get() + self.held.get()
    }
}

/// Converts a time to ticks, at least one.
fn ticks(time: Duration) -> u32 {
    let ticks = time.as_millis().div_ceil(TICK.as_millis());
    u32::try_from(ticks).unwrap_or(u32::MAX / 2).max(1)
}

/// True if a tick has passed. Also correct after the tick number has wrapped around.
fn is_past(tick: u32, now: u32) -> bool {
    now.wrapping_sub(tick) < u32::MAX / 2
}
