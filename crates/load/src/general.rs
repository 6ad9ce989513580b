//! The general carrier: TLS, HTTP/2, HTTP/3 and WebSocket, with rustls, h2, quinn, h3, tungstenite and tokio.
//!
//! [`Lane`] and [`Pacer`] provide slots, scenarios, pacing, rules and the account, as for the fast carrier in
//! `fast.rs`. Only the carrier of a slot differs. A place is one of the requests that may be under way on a
//! connection. There is one place over HTTP/1.1, and over HTTP/2 and HTTP/3 there are as many as streams. A place is a
//! task while there are slots for it. One more future on the thread, [`pace`], hands out slots when they are
//! due.
//!
//! A timeout over HTTP/2 and HTTP/3 only ends its stream, and no further request uses that connection. If the target
//! announces that it goes away, no further request uses the connection either. The requests under way are
//! awaited while a new connection is opened. During that time there may be more connections than requested.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot::Receiver;
use tokio::task::LocalSet;

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::error::RequestError;
use crate::job::Version;
use crate::lane::{self, Lane, Workload};
use crate::measurement::FailureKind;
use crate::pacing::{Controls, Pacer, WAIT_MAX_NS};
use crate::priority::Priority;
use crate::rendered::Rotation;
use crate::scenario::CapturedValue;
use crate::script::Script;
use crate::supply::Taken;

mod endpoint;
mod fault;
mod feed;
mod grpc;
mod http1;
mod http2;
mod http3;
mod link;
mod message;
mod planned;
mod progress;
mod route;
mod single;
mod slot;
mod stream;
mod timer;
mod tls;
mod websocket;

use endpoint::Endpoint;
pub(crate) use endpoint::Outlet;
use link::Purpose;
pub(crate) use message::Messages;
use message::{shown_over_http2, shown_over_http3};
use route::Channel;
pub(crate) use route::Route;
pub(crate) use single::{exchange, reach};
pub(crate) use timer::Timer;
pub(crate) use tls::HTTP3_ALPN;

/// Translates a rotation.
///
/// # Errors
///
/// Returns the position of the first request that the version of HTTP cannot carry, with the reason.
pub(crate) fn messages(
    rotation: &Rotation,
    script: &Script,
    route: &Route,
) -> Result<Messages, (usize, RequestError)> {
    if route.version == Version::Http1 {
        return Ok(Vec::new());
    }
    let mut filled = Vec::new();
    // Any value can replace the captures of iterations here. A path may begin with it, unchanged.
    let captured = vec![CapturedValue::of_text("/".to_owned()); script.captures()];
    let translate = |(index, request): (usize, &crate::rendered::Rendered)| {
        // The first slot represents all slots of a template.
        request.fill(0, &captured, &mut filled);
        if request.is_template() {
            // Values of responses, which messages of gRPC may need, do not exist yet.
            let message = route.message(request.bytes(&filled), None);
            return message.map(|_| None).map_err(|reason| (index, reason));
        }
        let message = route.message(request.bytes(&filled), request.calling.as_deref());
        message.map(Some).map_err(|reason| (index, reason))
    };
    rotation
        .requests
        .iter()
        .enumerate()
        .map(translate)
        .collect()
}

/// One generator thread over tokio.
pub(crate) struct TokioEngine<'a> {
    pacer: Pacer<'a>,
    // Dropped before the runtime that its sockets are registered with.
    tasks: LocalSet,
    state: Rc<EngineState>,
    runtime: Runtime,
}

/// The state that the tasks of a thread share. No borrow of the lanes is held across an `await`.
struct EngineState {
    timer: Timer,
    clock: Clock,
    /// The time between the hand-out of a slot and its due time.
    ahead_ns: Cell<u64>,
    lanes: RefCell<Vec<Lane>>,
    /// One endpoint for each lane.
    endpoints: Vec<Endpoint>,
    /// The read buffer of HTTP/1.1.
    buffer: RefCell<Vec<u8>>,
}

/// A carrier of one request at a time: a stream of a connection to the endpoint of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    lane: usize,
    /// Index among the places of the lane. The places of the first connection come first, then the places of
    /// the second.
    index: usize,
}

impl<'a> TokioEngine<'a> {
    pub(crate) fn new(
        controls: Controls<'a>,
        spin_share: f64,
        loads: Vec<(Workload, Outlet)>,
    ) -> std::io::Result<TokioEngine<'a>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let timer = {
            // The timer's descriptor is registered with the runtime of the thread that creates it.
            let _within = runtime.enter();
            Timer::new(controls.clock, spin_share)?
        };
        let (mut lanes, mut endpoints) = (Vec::new(), Vec::new());
        for (mut work, outlet) in loads {
            work.as_evidence = match outlet.route.version {
                Version::Http1 => None,
                Version::Http2 { .. } => Some(shown_over_http2),
                Version::Http3 { .. } => Some(shown_over_http3),
            };
            let endpoint = Endpoint::new(&work, outlet);
            lanes.push(Lane::new(work, 0..endpoint.places()));
            endpoints.push(endpoint);
        }
        let state = EngineState {
            timer,
            clock: controls.clock,
            ahead_ns: Cell::new(0),
            lanes: RefCell::new(lanes),
            endpoints,
            buffer: RefCell::new(vec![0; 64 * 1024]),
        };
        Ok(TokioEngine {
            pacer: Pacer::new(controls),
            tasks: LocalSet::new(),
            state: Rc::new(state),
            runtime,
        })
    }

    /// Opens all connections of a lane before the load begins, like the fast carrier.
    pub(crate) fn open_all(&mut self, lane: usize) {
        let (state, controls) = (&self.state, self.pacer.controls);
        self.tasks.block_on(&self.runtime, async {
            // All at once, because one after the other would take the time of a handshake for each
            // connection.
            let opening: Vec<_> = (0..state.endpoints[lane].links.len())
                .map(|link| {
                    let state = Rc::clone(state);
                    tokio::task::spawn_local(async move {
                        let first = state.endpoints[lane].first;
                        state.open(lane, link, first).await
                    })
                })
                .collect();
            for mut task in opening {
                let wait = Duration::from_nanos(WAIT_MAX_NS);
                // The result is in the link, and the time is in the account.
                while tokio::time::timeout(wait, &mut task).await.is_err() {
                    if controls.is_stopped() {
                        return;
                    }
                }
            }
        });
    }

    pub(crate) fn lanes(&mut self) -> std::cell::RefMut<'_, Vec<Lane>> {
        self.state.lanes.borrow_mut()
    }

    /// Sends all slots of the lanes and awaits their responses.
    pub(crate) fn run(&mut self, priority: &mut Priority) {
        let state = Rc::clone(&self.state);
        for endpoint in &state.endpoints {
            // Bytes that opened connections before the load do not belong to the load.
            endpoint.settle();
            endpoint.traffic.reset();
        }
        // A slot of a closed loop has no due time: it leaves when there is a place for it.
        let is_planned = |lane: &Lane| lane.queue.supply.is_planned();
        let is_open_loop = state.lanes.borrow().iter().all(is_planned);
        state.ahead_ns.set(if is_open_loop { AHEAD_NS } else { 0 });
        self.tasks.spawn_local(heartbeat());
        let pace = pace(&state, &mut self.pacer, priority);
        self.tasks.block_on(&self.runtime, pace);
    }

    /// Closes all connections. Returns the lanes, and true if the load was interrupted.
    pub(crate) fn finish(self) -> (Vec<Lane>, bool) {
        // The tasks use sockets and slots, so they end before the lanes are taken.
        drop(self.tasks);
        let state = &self.state;
        for (lane, endpoint) in state.lanes.borrow_mut().iter_mut().zip(&state.endpoints) {
            for link in &endpoint.links {
                link.close();
            }
            let (traffic, recorder) = (&endpoint.traffic, &mut lane.recorder);
            recorder.bytes_in = traffic.bytes_in.get();
            recorder.bytes_out = traffic.bytes_out.get();
            let has_packets = endpoint.route.version.is_http3();
            recorder.packets = has_packets.then(|| traffic.packets.get());
            let has_handshakes = endpoint.route.is_encrypted();
            recorder.handshakes = has_handshakes.then(|| traffic.handshakes.get());
        }
        for endpoint in &state.endpoints {
            // A target that is not told keeps its connections for a while.
            self.runtime.block_on(endpoint.route.leave());
        }
        (self.state.lanes.take(), self.pacer.was_interrupted())
    }
}

/// The time between the hand-out of a planned slot and its due time. The task of the slot prepares the request
/// meanwhile. With cold caches this takes 2.3 us (gRPC at 1,000 slots/s).
const AHEAD_NS: u64 = 3_000;

/// The time between two wakes of the [`heartbeat`].
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Keeps a timer of the runtime pending. A timer that becomes the earliest one writes to the runtime's event
/// descriptor, which costs two system calls. Without this timer, the time limit of every request is such a timer, if no
/// other request is under way.
async fn heartbeat() {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// Hands out slots until all have ended or the load was stopped.
async fn pace(state: &Rc<EngineState>, pacer: &mut Pacer<'_>, priority: &mut Priority) {
    priority.begin(state.clock.now_ns());
    loop {
        if state.dispatch() {
            // The slots leave before the pacer prepares its next wait.
            tokio::task::yield_now().await;
        }
        let now_ns = state.clock.now_ns();
        // A block, because no borrow of the lanes may last until the `await`.
        let horizon = {
            let lanes = &mut *state.lanes.borrow_mut();
            if !pacer.goes_on(lanes, priority, now_ns) {
                return;
            }
            pacer.horizon(lanes, now_ns)
        };
        // Only a slot that is due before the next check of the stop flag justifies a punctual wait.
        let due_ns = horizon.due_ns.filter(|due_ns| *due_ns < horizon.latest_ns);
        let early_ns = due_ns.map(|due_ns| due_ns.saturating_sub(state.ahead_ns.get()));
        let wake_ns = early_ns.unwrap_or(horizon.latest_ns);
        // The tasks run meanwhile.
        let meant_ns = state.timer.wait_until(wake_ns, due_ns.is_some()).await;
        let woken_ns = state.clock.now_ns();
        pacer.arrived(&mut state.lanes.borrow_mut(), meant_ns, woken_ns);
    }
}

impl EngineState {
    /// Opens a connection, unless another place has just opened it.
    ///
    /// # Errors
    ///
    /// Returns the failure of the slot.
    pub(super) async fn open(
        &self,
        lane: usize,
        link: usize,
        purpose: Purpose,
    ) -> Result<(), (FailureKind, String)> {
        let endpoint = &self.endpoints[lane];
        let link = &endpoint.links[link];
        let opening = async {
            let _turn = link.opening.lock().await;
            // Another place opened it while this place waited for its turn.
            if link.is_open(purpose) {
                return Ok(());
            }
            let begin_ns = self.clock.now_ns();
            let mut channel = link
                .route
                .connect(&endpoint.peer, &endpoint.traffic)
                .await?;
            let took_ns = self.clock.now_ns() - begin_ns;
            match &mut channel {
                // The time of an upgrade includes its connect.
                Channel::Http1 { connect_ns, .. } if purpose == Purpose::Conversations => {
                    *connect_ns = took_ns;
                }
                _ => {
                    let recorder = &mut self.lanes.borrow_mut()[lane].recorder;
                    recorder.connect.record_ns(took_ns);
                }
            }
            link.backoff.set(Backoff::default());
            link.keep(channel, purpose);
            Ok(())
        };
        // The time limit includes the wait for the turn, because the slot has no connection during it.
        let opened = tokio::time::timeout(endpoint.timeout, opening).await;
        opened.unwrap_or_else(|_| {
            let reason = format!("no connection within {:?}", endpoint.timeout);
            Err((FailureKind::Connect, reason))
        })
    }

    /// Hands slots to places while there are slots and places for them. Iterations continue when their think time
    /// is over. Returns true if a place has work now.
    fn dispatch(self: &Rc<EngineState>) -> bool {
        let mut has_work = self.resume();
        loop {
            let mut lanes = self.lanes.borrow_mut();
            let now_ns = self.clock.now_ns();
            let until_ns = now_ns.saturating_add(self.ahead_ns.get());
            let Some(lane) = lane::next_of(&lanes, until_ns) else {
                return has_work;
            };
            has_work = true;
            let endpoint = &self.endpoints[lane];
            let queue = &mut lanes[lane].queue;
            let (Some(taken), Some(index)) = (
                queue.take(until_ns),
                queue.places.pop(|index| endpoint.is_open(index)),
            ) else {
                unreachable!("a lane is next when it has a slot and a place for it");
            };
            drop(lanes);
            let place = Place { lane, index };
            let mut work = Box::pin(slot::work(Rc::clone(self), place, taken));
            // The request leaves within this call. The first call of a new task would follow after other tasks, and
            // after the runtime has asked the kernel for events. The task asks again for all that it waits for.
            let mut context = Context::from_waker(Waker::noop());
            if work.as_mut().poll(&mut context).is_pending() {
                tokio::task::spawn_local(work);
            }
        }
    }

    /// Waits until the due time of a slot that was handed out before it. Returns the time then, or the time now for a
    /// slot without a due time. No other task runs meanwhile.
    fn spin_until(&self, due_ns: Option<u64>) -> u64 {
        let due_ns = due_ns.unwrap_or(0);
        loop {
            let now_ns = self.clock.now_ns();
            if due_ns <= now_ns {
                return now_ns;
            }
            debug_assert!(due_ns - now_ns <= AHEAD_NS, "no slot is handed out earlier");
            std::hint::spin_loop();
        }
    }

    /// Continues the places with a think time that is over. Returns true if there was one.
    fn resume(&self) -> bool {
        let mut has_work = false;
        let until_ns = self.clock.now_ns().saturating_add(self.ahead_ns.get());
        for (lane, endpoint) in self.lanes.borrow_mut().iter_mut().zip(&self.endpoints) {
            while let Some(index) = lane.queue.pop_waiting(until_ns) {
                endpoint.resume(index);
                has_work = true;
            }
        }
        has_work
    }

    /// Waits until the time at which a slot that is due then is handed out.
    async fn wait_until(&self, place: Place, due_ns: u64) {
        let Some(resumed) = self.begin_wait(place, due_ns) else {
            return;
        };
        resumed
            .await
            .expect("the other end is kept for as long as the place waits");
    }

    /// Asks the pacer to resume a place at `due_ns`. `None` if that time has come.
    fn begin_wait(&self, place: Place, due_ns: u64) -> Option<Receiver<()>> {
        if due_ns <= self.clock.now_ns() {
            return None;
        }
        let resumed = self.endpoints[place.lane].wait(place.index);
        self.lanes.borrow_mut()[place.lane]
            .queue
            .wait(place.index, due_ns);
        // The pacer may be asleep until a later time.
        self.wake_for(due_ns);
        Some(resumed)
    }

    /// Wakes the pacer for a slot or a message that is due at this time.
    fn wake_for(&self, due_ns: u64) {
        self.timer
            .wake_by(due_ns.saturating_sub(self.ahead_ns.get()));
    }

    /// Handles the end of a slot. The load may be over, and the pacer does not wait for that.
    fn ended(&self) {
        let now_ns = self.clock.now_ns();
        let lanes = self.lanes.borrow();
        if lanes.iter().all(|lane| lane.queue.is_over(now_ns)) {
            self.timer.wake_by(now_ns);
        }
    }

    /// Handles a place that became free: gives it the next slot or parks it.
    fn release(&self, place: Place) -> Option<Taken> {
        let is_open = self.endpoints[place.lane].is_open(place.index);
        let mut lanes = self.lanes.borrow_mut();
        let lane = &mut lanes[place.lane];
        let now_ns = self.clock.now_ns();
        let taken = lane.release(place.index, is_open, now_ns);
        if taken.is_none()
            && let Some(due_ns) = lane.queue.wake_ns(now_ns)
        {
            // The pacer did not wait for a slot while no place was free for it.
            self.wake_for(due_ns);
        }
        taken
    }
}
