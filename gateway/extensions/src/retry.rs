//! Limits how often failed subgraph requests are sent again.
//!
//! A subgraph that fails under load must not receive even more load. Retries therefore have a budget. Each
//! successful request adds a fraction of a retry, and each second adds a few. Unused budget expires after a
//! while.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gateway_config::Retry;
use tokio::time::Instant;

/// Maximum number of retries of one request. Otherwise one request could use up a full budget.
pub(crate) const RETRIES_MAX: u32 = 3;

/// Number of slots in the time after which unused budget expires.
const SLOTS: usize = 10;

/// The retry budget of one subgraph, shared by all workers.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Thousandths of a retry that a success adds.
    earned: i64,
    /// Thousandths of a retry that are always available.
    reserve: i64,
    slot: Duration,
    /// Locked once per call, only if retries are configured.
    state: Mutex<State>,
    retries_mutations: bool,
}

#[derive(Debug)]
struct State {
    /// Thousandths added minus thousandths spent, for each of the last slots.
    slots: [i64; SLOTS],
    /// Index of the current slot.
    current: usize,
    since: Instant,
}

/// One retry, in thousandths.
const ONE: i64 = 1_000;

impl Budget {
    /// A new budget contains only its reserve.
    pub(crate) fn new(retry: &Retry, now: Instant) -> Self {
        let ttl = retry
            .ttl
            .0
            .clamp(Duration::from_secs(1), Duration::from_secs(60));
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(60);
        // The configuration check keeps it between 0 and 1,000.
        let share = retry.retry_percent.clamp(0.0, 1_000.0) * 1_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "between 0 and 1,000,000, and a part of a thousandth does not matter"
        )]
        let earned = share as i64;
        Self {
            earned,
            reserve: i64::from(retry.min_per_sec) * seconds * ONE,
            // tokio's clock counts nanoseconds. Ten slots cover the whole time.
            slot: ttl / 10,
            state: Mutex::new(State {
                slots: [0; SLOTS],
                current: 0,
                since: now,
            }),
            retries_mutations: retry.retry_mutations,
        }
    }

    /// True if a request of this kind may be sent again.
    pub(crate) fn is_for(&self, is_query: bool) -> bool {
        is_query || self.retries_mutations
    }

    /// Adds budget for a successful request.
    pub(crate) fn succeeded(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.move_to(now, self.slot);
        let current = state.current;
        // Bounded: a request adds at most a thousand retries, so no slot reaches 2^40 in practice.
        state.slots[current] = state.slots[current].saturating_add(self.earned);
    }

    /// Spends one retry. Returns false if the budget is empty.
    pub(crate) fn spend(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.move_to(now, self.slot);
        let sum = state.slots.iter().copied().fold(0, i64::saturating_add);
        if sum.saturating_add(self.reserve) < ONE {
            return false;
        }
        let current = state.current;
        state.slots[current] -= ONE;
        true
    }
}

impl State {
    /// Clears the expired slots.
    fn move_to(&mut self, now: Instant, slot: Duration) {
        let passed = now.saturating_duration_since(self.since);
        let steps = passed.as_nanos() / slot.as_nanos().max(1);
        if steps == 0 {
            return;
        }
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        for _ in 0..steps.min(SLOTS) {
            self.current = (self.current + 1) % SLOTS;
            self.slots[self.current] = 0;
        }
        // At most some centuries.
        let moved = slot.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX));
        self.since += moved.min(passed);
    }
}

#[cfg(test)]
mod tests {
    use gateway_config::Written;

    use super::*;

    fn budget(min_per_sec: u32, retry_percent: f64) -> (Budget, Instant) {
        let now = Instant::now();
        let retry = Retry {
            min_per_sec,
            ttl: Written(Duration::from_secs(10)),
            retry_percent,
            retry_mutations: false,
        };
        (Budget::new(&retry, now), now)
    }

    fn spent(budget: &Budget, now: Instant) -> usize {
        (0..10_000).take_while(|_| budget.spend(now)).count()
    }

    #[test]
    fn the_reserve_is_there_again_after_its_time() {
        let (budget, start) = budget(1, 0.0);
        assert_eq!(spent(&budget, start), 10);
        assert_eq!(spent(&budget, start + Duration::from_secs(9)), 0);
        assert_eq!(spent(&budget, start + Duration::from_secs(11)), 10);
    }

    #[test]
    fn successes_earn_their_share_and_it_is_forgotten() {
        let (budget, start) = budget(0, 0.2);
        assert_eq!(spent(&budget, start), 0);
        (0..100).for_each(|_| budget.succeeded(start));
        assert_eq!(spent(&budget, start + Duration::from_secs(5)), 20);
        (0..100).for_each(|_| budget.succeeded(start));
        assert_eq!(spent(&budget, start + Duration::from_secs(3_600)), 0);
    }

    #[test]
    fn mutations_are_sent_again_only_where_it_is_asked_for() {
        let (budget, _) = budget(1, 0.0);
        assert!(budget.is_for(true));
        assert!(!budget.is_for(false));
    }
}
