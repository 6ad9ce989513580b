//! Outcomes by the text of GraphQL operations: a bounded cache.
//!
//! A repeated query costs one hash of its text and one read lock.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Longest query text that is kept. Longer ones are made each time.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// How a cache has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Operations found ready.
    pub hits: u64,
    /// Operations that had to be prepared.
    pub misses: u64,
    /// Operations kept now.
    pub entries: usize,
}

/// Outcomes by query and operation name.
#[derive(Debug)]
pub struct OperationCache<T> {
    entries_max: usize,
    kept: RwLock<Kept<T>>,
    hasher: DefaultHashBuilder,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Entries in a ring: when it is full, a hand goes round and replaces the first entry that
/// was not used since the hand last passed.
#[derive(Debug)]
struct Kept<T> {
    ring: Vec<Entry<T>>,
    by_text: HashTable<usize>,
    hand: usize,
}

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    query: Box<str>,
    operation_name: Option<Box<str>>,
    outcome: T,
    used: AtomicBool,
}

impl<T> Entry<T> {
    fn is_for(&self, query: &str, operation_name: Option<&str>) -> bool {
        *self.query == *query && self.operation_name.as_deref() == operation_name
    }
}

impl<T: Clone> OperationCache<T> {
    /// An empty cache of at most so many outcomes; at least one.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self {
            entries_max: entries_max.max(1),
            kept: RwLock::new(Kept {
                ring: Vec::new(),
                by_text: HashTable::new(),
                hand: 0,
            }),
            hasher: DefaultHashBuilder::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The outcome if it is kept.
    pub fn get(&self, query: &str, operation_name: Option<&str>) -> Option<T> {
        let hash = self.hash(query, operation_name);
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        // The hash finds candidates; the text decides, so that a collision cannot return another
        // operation.
        let index = kept.by_text.find(hash, |index| {
            kept.ring[*index].is_for(query, operation_name)
        })?;
        let entry = &kept.ring[*index];
        // A write that changes nothing would still take the line from the other workers.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(entry.outcome.clone())
    }

    /// The outcome, made when it is not kept. `make` says with it whether it may be kept.
    pub fn get_or_make(
        &self,
        query: &str,
        operation_name: Option<&str>,
        make: impl FnOnce() -> (T, bool),
    ) -> T {
        if let Some(outcome) = self.get(query, operation_name) {
            return outcome;
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        // Outside of the lock: making an outcome takes milliseconds, and two requests that make the
        // same one only waste work.
        let (outcome, may_be_kept) = make();
        if may_be_kept && query.len() <= TEXT_BYTES_MAX {
            self.keep(query, operation_name, &outcome);
        }
        outcome
    }

    /// What the cache has done so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: kept.ring.len(),
        }
    }

    fn hash(&self, query: &str, operation_name: Option<&str>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        query.hash(&mut hasher);
        operation_name.hash(&mut hasher);
        hasher.finish()
    }

    fn keep(&self, query: &str, operation_name: Option<&str>, outcome: &T) {
        let hash = self.hash(query, operation_name);
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        let ring = &kept.ring;
        // Another request may have kept it between `get` and this lock.
        let known = kept
            .by_text
            .find(hash, |index| ring[*index].is_for(query, operation_name));
        if known.is_some() {
            return;
        }
        let entry = Entry {
            hash,
            query: query.into(),
            operation_name: operation_name.map(Into::into),
            outcome: outcome.clone(),
            // An operation that is sent only once is the first to go.
            used: AtomicBool::new(false),
        };
        let index = if kept.ring.len() < self.entries_max {
            kept.ring.push(entry);
            kept.ring.len() - 1
        } else {
            let index = kept.make_room();
            kept.ring[index] = entry;
            index
        };
        let ring = &kept.ring;
        // The table stores positions, so it needs the hashes again when it grows.
        kept.by_text
            .insert_unique(hash, index, |index| ring[*index].hash);
    }
}

impl<T> Kept<T> {
    /// Forgets one entry and says which.
    fn make_room(&mut self) -> usize {
        // Ends within two rounds: each pass clears the marks that let an entry stay.
        loop {
            let index = self.hand;
            self.hand = (self.hand + 1) % self.ring.len();
            let entry = &self.ring[index];
            if entry.used.swap(false, Ordering::Relaxed) {
                continue;
            }
            // The caller reuses the slot, so the old text must not lead to it any more.
            let found = self.by_text.find_entry(entry.hash, |known| *known == index);
            found
                .expect("every entry of the ring is in the table")
                .remove();
            return index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(outcome: u32) -> impl FnOnce() -> (u32, bool) {
        move || (outcome, true)
    }

    #[test]
    fn the_same_text_and_name_are_made_once() {
        let cache = OperationCache::new(8);
        assert_eq!(cache.get_or_make("{ a }", None, make(1)), 1);
        assert_eq!(cache.get_or_make("{ a }", None, make(2)), 1);
        assert_eq!(cache.get_or_make("{ a }", Some("a"), make(3)), 3);
        let stats = CacheStats {
            hits: 1,
            misses: 2,
            entries: 2,
        };
        assert_eq!(cache.stats(), stats);
    }

    #[test]
    fn what_was_used_outlives_what_was_not() {
        let cache = OperationCache::new(2);
        cache.get_or_make("used", None, make(1));
        cache.get_or_make("idle", None, make(2));
        assert_eq!(cache.get("used", None), Some(1));
        cache.get_or_make("new", None, make(3));
        assert_eq!(cache.get("used", None), Some(1));
        assert_eq!(cache.get("idle", None), None);
        assert_eq!(cache.get("new", None), Some(3));
        assert_eq!(cache.stats().entries, 2);
    }

    #[test]
    fn what_may_not_be_kept_or_is_too_long_is_made_again() {
        let cache = OperationCache::new(2);
        cache.get_or_make("{ a }", None, || (1, false));
        assert_eq!(cache.get("{ a }", None), None);
        let long = "a".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(cache.get_or_make(&long, None, make(4)), 4);
        assert_eq!(cache.get(&long, None), None);
    }
}
