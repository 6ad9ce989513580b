//! One generator thread: an event loop over its share of the connections.
//!
//! A request costs one write, one read and a share of an `epoll_wait`; everything else here is
//! arranged so that nothing is added to that. A connection is registered once, with edges only; an
//! answer is parsed and checked in the one read buffer of the thread; the next request of a closed
//! loop leaves from within the event of the last answer.
//!
//! Both meanings of a load run through this one loop. They differ in when a slot exists, which
//! [`Supply`] knows, and nowhere else.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::EventFlags;

use crate::clock::Clock;
use crate::connection::{Connection, Phase};
use crate::job::Bounds;
use crate::live::Live;
use crate::measurement::FailureKind;
use crate::poll::{Poll, Wait};
use crate::priority::Priority;
use crate::recorder::{Evidence, Recorder};
use crate::rendered::Rotation;
use crate::scenario::Step;
use crate::socket::{self, Moved, Peer};
use crate::supply::{Supply, Taken};

mod connect;
mod pass;
mod traffic;

use pass::Script;

/// No wait is longer: the stop flag must be seen.
const WAIT_MAX_NS: u64 = 10_000_000;

/// Standing still longer than this is a pause.
const PAUSE_NS: u64 = 10_000_000;

/// Between two updates of the live counts.
const PUBLISH_NS: u64 = 100_000_000;

/// After a refused connect, doubled with each further one.
const REFUSED_PAUSE_NS: u64 = 1_000_000;
const REFUSED_PAUSE_DOUBLINGS_MAX: u32 = 7;

/// What all threads of a load share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) clock: Clock,
    pub(crate) peer: &'a Peer,
    pub(crate) timeout_ns: u64,
    pub(crate) keep_alive: bool,
    pub(crate) live: &'a Live,
    pub(crate) stop: &'a AtomicBool,
}

/// One generator thread.
pub(crate) struct Worker<'a> {
    shared: Shared<'a>,
    poll: Poll,
    rotation: Rotation,
    /// Of a scenario; a rotation has none.
    script: Option<Script>,
    supply: Supply,
    pub(crate) recorder: Recorder,
    connections: Vec<Connection>,
    /// Connections that are ready for a request.
    idle: Vec<usize>,
    /// Places without a socket.
    vacant: Vec<usize>,
    /// Slots under way.
    active: usize,
    buffer: Vec<u8>,
    /// The latest reading of the clock.
    now_ns: u64,
    /// The earliest `wake_ns` of all connections, or an earlier time.
    wake_ns: u64,
    publish_ns: u64,
    pub(crate) was_interrupted: bool,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        shared: Shared<'a>,
        poll: Poll,
        rotation: Rotation,
        connections: usize,
        bounds: Bounds,
    ) -> Worker<'a> {
        Worker {
            shared,
            poll,
            rotation,
            script: None,
            supply: Supply::none(),
            recorder: Recorder::new(0, 0),
            connections: (0..connections).map(|_| Connection::new(bounds)).collect(),
            idle: Vec::with_capacity(connections),
            // The first place is the last of the list, where places are taken from.
            vacant: (0..connections).rev().collect(),
            active: 0,
            buffer: vec![0; 64 * 1024],
            now_ns: shared.clock.now_ns(),
            wake_ns: u64::MAX,
            publish_ns: 0,
            was_interrupted: false,
        }
    }

    /// Carries out a scenario, when there is one.
    pub(crate) fn follow(&mut self, steps: &[Step], captures: usize) {
        let pauses = steps.iter().map(|step| step.pause);
        self.script = (!steps.is_empty()).then(|| Script::new(pauses, captures));
    }

    /// Opens all connections before the load begins, so that the first answers of a closed loop
    /// are not those of a server busy with accepting.
    pub(crate) fn open_all(&mut self) {
        for index in std::mem::take(&mut self.vacant).into_iter().rev() {
            self.connect(index);
        }
        let is_opening = |connection: &Connection| {
            matches!(connection.phase, Phase::Connecting | Phase::Queueing)
        };
        while self.connections.iter().any(is_opening) && !self.is_stopped() {
            self.turn();
        }
    }

    /// Sends all slots of the supply and awaits their answers.
    pub(crate) fn run(&mut self, supply: Supply, recorder: Recorder, priority: &mut Priority) {
        self.supply = supply;
        let connect = std::mem::replace(&mut self.recorder, recorder).connect;
        self.recorder.connect.add(&connect);
        self.now_ns = self.shared.clock.now_ns();
        priority.begin(self.now_ns);
        while !(self.supply.is_over(self.now_ns) && self.active == 0) {
            if self.is_stopped() {
                self.was_interrupted = true;
                break;
            }
            self.turn();
            priority.review(self.now_ns);
            self.supply
                .give_up_missed(self.now_ns, &self.rotation, &mut self.recorder);
        }
        self.recorder.publish(self.shared.live);
    }

    /// Takes the sockets of all connections, after the end.
    pub(crate) fn take_sockets(&mut self) -> Vec<OwnedFd> {
        let connections = self.connections.iter_mut();
        connections
            .filter_map(|connection| connection.socket.take())
            .collect()
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Waits once and deals with all that happened.
    fn turn(&mut self) {
        let begin_ns = self.now_ns;
        self.dispatch();
        let before_ns = self.now();
        self.watch(begin_ns, before_ns, 0);
        let wait = self.next_wait(before_ns);
        let meant_ns = self.poll.wait(wait);
        let after_ns = self.now();
        let took_ns = after_ns - before_ns;
        if took_ns > meant_ns + PAUSE_NS && self.has_work(after_ns) {
            self.recorder
                .paused(before_ns + meant_ns, took_ns - meant_ns);
        }
        self.poll.learn(meant_ns, took_ns);
        let events = std::mem::take(&mut self.poll.events);
        for event in &events {
            let (flags, token) = (event.flags, event.data.u64());
            self.on_event(token, flags);
            if self
                .next_due_ns()
                .is_some_and(|due_ns| due_ns <= self.now_ns)
            {
                self.dispatch();
            }
        }
        self.poll.events = events;
        if self.now_ns >= self.wake_ns {
            self.sweep();
        }
        if self.now_ns >= self.publish_ns {
            self.publish_ns = self.now_ns + PUBLISH_NS;
            self.recorder.publish(self.shared.live);
        }
        let end_ns = self.now();
        self.watch(after_ns, end_ns, 0);
    }

    /// Records a pause when a stretch took much longer than it was meant to, with work to do.
    #[inline]
    fn watch(&mut self, from_ns: u64, to_ns: u64, meant_ns: u64) {
        let pause_ns = (to_ns - from_ns).saturating_sub(meant_ns);
        if pause_ns > PAUSE_NS && self.has_work(to_ns) {
            self.recorder.paused(from_ns + meant_ns, pause_ns);
        }
    }

    /// Reads the clock.
    #[inline]
    fn now(&mut self) -> u64 {
        self.now_ns = self.shared.clock.now_ns();
        self.now_ns
    }

    fn has_work(&self, now_ns: u64) -> bool {
        self.active > 0
            || self
                .supply
                .next_due_ns()
                .is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// How long nothing is to do but to look at sockets.
    fn next_wait(&self, now_ns: u64) -> Wait {
        let left_ns = self.wake_ns.saturating_sub(now_ns).min(WAIT_MAX_NS);
        let is_anybody_free = !self.idle.is_empty() || !self.vacant.is_empty();
        let due_ns = if is_anybody_free {
            self.next_due_ns()
        } else {
            // A step after its rest has its connection already.
            self.script.as_ref().and_then(Script::next_due_ns)
        };
        match due_ns {
            Some(due_ns) => Wait::Punctually(left_ns.min(due_ns.saturating_sub(now_ns))),
            None => Wait::Roughly(left_ns),
        }
    }

    /// Sends slots for as long as there are some, and connections for them.
    #[inline]
    fn dispatch(&mut self) {
        if self.script.is_some() {
            self.resume();
        }
        while let Some(index) = self.idle.last().or(self.vacant.last()).copied() {
            let Some(taken) = self.supply.take(self.now_ns) else {
                return;
            };
            if self.idle.pop().is_none() {
                self.vacant.pop();
            }
            self.begin(index, taken);
        }
    }

    /// A connection became free: sends the next slot or parks it.
    #[inline]
    fn release(&mut self, index: usize) {
        let is_nobody_free = self.idle.is_empty() && self.vacant.is_empty();
        match self.supply.take(self.now_ns) {
            Some(taken) => {
                if is_nobody_free && taken.due_ns.is_some() {
                    self.recorder.waited(self.now_ns);
                }
                self.begin(index, taken);
            }
            None => self.park(index),
        }
    }

    fn park(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.wake_ns = u64::MAX;
        if connection.socket.is_some() {
            connection.phase = Phase::Idle;
            self.idle.push(index);
        } else {
            connection.phase = Phase::Vacant;
            self.vacant.push(index);
        }
    }

    #[inline]
    fn begin(&mut self, index: usize, taken: Taken) {
        self.active += 1;
        let connection = &mut self.connections[index];
        connection.due_ns = taken.due_ns;
        connection.request = self.rotation.pick(taken.index);
        if self.script.is_some() {
            return self.begin_pass(index, taken.index);
        }
        let request = &self.rotation.requests[connection.request];
        request.fill(taken.index, &[], &mut connection.filled);
        self.go(index);
    }

    /// Sends the request that is made ready, on a new connection where there is none.
    #[inline]
    fn go(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.has_slot = true;
        connection.is_fresh = connection.socket.is_none();
        if connection.is_fresh {
            self.connect(index);
        } else {
            self.transmit(index);
        }
    }

    fn wake_at(&mut self, index: usize, wake_ns: u64) {
        self.connections[index].wake_ns = wake_ns;
        self.wake_ns = self.wake_ns.min(wake_ns);
    }

    fn on_event(&mut self, token: u64, flags: EventFlags) {
        let index = usize::try_from(token & u64::from(u32::MAX)).unwrap_or(usize::MAX);
        let connection = &self.connections[index];
        if u64::from(connection.generation) != token >> 32 {
            return;
        }
        let is_hangup = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let is_readable = is_hangup || flags.contains(EventFlags::IN);
        match connection.phase {
            Phase::Receiving if is_readable => self.read(index, is_hangup),
            Phase::Idle if is_readable => self.on_idle_event(index),
            Phase::Sending => {
                if is_readable {
                    self.read(index, is_hangup);
                }
                if self.connections[index].phase == Phase::Sending {
                    self.send_rest(index);
                }
            }
            Phase::Connecting => self.on_connect_event(index),
            Phase::Resting => self.on_rest_event(index, flags),
            _ => {}
        }
    }

    /// Something came, or the end, where nothing was asked for.
    fn on_idle_event(&mut self, index: usize) {
        let Some(socket) = &self.connections[index].socket else {
            return;
        };
        match socket::receive(socket, &mut self.buffer) {
            Ok(Moved::Later) => return,
            Ok(Moved::Bytes(0)) | Err(_) => {}
            Ok(Moved::Bytes(_)) => self.recorder.unsolicited += 1,
        }
        self.connections[index].close();
        self.idle.retain(|idle| *idle != index);
        self.vacant.push(index);
    }

    /// Ends the slot under way, if there is one, and the connection. The last `bytes` of the answer
    /// are in the buffer.
    fn fail(&mut self, index: usize, kind: FailureKind, bytes: usize, reason: &dyn Fn() -> String) {
        let connection = &mut self.connections[index];
        if connection.has_slot {
            // Nothing came of an answer where there was no connection.
            let kept: &[u8] = match kind {
                FailureKind::Connect => &[],
                _ => &connection.kept,
            };
            let evidence = Evidence {
                request: self.rotation.requests[connection.request].bytes(&connection.filled),
                answer: [kept, &self.buffer[..bytes]],
            };
            self.recorder.failed(kind, self.now_ns, evidence, reason);
            self.recorder.step_failed(connection.request, kind);
            connection.has_slot = false;
            self.active -= 1;
        }
        connection.close();
        // In a closed loop the next slot would run into the same refusal at once, and a million
        // requests would be over in seconds. A plan has its own pace.
        if kind == FailureKind::Connect && matches!(self.supply, Supply::Closed(_)) {
            let doublings = connection.refusals.min(REFUSED_PAUSE_DOUBLINGS_MAX);
            connection.refusals += 1;
            connection.phase = Phase::Pausing;
            let wake_ns = self.now_ns + (REFUSED_PAUSE_NS << doublings);
            self.wake_at(index, wake_ns);
        } else {
            self.vacant.push(index);
        }
    }

    /// Looks at every connection whose time has come.
    fn sweep(&mut self) {
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
        let limit = std::time::Duration::from_nanos(self.shared.timeout_ns);
        let give_up_ns = connection.connect_ns.saturating_add(self.shared.timeout_ns);
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
            Phase::Pausing | Phase::Vacant | Phase::Idle => self.park(index),
            Phase::Resting => {}
        }
    }
}
