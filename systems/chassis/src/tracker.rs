//! What becomes of a worker's connections: it ends those whose clients let it wait for too long.
//!
//! A connection notes in plain cells what happens to it, and when. Now and then the worker looks at
//! all its connections (`sweep`). So a deadline costs a request a few writes and a look at the clock,
//! where a timer for each would be set and reset with every head.
//!
//! A look wakes a thread that may have nothing else to do, which at a hundred requests a second can be
//! felt in what each of them costs. So the worker looks once a second at most, and ten times a second
//! while something is short.

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

/// The longest time between two looks.
const CALM: Duration = Duration::from_secs(1);
/// Between two looks while nothing is short goes this part of the shortest time that a client has: a
/// connection ends so much late.
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
    /// Bytes of answers that were not written at the last look, of all connections, and those of
    /// all answers since: no fewer than are not written now.
    unsent: Cell<usize>,
    /// Counts what connections began, so that those of one tick have an order.
    beginnings: Cell<u64>,
    /// Half of the time to write, counted; see `answer`.
    epoch: Cell<u32>,
    epoch_began: Cell<u32>,
    /// Shortages of descriptors that were answered with closed connections.
    shortages: Cell<u64>,
    /// Connections that were told to end and have not ended yet.
    leaving: Cell<usize>,
    passes: Passes,
    is_stopping: Cell<bool>,
    /// Who waits for the last connection.
    emptied: RefCell<Option<Waker>>,
}

/// A connection, as what serves it notes what happens.
#[derive(Clone, Debug)]
pub struct Tracked(Rc<State>);

/// What is known of a connection.
#[derive(Debug)]
struct State {
    /// Held until the last work for the connection ends, which may be after its own end.
    slot: Slot,
    registry: Rc<Registry>,
    /// The place in the registry.
    index: Cell<usize>,
    /// What drives the connection.
    driver: RefCell<Option<Waker>>,
    /// Times that the driver was polled.
    turn: Cell<u32>,
    /// The turn in which a request was last let through.
    served: Cell<Option<u32>>,
    order: Cell<Order>,
    protocol: Cell<Protocol>,
    /// Requests whose answers were not wholly given to the system.
    active: Cell<u32>,
    /// Requests that are worked on, also those that their client does not wait for.
    working: Cell<u32>,
    /// The tick at which the connection began, became idle, or got the first byte of a head.
    since: Cell<u32>,
    /// The number of that beginning.
    beginning: Cell<u64>,
    /// A head has begun. True at first: a connection should begin with one.
    in_head: Cell<bool>,
    /// Since when the system takes no more bytes for the client.
    blocked: Cell<Option<u32>>,
    /// Bytes that it took since, of those that do not count as progress yet.
    credit: Cell<usize>,
    /// Bytes of answers that are not written.
    unsent: Cell<usize>,
    /// The same of answers that were handed over to another server, as far as is known.
    held: Cell<usize>,
    /// What tells it of a server that writes to a socket of its own.
    gauge: RefCell<Option<Gauge>>,
    /// The tick at which one of them was written.
    taken: Cell<u32>,
    /// Parts of answers that wait, by the epoch of their last progress, modulo 4.
    waiting: [Cell<u32>; 4],
    answered: Cell<u32>,
    cancelled: Cell<u32>,
}

/// What the driver of a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Serve,
    /// Take no more requests, finish those under way.
    Finish,
    /// The same; what is not done at this tick is dropped.
    FinishBy(u32),
    /// Drop, unless a request has arrived.
    MakeRoom,
    Drop,
    /// Nothing more: it is done.
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

    /// Uses other times from now on.
    pub fn set(&self, timeouts: Timeouts) {
        self.0.timeouts.set(timeouts);
    }

    /// Takes a connection up. When the table is nearly full, idle ones make room for it.
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

    /// Watches the connections until the runtime ends.
    pub async fn watch(self) {
        let registry = &self.0;
        loop {
            // Begins before the look, so that what happens right after it is not missed.
            let alarm = registry.table.alarmed();
            registry.sweep();
            match registry.pause() {
                TICK => tokio::time::sleep(TICK).await,
                // An alarm or the time, whichever comes first: then it looks again.
                pause => {
                    let _ = tokio::time::timeout(pause, alarm).await;
                }
            }
        }
    }

    /// Lets every connection finish its requests; done when the last has ended.
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

    /// Time until the next look.
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

    /// Counts bytes of an answer that wait to be written. Nothing takes them off before the next look.
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
    /// The same socket, watched.
    pub fn io<I>(&self, socket: I) -> TrackedIo<I> {
        TrackedIo::new(socket, Rc::clone(&self.0))
    }

    /// Notes that a request's head has arrived.
    #[must_use]
    pub fn request(&self, version: Version) -> Exchange {
        self.0.request(version)
    }

    /// Notes that the head of an HTTP/1.1 request has arrived, for servers with types of their own.
    #[must_use]
    pub fn http1_request(&self) -> Exchange {
        self.request(Version::HTTP_11)
    }

    /// Asks from now on how many bytes of answers are not written, for servers that write to a
    /// socket of their own.
    pub fn gauge(&self, unsent: impl Fn() -> usize + 'static) {
        self.0.gauge.replace(Some(Gauge::new(unsent)));
    }

    /// Drives what serves the connection to its end, or until it has to end.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn drive<C: GracefulConnection>(self, connection: C) -> Result<(), C::Error> {
        let done = self.run(connection, C::graceful_shutdown, |_| false).await;
        // One that had to end is no error.
        done.unwrap_or(Ok(()))
    }

    /// The same for servers that cannot be told to finish a single connection: one that is to
    /// finish ends as soon as it is idle. None when it had to end before `work` was done.
    pub async fn attend<F: Future>(self, work: F) -> Option<F::Output> {
        self.run(work, |_| {}, State::is_idle).await
    }

    async fn run<F: Future>(
        self,
        work: F,
        finish: impl Fn(Pin<&mut F>),
        is_finished: impl Fn(&State) -> bool,
    ) -> Option<F::Output> {
        // Dropped after the connection, so that the next one finds its descriptor free.
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

/// Takes a connection from the registry when its driver ends, however it ends.
struct Leave<'a>(&'a Rc<State>);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl State {
    /// Its turn, until what is returned is dropped.
    fn driven_by(&self, task: &Context<'_>) -> Turn<'_> {
        self.turn.set(self.turn.get().wrapping_add(1));
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|it| it.will_wake(task.waker())) {
            *driver = Some(task.waker().clone());
        }
        self.registry.ticks.turn()
    }

    /// Tells the driver what to do; it does not go back to what is milder.
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
        // Streams of HTTP/2 may end a little later, and must not give orders then.
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

    /// Whether the connection ends in favour of another, after a last look for a request.
    fn makes_room(&self) -> bool {
        let registry = &self.registry;
        if self.is_idle() {
            registry.table.closed(Cause::Room);
            return true;
        }
        // Its request came just before.
        registry.leaving.set(registry.leaving.get() - 1);
        self.order.set(if registry.is_stopping.get() {
            Order::Finish
        } else {
            Order::Serve
        });
        false
    }

    /// Closes the connection.
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

    /// An exchange has ended.
    fn ended(&self) {
        let active = self.active.get() - 1;
        self.active.set(active);
        if active == 0 {
            self.begins();
        }
    }

    /// The connection began something that has a limit: a head, or a pause.
    fn begins(&self) {
        self.since.set(self.registry.now());
        self.beginning.set(self.registry.next_beginning());
    }

    /// Idle as its client sees it: nothing under way, nothing left to send.
    fn is_idle(&self) -> bool {
        self.active.get() == 0 && self.blocked.get().is_none() && self.held.get() == 0
    }
}

#[cfg(test)]
mod tests;
