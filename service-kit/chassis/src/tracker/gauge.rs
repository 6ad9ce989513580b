//! Unwritten response bytes of a server that writes without a tracked socket.
//!
//! Each sweep reads the gauge. The client has taken the bytes that were handed over and are no longer
//! unwritten.

use std::cell::Cell;
use std::fmt;

use super::State;
use super::io::PROGRESS_BYTES;

/// Reads the number of unwritten response bytes from a server.
pub(super) struct Gauge {
    unsent: Box<dyn Fn() -> usize>,
    /// Total of bytes that the server has received.
    handed: Cell<u64>,
    /// Number of taken bytes at the client's last progress.
    mark: Cell<u64>,
}

impl Gauge {
    pub(super) fn new(unsent: impl Fn() -> usize + 'static) -> Self {
        Self {
            unsent: Box::new(unsent),
            handed: Cell::new(0),
            mark: Cell::new(0),
        }
    }

    pub(super) fn handed(&self, bytes: usize) {
        self.handed
            .set(self.handed.get().wrapping_add(bytes as u64));
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Gauge").field(&self.handed).finish()
    }
}

impl State {
    /// Updates the unwritten bytes from the gauge, if the connection has one.
    pub(super) fn look(&self, now: u32) {
        let gauge = self.gauge.borrow();
        let Some(gauge) = &*gauge else {
            return;
        };
        let left = (gauge.unsent)();
        self.held.set(left);
        if left == 0 {
            self.blocked.set(None);
            return;
        }
        // The server's unwritten bytes include heads, which were not handed over. So the difference may be
        // negative.
        let taken = gauge.handed.get().wrapping_sub(left as u64);
        let progress = taken.wrapping_sub(gauge.mark.get()).cast_signed();
        if self.blocked.get().is_none() || progress >= PROGRESS_BYTES as i64 {
            gauge.mark.set(taken);
            self.blocked.set(Some(now));
            self.taken.set(now);
        }
    }
}
