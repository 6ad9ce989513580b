//! Where in the gaps of a plan the slots of one receiver of load stand.

use std::sync::Arc;

/// Moves the slots of an open plan: slot `index` is due `shift_ns(index)` later than the plan says.
/// Latency and lateness count from the shifted due.
///
/// Receivers that share a plan take turns in this way: each is sent to at the plan's rate, and no two
/// of them at once.
///
/// The shift must be a pure function, so that shards of a plan need no coordinator, and must leave
/// the slots in their order.
#[derive(Clone)]
pub struct Seat(Arc<dyn Fn(u64) -> u64 + Send + Sync>);

impl Seat {
    /// A seat by a function from the index of a slot in the whole plan to nanoseconds.
    #[must_use]
    pub fn new(shift_ns: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Seat {
        Seat(Arc::new(shift_ns))
    }

    /// By how much later slot `index` is due, in nanoseconds.
    #[must_use]
    pub fn shift_ns(&self, index: u64) -> u64 {
        (self.0)(index)
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Seat")
            .field("first_shift_ns", &self.shift_ns(0))
            .finish_non_exhaustive()
    }
}
