//! Prepared operations by text: a bounded cache in front of the work.
//!
//! A repeated query costs one hash of its text and one read lock. Refusals are kept, too,
//! so that a client in a loop cannot buy a validation with every request.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::{GraphqlError, errors_body};
use crate::limits::Limits;
use crate::prepare;
use crate::prepared::Prepared;
use crate::supergraph::Supergraph;

/// Longest query text that is kept. Longer ones are prepared each time.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// How operations are checked and how many are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationOptions {
    /// Whether `__schema` and `__type` are answered (`supergraph.introspection`).
    pub introspection: bool,
    /// Whether introspection that nests lists of fields is refused
    /// (`limits.introspection_max_depth`).
    pub introspection_max_depth: bool,
    /// Bounds on what is asked for.
    pub limits: Limits,
    /// How many operations are kept ready; at least one.
    pub cached_plans: usize,
}

impl Default for OperationOptions {
    fn default() -> Self {
        OperationOptions {
            introspection: false,
            introspection_max_depth: true,
            limits: Limits::default(),
            cached_plans: 512,
        }
    }
}

/// Why an operation is not executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// One or more; codes are in their extensions.
    pub errors: Vec<GraphqlError>,
    /// Whether the fault is the gateway's (status 500), not the client's (status 400).
    pub internal: bool,
}

impl Refusal {
    pub(crate) fn from_errors(errors: Vec<GraphqlError>) -> Refusal {
        Refusal {
            errors,
            internal: false,
        }
    }

    pub(crate) fn from_error(error: GraphqlError) -> Refusal {
        Refusal::from_errors(vec![error])
    }

    pub(crate) fn invalid(message: &str) -> Refusal {
        Refusal::from_error(GraphqlError::new(message, "GRAPHQL_VALIDATION_FAILED"))
    }

    pub(crate) fn internal(message: &str) -> Refusal {
        Refusal {
            errors: vec![GraphqlError::new(message, "QUERY_PLANNING_FAILED")],
            internal: true,
        }
    }

    /// The response: `{"errors":[…]}`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        errors_body(&self.errors)
    }
}

/// How the cache has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Operations found ready.
    pub hits: u64,
    /// Operations that had to be prepared.
    pub misses: u64,
    /// Operations kept now.
    pub entries: usize,
}

type Outcome = Result<Arc<Prepared>, Arc<Refusal>>;

/// The operations of one supergraph under one configuration.
#[derive(Debug)]
pub struct Operations {
    supergraph: Arc<Supergraph>,
    options: OperationOptions,
    cache: RwLock<Cache>,
    hasher: DefaultHashBuilder,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Entries in a ring: when it is full, a hand goes round and replaces the first entry that
/// was not used since the hand last passed.
#[derive(Debug, Default)]
struct Cache {
    ring: Vec<Entry>,
    by_text: HashTable<usize>,
    hand: usize,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    query: Box<str>,
    operation_name: Option<Box<str>>,
    outcome: Outcome,
    used: AtomicBool,
}

impl Entry {
    fn is_for(&self, query: &str, operation_name: Option<&str>) -> bool {
        *self.query == *query && self.operation_name.as_deref() == operation_name
    }
}

impl Operations {
    /// No operation is ready at first.
    #[must_use]
    pub fn new(supergraph: Arc<Supergraph>, options: OperationOptions) -> Operations {
        Operations {
            supergraph,
            options,
            cache: RwLock::default(),
            hasher: DefaultHashBuilder::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// The supergraph that operations are prepared for.
    #[must_use]
    pub fn supergraph(&self) -> &Arc<Supergraph> {
        &self.supergraph
    }

    /// The operation if it is ready, or its refusal. Never parses.
    pub fn cached(&self, query: &str, operation_name: Option<&str>) -> Option<Outcome> {
        let hash = self.hash(query, operation_name);
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let index = cache.by_text.find(hash, |index| {
            cache.ring[*index].is_for(query, operation_name)
        })?;
        let entry = &cache.ring[*index];
        // A write that changes nothing would still take the line from the other workers.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(entry.outcome.clone())
    }

    /// The operation, made ready if it is not yet. May take milliseconds then, on a thread
    /// of its own that the caller waits for.
    ///
    /// # Errors
    /// With what the client is told, when the text is not an operation that can be
    /// executed.
    pub fn prepare(&self, query: &str, operation_name: Option<&str>) -> Outcome {
        if let Some(outcome) = self.cached(query, operation_name) {
            return outcome;
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let outcome = prepare::prepare(&self.supergraph, query, operation_name, &self.options)
            .map(Arc::new)
            .map_err(Arc::new);
        // An internal failure may be one of the moment, such as the deadline.
        let lasting = outcome
            .as_ref()
            .err()
            .is_none_or(|refusal| !refusal.internal);
        if lasting && query.len() <= TEXT_BYTES_MAX {
            self.keep(query, operation_name, &outcome);
        }
        outcome
    }

    /// What the cache has done so far.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            entries: cache.ring.len(),
        }
    }

    fn hash(&self, query: &str, operation_name: Option<&str>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        query.hash(&mut hasher);
        operation_name.hash(&mut hasher);
        hasher.finish()
    }

    fn keep(&self, query: &str, operation_name: Option<&str>, outcome: &Outcome) {
        let hash = self.hash(query, operation_name);
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let cache = &mut *cache;
        let ring = &cache.ring;
        let known = cache
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
            used: AtomicBool::new(false),
        };
        let index = if cache.ring.len() < self.options.cached_plans.max(1) {
            cache.ring.push(entry);
            cache.ring.len() - 1
        } else {
            let index = cache.make_room();
            cache.ring[index] = entry;
            index
        };
        let ring = &cache.ring;
        cache
            .by_text
            .insert_unique(hash, index, |index| ring[*index].hash);
    }
}

impl Cache {
    /// Forgets one entry and says which.
    fn make_room(&mut self) -> usize {
        loop {
            let index = self.hand;
            self.hand = (self.hand + 1) % self.ring.len();
            let entry = &self.ring[index];
            if entry.used.swap(false, Ordering::Relaxed) {
                continue;
            }
            if let Ok(found) = self.by_text.find_entry(entry.hash, |it| *it == index) {
                found.remove();
            }
            return index;
        }
    }
}
