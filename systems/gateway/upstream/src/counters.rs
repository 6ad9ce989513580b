//! What a client counted, for metrics and tests.

use std::cell::Cell;

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
