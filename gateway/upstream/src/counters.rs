//! Counters of clients, for metrics and tests.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one client. Plain numbers without atomics, because each worker has its own client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of opened connections.
    pub connects: u64,
    /// Number of requests that used an idle connection.
    pub reused: u64,
    /// Number of requests sent again because an idle connection was closed.
    pub retried: u64,
    /// Number of calls without a response yet.
    pub in_flight: u64,
    /// Number of connections that wait for the next request.
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

    /// Counts a call as in flight until the guard is dropped for any reason.
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

/// Counters that the clients of all workers share, for `/metrics`. They change when a connection is opened or
/// closed and when a call must wait, but not for an ordinary call.
#[derive(Debug, Default)]
pub struct Traffic {
    open: AtomicU64,
    waiting: AtomicU64,
    waited: AtomicU64,
    refused: AtomicU64,
}

impl Traffic {
    /// Number of open connections.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Number of calls that wait for a connection.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Total number of calls that had to wait for a connection.
    pub fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    /// Total number of calls that were refused because too many waited.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection until the returned guard is dropped.
    pub(crate) fn opened(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Counts a waiting call until the returned guard is dropped.
    pub(crate) fn waits(&self) -> Waits<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.waited.fetch_add(1, Ordering::Relaxed);
        Waits(self)
    }
}

/// Guard that counts an open connection. It can move to another task.
#[derive(Debug)]
pub(crate) struct Open(Arc<Traffic>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Guard that counts a waiting call.
pub(crate) struct Waits<'a>(&'a Traffic);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
