//! Caches outcomes by the text of GraphQL operations, with limits for entries and bytes.
//!
//! A repeated query costs one hash of its text and one read lock.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Longest query text that is cached. The outcomes of longer texts are created each time.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Longest operation name, and longest variant, that is cached.
const NAME_BYTES_MAX: usize = 1024;

/// Limits of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of outcomes. 0 counts as 1.
    pub entries: usize,
    /// Maximum bytes of texts, names and outcomes in total. An outcome that alone is larger is not cached.
    pub bytes: usize,
}

/// Counters of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Operations found in the cache.
    pub hits: u64,
    /// Operations that were not in the cache.
    pub misses: u64,
    /// Current number of entries.
    pub entries: usize,
    /// Approximate bytes of the entries.
    pub bytes: usize,
}

/// The key of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key<'a> {
    /// The text of the document.
    pub query: &'a str,
    /// The name of the operation in the document.
    pub operation_name: Option<&'a str>,
    /// Other inputs of the outcome. Usually empty.
    pub variant: &'a str,
}

impl<'a> Key<'a> {
    /// The key of an outcome without other inputs.
    #[must_use]
    pub fn new(query: &'a str, operation_name: Option<&'a str>) -> Self {
        Key {
            query,
            operation_name,
            variant: "",
        }
    }

    fn bytes(&self) -> usize {
        self.query.len() + self.operation_name.map_or(0, str::len) + self.variant.len()
    }

    fn is_short(&self) -> bool {
        self.query.len() <= TEXT_BYTES_MAX
            && self.operation_name.map_or(0, str::len) <= NAME_BYTES_MAX
            && self.variant.len() <= NAME_BYTES_MAX
    }
}

/// Decides if an outcome may be cached. `bytes` is its approximate size without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The outcome is not cached.
    No,
    /// The outcome is cached until its place is needed.
    Yes {
        /// Approximate size of the outcome.
        bytes: usize,
    },
    /// The outcome is cached until its place is needed, and at most for `time`.
    For {
        /// Approximate size of the outcome.
        bytes: usize,
        /// Time after which it must be created again.
        time: Duration,
    },
}

/// A cache of outcomes by query, operation name and variant.
#[derive(Debug)]
pub struct OperationCache<T> {
    bounds: Bounds,
    kept: RwLock<Kept<T>>,
    hasher: DefaultHashBuilder,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Entries in a ring. If there is no room, a hand moves around the ring and removes entries that were not
/// used since its last visit.
#[derive(Debug)]
struct Kept<T> {
    ring: Vec<Option<Entry<T>>>,
    /// Positions of the ring without an entry.
    free: Vec<usize>,
    by_text: HashTable<usize>,
    hand: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    query: Box<str>,
    operation_name: Option<Box<str>>,
    variant: Box<str>,
    outcome: T,
    bytes: usize,
    until: Option<Instant>,
    used: AtomicBool,
}

impl<T> Entry<T> {
    fn is_for(&self, key: Key<'_>) -> bool {
        *self.query == *key.query
            && self.operation_name.as_deref() == key.operation_name
            && *self.variant == *key.variant
    }

    /// True if the entry has expired. Reads the clock only for entries with a time limit.
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= now())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
fn now() -> Instant {
    Instant::now()
}

impl<T: Clone> OperationCache<T> {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds: Bounds {
                entries: bounds.entries.max(1),
                ..bounds
            },
            kept: RwLock::new(Kept {
                ring: Vec::new(),
                free: Vec::new(),
                by_text: HashTable::new(),
                hand: 0,
                bytes: 0,
            }),
            hasher: DefaultHashBuilder::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The cached outcome, if there is one.
    pub fn get(&self, key: Key<'_>) -> Option<T> {
        let hash = self.hasher.hash_one(key);
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let entry = kept.entry(kept.find(hash, key)?);
        if entry.is_over() {
            return None;
        }
        // Even a write of the same value would take the cache line from other workers.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(entry.outcome.clone())
    }

    /// The outcome. If it is not cached, `make` creates it and decides if it may be cached.
    pub fn get_or_make(&self, key: Key<'_>, make: impl FnOnce() -> (T, Keep)) -> T {
        let made = self.get_or_try_make(key, || Ok::<_, std::convert::Infallible>(make()));
        made.unwrap_or_else(|never| match never {})
    }

    /// The outcome. If it is not cached, `make` creates it.
    ///
    /// # Errors
    /// The errors of `make`, which are not cached.
    pub fn get_or_try_make<E>(
        &self,
        key: Key<'_>,
        make: impl FnOnce() -> Result<(T, Keep), E>,
    ) -> Result<T, E> {
        if let Some(outcome) = self.get(key) {
            return Ok(outcome);
        }
        // Without the lock: creating an outcome takes milliseconds. If two requests create the same outcome,
        // they only waste work.
        let (outcome, keep) = make()?;
        self.misses.fetch_add(1, Ordering::Relaxed);
        let (bytes, time) = match keep {
            Keep::No => return Ok(outcome),
            Keep::Yes { bytes } => (bytes, None),
            Keep::For { bytes, time } => (bytes, Some(time)),
        };
        let bytes = bytes
            .saturating_add(key.bytes())
            .saturating_add(size_of::<Entry<T>>());
        if key.is_short() && bytes <= self.bounds.bytes {
            let entry = Entry {
                hash: self.hasher.hash_one(key),
                query: key.query.into(),
                operation_name: key.operation_name.map(Into::into),
                variant: key.variant.into(),
                outcome: outcome.clone(),
                bytes,
                until: time.and_then(|time| now().checked_add(time)),
                // Not marked as used, so that an operation that is sent only once is removed first.
                used: AtomicBool::new(false),
            };
            self.keep(key, entry);
        }
        Ok(outcome)
    }

    /// Counters since the start, and the current size.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: kept.by_text.len(),
            bytes: kept.bytes,
        }
    }

    fn keep(&self, key: Key<'_>, entry: Entry<T>) {
        // Dropped after the lock is released, because a large plan takes long to drop and all workers would
        // wait.
        let mut removed = Vec::new();
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have cached it between `get` and this lock.
        if let Some(known) = kept.find(entry.hash, key) {
            if !kept.entry(known).is_over() {
                return;
            }
            removed.push(kept.remove(known));
        }
        let bytes_max = self.bounds.bytes - entry.bytes;
        while kept.by_text.len() >= self.bounds.entries || kept.bytes > bytes_max {
            let index = kept.least_used();
            removed.push(kept.remove(index));
        }
        kept.insert(entry);
        drop(kept);
    }
}

impl<T> Kept<T> {
    fn entry(&self, index: usize) -> &Entry<T> {
        self.ring[index]
            .as_ref()
            .expect("the table holds only places with an entry")
    }

    fn find(&self, hash: u64, key: Key<'_>) -> Option<usize> {
        // The hash finds candidates, and the text decides. A collision cannot return another operation.
        let found = self
            .by_text
            .find(hash, |index| self.entry(*index).is_for(key));
        found.copied()
    }

    fn insert(&mut self, entry: Entry<T>) {
        let hash = entry.hash;
        self.bytes += entry.bytes;
        let index = self.free.pop().unwrap_or_else(|| {
            self.ring.push(None);
            self.ring.len() - 1
        });
        self.ring[index] = Some(entry);
        let ring = &self.ring;
        // The table stores positions, so it needs the hashes again when it grows.
        self.by_text.insert_unique(hash, index, |index| {
            ring[*index].as_ref().map_or(0, |entry| entry.hash)
        });
    }

    /// The entry to remove. The ring must not be empty.
    fn least_used(&mut self) -> usize {
        // Ends within two rounds: each pass clears the marks that let an entry stay.
        loop {
            let index = self.hand;
            self.hand = (self.hand + 1) % self.ring.len();
            if let Some(entry) = &self.ring[index]
                && !entry.used.swap(false, Ordering::Relaxed)
            {
                return index;
            }
        }
    }

    fn remove(&mut self, index: usize) -> Option<Entry<T>> {
        let entry = self.ring[index].take()?;
        // The position will be used again, so the old text must no longer lead to it.
        let found = self.by_text.find_entry(entry.hash, |known| *known == index);
        found
            .expect("every entry of the ring is in the table")
            .remove();
        self.free.push(index);
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
