//! What a client counted, for metrics and tests.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a client did so far. Plain numbers; one worker, one client, no atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections opened.
    pub connects: u64,
    /// Requests that found an idle connection.
    pub reused: u64,
    /// Requests sent again because an idle connection turned out to be closed.
    pub retried: u64,
    /// Calls that have not been answered yet.
    pub in_flight: u64,
    /// Connections that wait for the next request.
    pub idle: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) connects: Cell<u64>,
    pub(crate) reused: Cell<u64>,
    pub(crate) retried: Cell<u64>,
    in_flight: Cell<u64>,
}

impl Tally {
    pub(crate) fn add(cell: &Cell<u64>) {
        cell.set(cell.get() + 1);
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.get()
    }

    /// Counts a call as in flight until the guard is dropped, however that comes.
    pub(crate) fn enter(&self) -> InFlight<'_> {
        Self::add(&self.in_flight);
        InFlight(&self.in_flight)
    }
}

pub(crate) struct InFlight<'a>(&'a Cell<u64>);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// What the clients of all workers count together, for `/metrics`. Written when a connection is opened
/// or closed and when a call has to wait, never for an ordinary call.
#[derive(Debug, Default)]
pub struct Traffic {
    open: AtomicU64,
    waiting: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
}

impl Traffic {
    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Calls that wait for a connection.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Calls that had to wait for a connection.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    /// Calls that were refused because too many waited.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection until what is returned is dropped.
    pub(crate) fn opened(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Counts a call that waits until what is returned is dropped.
    pub(crate) fn waits(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.waited.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }
}

/// A connection that is open. It may travel to a task.
#[derive(Debug)]
pub(crate) struct Open(Arc<Traffic>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A call that waits.
pub(crate) struct Waits<'a>(&'a Traffic);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
