//! The store of one rule in a single instance: a map in memory, in shards so that workers rarely wait for
//! each other.
//!
//! It is bounded and swept. Each shard orders its entries by their expiry. Expired entries are removed with
//! every new entry and by [`MemoryStore::sweep`]. If a shard is full, it evicts the address with the earliest
//! expiry, and banned addresses last.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::rule::{Decision, Event, Rule, State};
use crate::subject::Subject;

const SHARDS: usize = 64;

/// The states of all subjects of one rule with recent failures.
#[derive(Debug)]
pub struct MemoryStore {
    shard_entries_max: usize,
    shards: Vec<Mutex<Shard>>,
}

#[derive(Debug)]
struct Shard {
    /// In each shard, so that a new rule and its order of expiry begin together.
    rule: Rule,
    entries: HashMap<u128, State>,
    /// (true if banned, time of expiry, subject). The first element is evicted first.
    order: BTreeSet<(bool, u64, u128)>,
}

impl MemoryStore {
    /// Creates an empty store for at least 64 and about `entries_max` addresses.
    #[must_use]
    pub fn new(rule: Rule, entries_max: usize) -> Self {
        let shard = || {
            Mutex::new(Shard {
                rule,
                entries: HashMap::new(),
                order: BTreeSet::new(),
            })
        };
        Self {
            // Rounded up, so that all shards together hold at least `entries_max`.
            shard_entries_max: entries_max.div_ceil(SHARDS).max(1),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    /// Changes the limits and keeps every state.
    pub fn replace_rule(&self, rule: Rule) {
        for shard in &self.shards {
            let shard = &mut *shard.lock().unwrap_or_else(PoisonError::into_inner);
            let has_order = shard.rule.memory_ms() == rule.memory_ms();
            shard.rule = rule;
            if has_order {
                continue;
            }
            let entries = shard.entries.iter();
            let places = entries.map(|(key, state)| place(&rule, *key, state));
            shard.order = places.collect();
        }
    }

    /// Decides one event at `now`, in milliseconds of a monotonic clock.
    pub fn decide(&self, subject: Subject, now: u64, event: Event, email: u64) -> Decision {
        let key = subject.bits();
        let mut shard = self.shard(key);
        let rule = shard.rule;
        // Removed and added again, so that entry and order always agree.
        let known = shard.entries.remove(&key);
        let was_known = known.is_some();
        let mut state = known.unwrap_or_default();
        if was_known {
            shard.order.remove(&place(&rule, key, &state));
        }
        let decision = rule.decide(&mut state, now, event, email);
        // An address without failures needs no entry. A success of an unknown address must not use memory.
        if state == State::default() {
            return decision;
        }
        if !was_known {
            self.make_room(&mut shard, now);
        }
        shard.order.insert(place(&rule, key, &state));
        shard.entries.insert(key, state);
        decision
    }

    /// Removes every entry that can no longer change a decision. Returns the number of remaining entries.
    pub fn sweep(&self, now: u64) -> usize {
        let sweep_one = |shard: &Mutex<Shard>| {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            // Until no entry is expired, unlike in `make_room`: the sweeper has its own thread and delays no
            // request.
            while shard.take_expired(now) {}
            shard.entries.len()
        };
        self.shards.iter().map(sweep_one).sum()
    }

    fn shard(&self, key: u128) -> MutexGuard<'_, Shard> {
        // Addresses in a network differ in the low bytes, and IPv6 networks in the high bytes.
        let mix = |mixed: usize, byte: &u8| mixed.wrapping_mul(31) ^ usize::from(*byte);
        let mixed = key.to_be_bytes().iter().fold(0, mix);
        // A panic cannot leave a shard half changed: no code panics between remove and insert.
        self.shards[mixed % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn make_room(&self, shard: &mut Shard, now: u64) {
        // Two for each new entry, so that expired entries cannot accumulate.
        let _ = shard.take_expired(now) && shard.take_expired(now);
        while shard.entries.len() >= self.shard_entries_max {
            let Some((_, _, key)) = shard.order.pop_first() else {
                return;
            };
            shard.entries.remove(&key);
        }
    }
}

fn place(rule: &Rule, key: u128, state: &State) -> (bool, u64, u128) {
    // Only a ban has no times. Bans sort last, so they are evicted last.
    if state.banned_until > 0 && state.times.is_empty() {
        (true, state.banned_until, key)
    } else {
        let expires = state.touched.saturating_add(rule.memory_ms());
        (false, expires, key)
    }
}

impl Shard {
    /// Removes one expired entry. Returns false if no entry is expired.
    fn take_expired(&mut self, now: u64) -> bool {
        // Free and banned entries are two runs of one order. Each run has its own first entry to expire.
        let first_free = self.order.first();
        let first_banned = self.order.range((true, 0, 0)..).next();
        let expired = [first_free, first_banned]
            .into_iter()
            .flatten()
            .find(|(_, expires, _)| *expires <= now)
            .copied();
        let Some(place) = expired else {
            return false;
        };
        self.order.remove(&place);
        self.entries.remove(&place.2);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::rule::{CountedResults, Mode};

    const RULE: Rule = Rule {
        ban_ms: 10_000,
        window_ms: 1_000,
        failures_max: 1,
        emails_max: 0,
        mode: Mode::Fixed,
        inclusive: false,
        counts: CountedResults::Failed,
    };

    fn address(number: u32) -> Subject {
        let text = std::net::Ipv4Addr::from_bits(number).to_string();
        Address::parse(&text).unwrap().into()
    }

    fn ban(store: &MemoryStore, address: Subject, now: u64) {
        for _ in 0..3 {
            store.decide(address, now, Event::Failed, 1);
        }
        assert!(store.decide(address, now, Event::Succeeded, 1).is_limited);
    }

    #[test]
    fn a_success_leaves_nothing_behind() {
        let store = MemoryStore::new(RULE, 1_000);
        store.decide(address(1), 5, Event::Succeeded, 1);
        assert_eq!(store.sweep(5), 0);
    }

    #[test]
    fn a_sweep_takes_what_is_quiet_for_a_window_and_bans_that_are_over() {
        let store = MemoryStore::new(RULE, 1_000);
        ban(&store, address(1), 0);
        store.decide(address(2), 0, Event::Failed, 1);
        store.decide(address(3), 500, Event::Failed, 1);
        assert_eq!(store.sweep(999), 3);
        assert_eq!(store.sweep(1_000), 2);
        assert_eq!(store.sweep(1_500), 1);
        assert_eq!(store.sweep(9_999), 1);
        assert_eq!(store.sweep(10_000), 0);
    }

    #[test]
    fn a_flood_of_addresses_stays_within_the_bound_and_frees_nobody() {
        let store = MemoryStore::new(RULE, 640);
        let banned = address(1);
        ban(&store, banned, 1);
        for number in 2..100_000 {
            store.decide(
                address(number),
                1 + u64::from(number) / 200,
                Event::Failed,
                1,
            );
        }
        assert!(store.sweep(1) <= 640);
        assert!(store.decide(banned, 600, Event::Succeeded, 1).is_limited);
    }

    #[test]
    fn a_new_rule_keeps_the_states_and_moves_their_expiry() {
        let store = MemoryStore::new(RULE, 1_000);
        ban(&store, address(1), 1);
        store.decide(address(2), 1, Event::Failed, 1);
        let longer = Rule {
            window_ms: 5_000,
            ..RULE
        };
        store.replace_rule(longer);
        // With the old rule, the failure would be gone after a second.
        assert_eq!(store.sweep(4_000), 2);
        assert!(
            store
                .decide(address(1), 4_000, Event::Succeeded, 1)
                .is_limited
        );
        assert!(!store.decide(address(2), 4_000, Event::Failed, 2).is_limited);
        assert!(store.decide(address(2), 4_000, Event::Failed, 2).is_limited);
        assert_eq!(store.sweep(14_000), 0);
    }

    #[test]
    fn threads_lose_no_failure() {
        let rule = Rule {
            failures_max: 998,
            ..RULE
        };
        let store = MemoryStore::new(rule, 1_000);
        let limited: usize = std::thread::scope(|scope| {
            let run = || {
                let decide = |_| store.decide(address(7), 1, Event::Failed, 1).is_limited;
                (0..500).map(decide).filter(|limited| *limited).count()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(limited, 2_000 - 999);
    }
}
