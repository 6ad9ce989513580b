//! The fast carrier: HTTP/1.1 in the clear, by an event loop of our own over epoll.
//!
//! A request costs one write, one read and a share of an `epoll_wait`; everything else here is
//! arranged so that nothing is added to that. A connection is registered once, with edges only; an
//! answer is parsed and checked in the one read buffer of the thread; the next request of a closed
//! loop leaves from within the event of the last answer.
//!
//! Which slot is next, what comes after it and what is written down of it is the business of its
//! [`Lane`]; when to wake is that of the [`Pacer`]. Here are sockets and bytes.

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
    /// Those of all lanes, one lane after the other. The places of a lane are indices into this list.
    connections: Vec<Connection>,
    buffer: Vec<u8>,
    /// The latest reading of the clock.
    now_ns: u64,
    /// The earliest `wake_ns` of all connections, or an earlier time.
    wake_ns: u64,
    /// Connections whose answer goes on although their turn was over. Their edge is spent, so no event
    /// will name them again.
    unread: Vec<Unread>,
}

/// A connection that was left with bytes in its socket.
#[derive(Clone, Copy, Debug)]
struct Unread {
    token: u64,
    /// The connection ended behind these bytes.
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

    /// Adds a receiver of load with so many connections.
    pub(crate) fn add_lane(&mut self, work: Workload, connections: usize, bounds: Bounds) {
        let (lane, first) = (self.lanes.len(), self.connections.len());
        let own = (0..connections).map(|_| Connection::new(lane, bounds));
        self.connections.extend(own);
        self.lanes
            .push(Lane::new(work, first..self.connections.len()));
    }

    /// Opens all connections of a lane before the load begins, so that the first answers of a closed
    /// loop are not those of a server busy with accepting.
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

    /// Sends all slots of the lanes and awaits their answers.
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

    /// The lanes, and whether the load was interrupted.
    pub(crate) fn finish(self) -> (Vec<Lane>, bool) {
        (self.lanes, self.pacer.was_interrupted())
    }

    /// Waits once and deals with all that happened.
    ///
    /// Three stretches are watched for pauses, each against the time that it was meant to take:
    /// sending (none), the wait (what was asked of the system) and dealing with events (none). So a
    /// thread that lost its core is noticed wherever that was.
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
        // Before the events, whose work is no part of how late a sleep ended.
        self.poll.learn(meant_ns, after_ns - before_ns);
        // The list is moved out for the loop, as every event borrows the whole engine.
        let events = std::mem::take(&mut self.poll.events);
        for event in &events {
            self.on_event(event.data.u64(), event.flags);
            // A list may hold 128 answers at some microseconds each. A slot that becomes due
            // meanwhile leaves between two of them instead of after the last.
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

    /// Between two events: sends what has become due, and ends what has run out of time.
    #[inline]
    fn keep_time(&mut self) {
        if self.lanes.iter().any(|lane| lane.queue.is_due(self.now_ns)) {
            self.dispatch();
        }
        if self.now_ns >= self.wake_ns {
            self.sweep();
        }
    }

    /// Gives each connection another turn whose answer goes on.
    fn read_on(&mut self) {
        if self.unread.is_empty() {
            return;
        }
        // Those that are still not through are noted anew, for the next round.
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

    /// Reads the clock.
    #[inline]
    fn now(&mut self) -> u64 {
        self.now_ns = self.pacer.controls.clock.now_ns();
        self.now_ns
    }

    /// How long nothing is to do but to look at sockets. Only what is due is worth the spin budget of
    /// a punctual wait: a timeout or a retry may be noticed a millisecond late.
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

    /// Sends slots for as long as there are some, and connections for them; iterations go on whose
    /// think time is over.
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

    /// A connection became free: sends the next slot of its lane at once or parks it.
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

    /// Does what comes next in the slot of a connection.
    #[inline]
    fn proceed(&mut self, index: usize, next: Next) {
        match next {
            Next::Send => self.go(index),
            Next::Over => self.release(index),
            Next::Wait { due_ns } => {
                let connection = &mut self.connections[index];
                connection.phase = Phase::Waiting;
                // Its lane knows when it goes on; there is nothing that could time out.
                connection.wake_ns = u64::MAX;
                self.lanes[connection.lane].queue.wait(index, due_ns);
            }
            Next::Cut { end_ns } => {
                self.connections[index].phase = Phase::Pausing;
                self.wake_at(index, end_ns);
            }
        }
    }

    /// Sends the request that is made ready, on a new connection where none is open.
    #[inline]
    fn go(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.has_slot = true;
        // The server has said how long it keeps an idle connection.
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

    /// `wake_ns` of the engine may be too early afterwards, never too late: finding the true minimum
    /// would take a walk over all connections for every request.
    fn wake_at(&mut self, index: usize, wake_ns: u64) {
        self.connections[index].wake_ns = wake_ns;
        self.wake_ns = self.wake_ns.min(wake_ns);
    }

    fn on_event(&mut self, token: u64, flags: EventFlags) {
        let index = index_of(token);
        let connection = &self.connections[index];
        // Closing a socket ends its registration, but an event of it may be in the list already.
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
            // Writable again, which matters only while something is to be written.
            _ => {}
        }
    }

    /// Something came, or the end, where no request was under way. The next request opens another
    /// connection.
    fn on_unasked_event(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let Some(socket) = &connection.socket else {
            return;
        };
        let lane = &mut self.lanes[connection.lane];
        loop {
            match socket::receive(socket, &mut self.buffer) {
                // The edge was of bytes that an earlier read has taken.
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
        // A place in think time keeps its slot, so it is not free; its next step connects anew.
        if is_waiting {
            connection.phase = Phase::Waiting;
        } else {
            lane.queue.places.closed(index);
        }
    }

    /// Ends the slot under way, if there is one, and the connection. The last `bytes` of the answer
    /// are in the buffer.
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
            // Not released: a target that refuses at once would be called upon from within its own
            // refusals, as deep as there are slots.
            lane.queue.places.park(index, false);
        }
    }

    /// Looks at every connection whose time has come.
    fn sweep(&mut self) {
        // The minimum is found anew here, because `wake_at` only ever lowers it.
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
            Phase::Sending | Phase::Receiving => {
                self.fail(index, FailureKind::Timeout, 0, &|| {
                    format!("no complete answer within {limit:?}")
                });
            }
            Phase::Pausing => {
                // After a refusal without a socket, after the end of the load perhaps with one.
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

/// The place of a connection, which is the lower half of its token.
fn index_of(token: u64) -> usize {
    usize::try_from(token & u64::from(u32::MAX)).expect("32 bits fit into an address")
}
