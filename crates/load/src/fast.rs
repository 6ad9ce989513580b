//! The fast carrier: HTTP/1.1 without TLS, with our own event loop over epoll.
//!
//! A request costs one write, one read and a share of an `epoll_wait`. The code adds no cost to that. A
//! connection is registered once, with edges only. A response is parsed and checked in the one read buffer of
//! the thread. The next request of a closed loop leaves within the event of the last response.
//!
//! The [`Lane`] chooses the next slot and records its result. The [`Pacer`] decides when to wake. This file
//! contains sockets and bytes.

use std::os::fd::OwnedFd;

use rustix::event::epoll::EventFlags;

use crate::answer::is_line_end;
use crate::connection::{Connection, Phase};
use crate::job::Bounds;
use crate::lane::{self, Fault, Lane, Workload};
use crate::measurement::FailureKind;
use crate::pacing::{Controls, Pacer};
use crate::poll::{Poll, Wait};
use crate::priority::Priority;
use crate::script::Next;
use crate::socket::{self, Moved};
use crate::supply::Taken;

mod connect;
mod traffic;

/// One generator thread over epoll.
pub(crate) struct EpollEngine<'a> {
    pacer: Pacer<'a>,
    poll: Poll,
    pub(crate) lanes: Vec<Lane>,
    /// The connections of all lanes, one lane after the other. The places of a lane are indices into this
    /// list.
    connections: Vec<Connection>,
    buffer: Vec<u8>,
    /// The latest reading of the clock.
    now_ns: u64,
    /// The earliest `wake_ns` of all connections, or an earlier time.
    wake_ns: u64,
    /// Connections with a response that continues although their turn was over. Their edge is spent, so epoll
    /// reports no further event.
    unread: Vec<Unread>,
}

/// A connection with unread bytes in its socket.
#[derive(Clone, Copy, Debug)]
struct Unread {
    token: u64,
    /// True if the connection ended after these bytes.
    is_hangup: bool,
}

impl<'a> EpollEngine<'a> {
    pub(crate) fn new(controls: Controls<'a>, poll: Poll) -> EpollEngine<'a> {
        EpollEngine {
            pacer: Pacer::new(controls),
            poll,
            lanes: Vec::new(),
            connections: Vec::new(),
            buffer: vec![0; 64 * 1024],
            now_ns: controls.clock.now_ns(),
            wake_ns: u64::MAX,
            unread: Vec::new(),
        }
    }

    /// Adds a lane with this number of connections.
    pub(crate) fn add_lane(&mut self, work: Workload, connections: usize, bounds: Bounds) {
        let (lane, first) = (self.lanes.len(), self.connections.len());
        let own = (0..connections).map(|_| Connection::new(lane, bounds));
        self.connections.extend(own);
        self.lanes
            .push(Lane::new(work, first..self.connections.len()));
    }

    /// Opens all connections of a lane before the load begins. Otherwise the server would be busy with
    /// accepting during the first responses of a closed loop.
    pub(crate) fn open_all(&mut self, lane: usize) {
        for index in self.lanes[lane].queue.places.take_unused() {
            self.connect(index);
        }
        let is_opening = |connection: &Connection| {
            matches!(connection.phase, Phase::Connecting | Phase::Queueing)
        };
        while self.connections.iter().any(is_opening) && !self.pacer.controls.is_stopped() {
            self.turn();
        }
    }

    /// Sends all slots of the lanes and awaits their responses.
    pub(crate) fn run(&mut self, priority: &mut Priority) {
        priority.begin(self.now());
        while self.pacer.goes_on(&mut self.lanes, priority, self.now_ns) {
            self.turn();
        }
    }

    /// Takes the sockets of all connections, after the end.
    pub(crate) fn take_sockets(&mut self) -> Vec<OwnedFd> {
        let connections = self.connections.iter_mut();
        connections
            .filter_map(|connection| connection.socket.take())
            .collect()
    }

    /// Returns the lanes, and true if the load was interrupted.
    pub(crate) fn finish(self) -> (Vec<Lane>, bool) {
        (self.lanes, self.pacer.was_interrupted())
    }

    /// Waits once and handles all events.
    ///
    /// Three stretches are checked for pauses, each against its intended time: sending (0), the wait (the
    /// requested time) and the handling of events (0). A thread that lost its core is therefore noticed in
    /// every stretch.
    fn turn(&mut self) {
        let begin_ns = self.now_ns;
        self.dispatch();
        let before_ns = self.now();
        self.pacer.arrived(&mut self.lanes, begin_ns, before_ns);
        let wait = self.next_wait(before_ns);
        let meant_ns = self.poll.wait(wait);
        let after_ns = self.now();
        self.pacer
            .arrived(&mut self.lanes, before_ns + meant_ns, after_ns);
        // The poll learns the lateness of a sleep before the events, because their work is not part of it.
        self.poll.learn(meant_ns, after_ns - before_ns);
        // The list is moved out for the loop, because every event borrows the whole engine.
        let events = std::mem::take(&mut self.poll.events);
        for event in &events {
            self.on_event(event.data.u64(), event.flags);
            // A list may contain 128 responses at some microseconds each. A slot that becomes due meanwhile
            // leaves between two events instead of after the last.
            self.keep_time();
        }
        self.poll.events = events;
        self.read_on();
        if self.now_ns >= self.wake_ns {
            self.sweep();
        }
        let end_ns = self.now();
        self.pacer.arrived(&mut self.lanes, after_ns, end_ns);
    }

    /// Between two events: sends due slots, and ends expired slots.
    #[inline]
    fn keep_time(&mut self) {
        if self.lanes.iter().any(|lane| lane.queue.is_due(self.now_ns)) {
            self.dispatch();
        }
        if self.now_ns >= self.wake_ns {
            self.sweep();
        }
    }

    /// Gives another turn to each connection with an unfinished response.
    fn read_on(&mut self) {
        if self.unread.is_empty() {
            return;
        }
        // Connections that are still unfinished are added again, for the next round.
        for unread in std::mem::take(&mut self.unread) {
            let index = index_of(unread.token);
            let connection = &self.connections[index];
            let is_same = u64::from(connection.generation) == unread.token >> 32;
            if is_same && matches!(connection.phase, Phase::Receiving | Phase::Sending) {
                self.read(index, unread.is_hangup);
                self.keep_time();
            }
        }
    }

    /// Reads and stores the time.
    #[inline]
    fn now(&mut self) -> u64 {
        self.now_ns = self.pacer.controls.clock.now_ns();
        self.now_ns
    }

    /// Returns the time until there is other work than sockets. Only due slots justify the spin budget of a
    /// punctual wait. A timeout or a retry may be noticed a millisecond late.
    fn next_wait(&self, now_ns: u64) -> Wait {
        if !self.unread.is_empty() {
            return Wait::Roughly(0);
        }
        let horizon = self.pacer.horizon(&self.lanes, now_ns);
        let left_ns = horizon.latest_ns.min(self.wake_ns).saturating_sub(now_ns);
        match horizon.due_ns {
            Some(due_ns) => Wait::Punctually(left_ns.min(due_ns.saturating_sub(now_ns))),
            None => Wait::Roughly(left_ns),
        }
    }

    /// Sends slots while there are slots and connections for them. Iterations continue when their think time
    /// is over.
    #[inline]
    fn dispatch(&mut self) {
        for lane in 0..self.lanes.len() {
            while let Some(index) = self.lanes[lane].queue.pop_waiting(self.now_ns) {
                self.go(index);
            }
        }
        while let Some(lane) = lane::next_of(&self.lanes, self.now_ns) {
            let queue = &mut self.lanes[lane].queue;
            let (Some(taken), Some(index)) = (queue.take(self.now_ns), queue.places.pop(|_| true))
            else {
                unreachable!("a lane is next when it has a slot and a place for it");
            };
            self.begin(index, taken);
        }
    }

    /// Handles a connection that became free: sends the next slot of its lane at once or parks it.
    #[inline]
    fn release(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let is_open = connection.socket.is_some();
        match self.lanes[connection.lane].release(index, is_open, self.now_ns) {
            Some(taken) => self.begin(index, taken),
            None => {
                connection.wake_ns = u64::MAX;
                connection.phase = if is_open { Phase::Idle } else { Phase::Vacant };
            }
        }
    }

    #[inline]
    fn begin(&mut self, index: usize, taken: Taken) {
        let connection = &mut self.connections[index];
        let lane = &mut self.lanes[connection.lane];
        let next = lane.begin(&mut connection.slot, taken, self.now_ns);
        self.proceed(index, next);
    }

    /// Performs the next action of the slot of a connection.
    #[inline]
    fn proceed(&mut self, index: usize, next: Next) {
        match next {
            Next::Send => self.go(index),
            Next::Over => self.release(index),
            Next::Wait { due_ns } => {
                let connection = &mut self.connections[index];
                connection.phase = Phase::Waiting;
                // The lane stores the time at which it continues. No timeout applies here.
                connection.wake_ns = u64::MAX;
                self.lanes[connection.lane].queue.wait(index, due_ns);
            }
            Next::Cut { end_ns } => {
                self.connections[index].phase = Phase::Pausing;
                self.wake_at(index, end_ns);
            }
        }
    }

    /// Sends the prepared request, on a new connection if there is no open one.
    #[inline]
    fn go(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.has_slot = true;
        // The server sets the lifetime of an idle connection.
        if self.now_ns >= connection.idle_until_ns {
            connection.close();
        }
        connection.is_fresh = connection.socket.is_none();
        if connection.is_fresh {
            self.connect(index);
        } else {
            self.transmit(index);
        }
    }

    /// Sets the wake time of a connection. `wake_ns` of the engine may be too early afterwards, but never too
    /// late. The true minimum would need a walk over all connections for every request.
    fn wake_at(&mut self, index: usize, wake_ns: u64) {
        self.connections[index].wake_ns = wake_ns;
        self.wake_ns = self.wake_ns.min(wake_ns);
    }

    fn on_event(&mut self, token: u64, flags: EventFlags) {
        let index = index_of(token);
        let connection = &self.connections[index];
        // Closing a socket ends its registration, but an event of the socket may already be in the list.
        if u64::from(connection.generation) != token >> 32 {
            return;
        }
        let is_hangup = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let is_readable = is_hangup || flags.contains(EventFlags::IN);
        match connection.phase {
            Phase::Receiving if is_readable => self.read(index, is_hangup),
            Phase::Idle | Phase::Waiting if is_readable => self.on_unasked_event(index),
            Phase::Sending => {
                if is_readable {
                    self.read(index, is_hangup);
                }
                if self.connections[index].phase == Phase::Sending {
                    self.send_rest(index);
                }
            }
            Phase::Connecting => self.on_connect_event(index),
            // Writable again, which only matters while a request is being written.
            _ => {}
        }
    }

    /// Handles bytes, or the end, while no request was under way. The next request opens another connection.
    fn on_unasked_event(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(socket) = &connection.socket else {
            return;
        };
        let lane = &mut self.lanes[connection.lane];
        loop {
            match socket::receive(socket, &mut self.buffer) {
                // The edge was for bytes that an earlier read has taken.
                Ok(Moved::Later) => return,
                Ok(Moved::Bytes(0)) | Err(_) => break,
                // The end of the connection may follow in the same edge.
                Ok(Moved::Bytes(bytes)) if is_line_end(&self.buffer[..bytes]) => {}
                Ok(Moved::Bytes(_)) => {
                    lane.recorder.unsolicited += 1;
                    break;
                }
            }
        }
        let is_waiting = connection.phase == Phase::Waiting;
        connection.close();
        // A place in think time keeps its slot, so it is not free. Its next step opens a new connection.
        if is_waiting {
            connection.phase = Phase::Waiting;
        } else {
            lane.queue.places.closed(index);
        }
    }

    /// Ends the slot under way, if there is one, and the connection. The last `bytes` of the response are in
    /// the buffer.
    fn fail(&mut self, index: usize, kind: FailureKind, bytes: usize, reason: &dyn Fn() -> String) {
        let connection = &mut self.connections[index];
        let lane = &mut self.lanes[connection.lane];
        if connection.has_slot {
            let fault = Fault {
                kind,
                at_ns: self.now_ns,
                answer: [&connection.kept, &self.buffer[..bytes]],
            };
            lane.failed(&connection.slot, fault, reason);
            let next = lane.next(&mut connection.slot, false, self.now_ns);
            debug_assert_eq!(next, Next::Over, "a failure ends its slot");
            connection.has_slot = false;
        }
        connection.close();
        if kind.is_without_connection() && !lane.queue.supply.is_planned() {
            connection.phase = Phase::Pausing;
            let wake_ns = self.now_ns + connection.backoff.refused();
            self.wake_at(index, wake_ns);
        } else {
            // Not released: a target that refuses at once would cause a recursive call for every refusal, as
            // deep as there are slots.
            lane.queue.places.park(index, false);
        }
    }

    /// Handles every connection that has reached its wake time.
    fn sweep(&mut self) {
        // The minimum is computed here again, because `wake_at` only lowers it.
        self.wake_ns = u64::MAX;
        for index in 0..self.connections.len() {
            if self.connections[index].wake_ns <= self.now_ns {
                self.wake(index);
            }
            self.wake_ns = self.wake_ns.min(self.connections[index].wake_ns);
        }
    }

    fn wake(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let timeout_ns = self.lanes[connection.lane].work.timeout_ns;
        let limit = std::time::Duration::from_nanos(timeout_ns);
        let give_up_ns = connection.connect_ns.saturating_add(timeout_ns);
        match connection.phase {
            Phase::Queueing if self.now_ns < give_up_ns => self.try_connect(index),
            Phase::Connecting | Phase::Queueing => {
                self.fail(index, FailureKind::Connect, 0, &|| {
                    format!("no connection within {limit:?}")
                });
            }
            Phase::Sending | Phase::Receiving if connection.slot.findings.stream.is_ended() => {
                self.complete(index, false, false, 0);
            }
            Phase::Sending | Phase::Receiving => {
                self.fail(index, FailureKind::Timeout, 0, &|| {
                    format!("no complete answer within {limit:?}")
                });
            }
            Phase::Pausing => {
                // After a refusal there is no socket. After the end of the load there may be one.
                let is_open = connection.socket.is_some();
                connection.phase = if is_open { Phase::Idle } else { Phase::Vacant };
                connection.wake_ns = u64::MAX;
                let queue = &mut self.lanes[connection.lane].queue;
                queue.places.park(index, is_open);
            }
            Phase::Vacant | Phase::Idle | Phase::Waiting => {
                unreachable!("a connection without a slot has nothing to wake for")
            }
        }
    }
}

/// Returns the index of a connection, which is the lower half of its token.
fn index_of(token: u64) -> usize {
    usize::try_from(token & u64::from(u32::MAX)).expect("32 bits fit into an address")
}
