//! Tracks the connections of a worker, and closes a connection if its client is too slow.
//!
//! A connection records events and their time in plain cells. The worker checks all connections from time to
//! time (`sweep`). A deadline therefore costs a request a few writes and one read of the clock. A timer for
//! each deadline would be set and reset with every request head.
//!
//! A sweep wakes a thread that may be asleep. At a hundred requests per second this measurably adds to the
//! cost of a request. So the worker sweeps at most once per second, and ten times per second while a resource
//! is short.

mod answer;
mod exchange;
mod gauge;
mod io;
mod passes;
mod sweep;
mod ticks;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::Version;
use hyper_util::server::graceful::GracefulConnection;

use crate::connection_table::{Cause, ConnectionTable, Slot};
use crate::limits::Timeouts;

pub use answer::{Portion, TrackedBody};
pub use exchange::{Exchange, Work};
use gauge::Gauge;
pub use io::TrackedIo;
use passes::Passes;
pub use passes::count_rests;
use ticks::{TICK, Ticks, Turn};

/// The longest interval between two sweeps.
const CALM: Duration = Duration::from_secs(1);
/// Divisor of the shortest timeout. The quotient is the interval between sweeps while no resource is short. A
/// connection is closed at most this much too late.
const CALM_PART: u32 = 10;

/// The connections of one worker.
#[derive(Clone, Debug)]
pub struct Tracker(Rc<Registry>);

#[derive(Debug)]
struct Registry {
    table: Arc<ConnectionTable>,
    timeouts: Cell<Timeouts>,
    connections: RefCell<Vec<Rc<State>>>,
    ticks: Ticks,
    /// Upper bound of the response bytes that are not written yet. It is the number of unwritten bytes of all
    /// connections at the last sweep, plus all response bytes since then.
    unsent: Cell<usize>,
    /// Counter of the heads and pauses that connections began. It orders events of the same tick.
    beginnings: Cell<u64>,
    /// Counter of periods of half the write timeout. See `answer`.
    epoch: Cell<u32>,
    epoch_began: Cell<u32>,
    /// Descriptor shortages that this worker has already handled by closing connections.
    shortages: Cell<u64>,
    /// Number of connections that received an order to end and have not ended yet.
    leaving: Cell<usize>,
    passes: Passes,
    is_stopping: Cell<bool>,
    /// The task that waits for the last connection to end.
    emptied: RefCell<Option<Waker>>,
}

/// A handle on a connection. The server of the connection records events with it.
#[derive(Clone, Debug)]
pub struct Tracked(Rc<State>);

/// The state of a connection.
#[derive(Debug)]
struct State {
    /// Held until the last work for the connection ends, which may be after the connection itself.
    slot: Slot,
    registry: Rc<Registry>,
    /// The index in the registry.
    index: Cell<usize>,
    /// The waker of the task that drives the connection.
    driver: RefCell<Option<Waker>>,
    /// Number of polls of the driver.
    turn: Cell<u32>,
    /// The turn that last admitted a request of this connection.
    served: Cell<Option<u32>>,
    order: Cell<Order>,
    protocol: Cell<Protocol>,
    /// Requests with a response that the system has not fully accepted yet.
    active: Cell<u32>,
    /// Requests in progress, including requests that their client has cancelled.
    working: Cell<u32>,
    /// The tick at which the connection began, became idle, or received the first byte of a head.
    since: Cell<u32>,
    /// The number of that event, in the order of all events.
    beginning: Cell<u64>,
    /// True if a head has begun. Initially true, because a connection should begin with a head.
    in_head: Cell<bool>,
    /// The tick since which the system accepts no more bytes for the client.
    blocked: Cell<Option<u32>>,
    /// Bytes that the system accepted since then and that do not count as progress yet.
    credit: Cell<usize>,
    /// Bytes of responses that are not written yet.
    unsent: Cell<usize>,
    /// Unwritten bytes of responses that were handed to another server, by the last reading.
    held: Cell<usize>,
    /// Reads the unwritten bytes from a server that writes to its own socket.
    gauge: RefCell<Option<Gauge>>,
    /// The tick at which a response byte was last written.
    taken: Cell<u32>,
    /// Number of unwritten response parts, by the epoch of their last progress, modulo 4.
    waiting: [Cell<u32>; 4],
    answered: Cell<u32>,
    cancelled: Cell<u32>,
}

/// An order for the driver of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Serve,
    /// Accept no more requests, and finish the current ones.
    Finish,
    /// Like `Finish`, but requests that are unfinished at this tick are dropped.
    FinishBy(u32),
    /// Close the connection, unless a request has arrived.
    MakeRoom,
    Drop,
    /// The connection has ended and accepts no more orders.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Unknown,
    Http1,
    Http2,
}

impl Tracker {
    /// Tracks the connections of the current thread.
    #[must_use]
    pub fn new(table: Arc<ConnectionTable>, timeouts: Timeouts) -> Self {
        Self(Rc::new(Registry {
            shortages: Cell::new(table.shortages()),
            table,
            timeouts: Cell::new(timeouts),
            connections: RefCell::default(),
            ticks: Ticks::new(),
            unsent: Cell::new(0),
            beginnings: Cell::new(0),
            epoch: Cell::new(0),
            epoch_began: Cell::new(0),
            leaving: Cell::new(0),
            passes: Passes::new(),
            is_stopping: Cell::new(false),
            emptied: RefCell::default(),
        }))
    }

    /// Applies new timeouts from now on.
    pub fn set(&self, timeouts: Timeouts) {
        self.0.timeouts.set(timeouts);
    }

    /// Begins to track a connection. If the table is nearly full, idle connections make room for it.
    #[must_use]
    pub fn begin(&self, mut slot: Slot) -> Tracked {
        let registry = &self.0;
        slot.arrived();
        if slot.is_of(&registry.table) && registry.table.is_crowded() {
            registry.make_room(0);
            registry.table.alarm();
        }
        let mut connections = registry.connections.borrow_mut();
        let state = Rc::new(State {
            slot,
            registry: Rc::clone(registry),
            index: Cell::new(connections.len()),
            driver: RefCell::default(),
            turn: Cell::new(0),
            served: Cell::new(None),
            order: Cell::new(Order::Serve),
            protocol: Cell::new(Protocol::Unknown),
            active: Cell::new(0),
            working: Cell::new(0),
            since: Cell::new(registry.now()),
            beginning: Cell::new(registry.next_beginning()),
            in_head: Cell::new(true),
            blocked: Cell::new(None),
            credit: Cell::new(0),
            unsent: Cell::new(0),
            held: Cell::new(0),
            gauge: RefCell::default(),
            taken: Cell::new(registry.now()),
            waiting: Default::default(),
            answered: Cell::new(0),
            cancelled: Cell::new(0),
        });
        connections.push(Rc::clone(&state));
        Tracked(state)
    }

    /// Sweeps the connections until the runtime ends.
    pub async fn watch(self) {
        let registry = &self.0;
        loop {
            // Subscribes before the sweep, so that an alarm right after the sweep is not missed.
            let alarm = registry.table.alarmed();
            registry.sweep();
            match registry.pause() {
                TICK => tokio::time::sleep(TICK).await,
                // The next sweep follows an alarm or the pause, whichever comes first.
                pause => {
                    let _ = tokio::time::timeout(pause, alarm).await;
                }
            }
        }
    }

    /// Lets every connection finish its requests. Returns after the last connection has ended.
    pub async fn finish(&self) {
        self.0.is_stopping.set(true);
        for state in &*self.0.connections.borrow() {
            state.give(Order::Finish);
        }
        poll_fn(|task| {
            if self.0.connections.borrow().is_empty() {
                return Poll::Ready(());
            }
            self.0.emptied.replace(Some(task.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

impl Registry {
    /// The number of the current tick.
    fn now(&self) -> u32 {
        self.ticks.now()
    }

    /// Time until the next sweep.
    fn pause(&self) -> Duration {
        let timeouts = self.timeouts.get();
        let is_short = self.leaving.get() > 0
            || self.table.is_crowded()
            || self.unsent.get() > timeouts.unsent_bytes / 2;
        if is_short {
            return TICK;
        }
        let shortest = timeouts.head.min(timeouts.idle).min(timeouts.write);
        (shortest / CALM_PART).clamp(TICK, CALM)
    }

    /// Adds response bytes that wait to be written. Only the next sweep subtracts written bytes.
    fn add_unsent(&self, bytes: usize) {
        let before = self.unsent.get();
        let after = before + bytes;
        self.unsent.set(after);
        let much = self.timeouts.get().unsent_bytes / 2;
        if before <= much && after > much {
            self.table.alarm();
        }
    }

    fn next_beginning(&self) -> u64 {
        let number = self.beginnings.get() + 1;
        self.beginnings.set(number);
        number
    }
}

impl Tracked {
    /// Wraps a socket so that its reads and writes are tracked.
    pub fn io<I>(&self, socket: I) -> TrackedIo<I> {
        TrackedIo::new(socket, Rc::clone(&self.0))
    }

    /// Records that a request's head has arrived.
    #[must_use]
    pub fn request(&self, version: Version) -> Exchange {
        self.0.request(version)
    }

    /// Records that the head of an HTTP/1.1 request has arrived, for servers with their own request types.
    #[must_use]
    pub fn http1_request(&self) -> Exchange {
        self.request(Version::HTTP_11)
    }

    /// Reads the number of unwritten response bytes from `unsent` from now on, for servers that write to
    /// their own socket.
    pub fn gauge(&self, unsent: impl Fn() -> usize + 'static) {
        self.0.gauge.replace(Some(Gauge::new(unsent)));
    }

    /// Drives a hyper connection until it ends or has to end.
    ///
    /// # Errors
    /// The errors of the connection.
    pub async fn drive<C: GracefulConnection>(self, connection: C) -> Result<(), C::Error> {
        let done = self.run(connection, C::graceful_shutdown, |_| false).await;
        // A connection that had to end is not an error.
        done.unwrap_or(Ok(()))
    }

    /// Like [`Tracked::drive`], for servers that cannot finish a single connection on request. A connection
    /// that should finish ends as soon as it is idle. Returns `None` if the connection had to end before
    /// `work` was done.
    pub async fn attend<F: Future>(self, work: F) -> Option<F::Output> {
        self.run(work, |_| {}, State::is_idle).await
    }

    async fn run<F: Future>(
        self,
        work: F,
        finish: impl Fn(Pin<&mut F>),
        is_finished: impl Fn(&State) -> bool,
    ) -> Option<F::Output> {
        // Dropped after the connection, so that the connection's descriptor is free before its place is.
        let _leave = Leave(&self.0);
        let mut work = pin!(work);
        let mut is_told = false;
        poll_fn(|task| {
            let _turn = self.0.driven_by(task);
            let order = self.0.order.get();
            if matches!(order, Order::Drop | Order::Ended) {
                return Poll::Ready(None);
            }
            let is_finishing = matches!(order, Order::Finish | Order::FinishBy(_));
            if is_finishing && !std::mem::replace(&mut is_told, true) {
                finish(work.as_mut());
            }
            let done = work.as_mut().poll(task).map(Some);
            let ends = match order {
                Order::MakeRoom => done.is_pending() && self.0.makes_room(),
                Order::Finish => done.is_pending() && is_finished(&self.0),
                _ => false,
            };
            if ends { Poll::Ready(None) } else { done }
        })
        .await
    }
}

/// Removes a connection from the registry when its driver ends for any reason.
struct Leave<'a>(&'a Rc<State>);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl State {
    /// Begins a turn of the connection. The turn lasts until the returned guard is dropped.
    fn driven_by(&self, task: &Context<'_>) -> Turn<'_> {
        self.turn.set(self.turn.get().wrapping_add(1));
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|it| it.will_wake(task.waker())) {
            *driver = Some(task.waker().clone());
        }
        self.registry.ticks.turn()
    }

    /// Gives an order to the driver, unless it already has an equally strict or stricter order.
    fn give(&self, order: Order) {
        let rank = |order: Order| match order {
            Order::Serve => 0,
            Order::Finish => 1,
            Order::FinishBy(_) | Order::MakeRoom => 2,
            Order::Drop => 3,
            Order::Ended => 4,
        };
        if rank(order) <= rank(self.order.get()) {
            return;
        }
        if rank(self.order.get()) < 2 && rank(order) >= 2 {
            let leaving = &self.registry.leaving;
            leaving.set(leaving.get() + 1);
        }
        self.order.set(order);
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    fn leave(&self) {
        let registry = &self.registry;
        if !matches!(self.order.get(), Order::Serve | Order::Finish) {
            registry.leaving.set(registry.leaving.get() - 1);
        }
        // HTTP/2 streams may end a little later, and must then give no orders.
        self.order.set(Order::Ended);
        let mut connections = registry.connections.borrow_mut();
        let index = self.index.get();
        connections.swap_remove(index);
        if let Some(moved) = connections.get(index) {
            moved.index.set(index);
        }
        if connections.is_empty()
            && let Some(waiting) = registry.emptied.take()
        {
            waiting.wake();
        }
    }

    /// True if the connection ends to make room, after a last check for a request.
    fn makes_room(&self) -> bool {
        let registry = &self.registry;
        if self.is_idle() {
            registry.table.closed(Cause::Room);
            return true;
        }
        // A request arrived just before.
        registry.leaving.set(registry.leaving.get() - 1);
        self.order.set(if registry.is_stopping.get() {
            Order::Finish
        } else {
            Order::Serve
        });
        false
    }

    /// Counts the cause and gives an order that closes the connection.
    fn end(&self, order: Order, cause: Cause) {
        if matches!(self.order.get(), Order::Serve | Order::Finish) {
            self.registry.table.closed(cause);
        }
        self.give(order);
    }

    fn request(self: &Rc<Self>, version: Version) -> Exchange {
        self.protocol.set(match version {
            Version::HTTP_2 => Protocol::Http2,
            _ => Protocol::Http1,
        });
        self.in_head.set(false);
        self.active.set(self.active.get() + 1);
        Exchange::begin(self)
    }

    /// Records the end of a request.
    fn ended(&self) {
        let active = self.active.get() - 1;
        self.active.set(active);
        if active == 0 {
            self.begins();
        }
    }

    /// Records the beginning of a head or a pause. Both have a timeout.
    fn begins(&self) {
        self.since.set(self.registry.now());
        self.beginning.set(self.registry.next_beginning());
    }

    /// True if the connection is idle for its client: no request in progress and no response bytes left.
    fn is_idle(&self) -> bool {
        self.active.get() == 0 && self.blocked.get().is_none() && self.held.get() == 0
    }
}

#[cfg(test)]
mod tests;
