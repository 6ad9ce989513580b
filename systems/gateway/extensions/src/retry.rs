//! How often failed requests to a subgraph may be sent again.
//!
//! A subgraph that fails because of its load must not get more load for it. Retries are therefore paid
//! for: each request that succeeds earns a part of one, each second a few, and what was earned is
//! forgotten after a while.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gateway_config::Retry;
use tokio::time::Instant;

/// Most retries of one request. A budget that is full would let one request use it up.
pub(crate) const RETRIES_MAX: u32 = 3;

/// Into how many parts the time is divided after which earnings are forgotten.
const SLOTS: usize = 10;

/// The budget of one subgraph, shared by all workers.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Thousandths of a retry that a success earns.
    earned: i64,
    /// Thousandths that are there in any case.
    reserve: i64,
    slot: Duration,
    /// Locked once a call, and only where retries are configured.
    state: Mutex<State>,
    retries_mutations: bool,
}

#[derive(Debug)]
struct State {
    /// Thousandths earned and spent in each of the last slots.
    slots: [i64; SLOTS],
    /// The slot of now.
    current: usize,
    since: Instant,
}

/// Thousandths of one retry.
const ONE: i64 = 1_000;

impl Budget {
    /// A budget that has only its reserve.
    pub(crate) fn new(retry: &Retry, now: Instant) -> Self {
        let ttl = retry
            .ttl
            .0
            .clamp(Duration::from_secs(1), Duration::from_secs(60));
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(60);
        // The check of the configuration holds it between 0 and 1,000.
        let share = retry.retry_percent.clamp(0.0, 1_000.0) * 1_000.0;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "between 0 and 1,000,000, and a part of a thousandth does not matter"
        )]
        let earned = share as i64;
        Self {
            earned,
            reserve: i64::from(retry.min_per_sec) * seconds * ONE,
            // tokio's clock has nanoseconds; ten slots make the time.
            slot: ttl / 10,
            state: Mutex::new(State {
                slots: [0; SLOTS],
                current: 0,
                since: now,
            }),
            retries_mutations: retry.retry_mutations,
        }
    }

    /// Whether a request of this kind may be sent again at all.
    pub(crate) fn is_for(&self, is_query: bool) -> bool {
        is_query || self.retries_mutations
    }

    /// Earns for a request that succeeded.
    pub(crate) fn succeeded(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.move_to(now, self.slot);
        let current = state.current;
        // Bounded: at most a thousand retries a request, of which no slot sees 2^40.
        state.slots[current] = state.slots[current].saturating_add(self.earned);
    }

    /// Spends one retry, if there is one.
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
    /// Forgets the slots whose time is over.
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
