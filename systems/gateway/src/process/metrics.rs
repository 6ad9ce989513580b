//! What `/metrics` shows, under the names of Apollo Router.
//!
//! Every worker counts in a shard of its own and a scrape adds the shards up, so that workers do
//! not write to the same cache lines. A request costs two readings of the clock and three
//! additions. `telemetry` writes what a scrape sees; labels are looked up only then, never for a
//! request.

pub(crate) mod gathered;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_extensions::{Observer, StageKind};
use operation_cache::CacheStats;

use crate::graphql::demand::Demanded;

/// Upper bounds of the histograms' buckets, in microseconds.
const BUCKETS_US: [u64; 15] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];
/// Most clients that are counted separately by name and version, by all workers together; further
/// ones are counted together. A client may send any name, so without a bound it could fill the memory,
/// here and wherever the metrics are kept.
const CLIENTS_MAX: usize = 500;

/// Durations by bucket.
#[derive(Debug, Default)]
struct Histogram {
    /// One more than the bounds: durations beyond the last.
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Histogram {
    fn add(&self, took: Duration) {
        // 2^64 nanoseconds are 584 years.
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|bound_us| bound_us * 1_000 < ns);
        increment(&self.buckets[bucket], 1);
        increment(&self.sum_ns, ns);
    }
}

fn increment(counter: &AtomicU64, amount: u64) {
    // Relaxed: a scrape may see one counter a little earlier than another, and nothing depends on
    // it.
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The locked maps hold independent counters, which a panic elsewhere leaves valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one worker counts about the calls of one subgraph or of one stage of the coprocessor.
#[derive(Debug, Default)]
struct CallCounts {
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// Requests to a subgraph that were sent again.
    retried: AtomicU64,
    durations: Histogram,
}

impl CallCounts {
    fn add(&self, succeeded: bool, took: Duration) {
        let counter = if succeeded {
            &self.succeeded
        } else {
            &self.failed
        };
        increment(counter, 1);
        self.durations.add(took);
    }
}

/// The stages in the order of [`StageKind`].
const STAGES: [StageKind; 8] = [
    StageKind::RouterRequest,
    StageKind::RouterResponse,
    StageKind::SupergraphRequest,
    StageKind::SupergraphResponse,
    StageKind::ExecutionRequest,
    StageKind::ExecutionResponse,
    StageKind::SubgraphRequest,
    StageKind::SubgraphResponse,
];

/// A client's name and version.
type Client = (String, String);

/// The counts of one worker.
#[derive(Debug)]
pub(crate) struct Shard {
    /// By status, from 100.
    statuses: Vec<AtomicU64>,
    durations: Histogram,
    with_errors: AtomicU64,
    cut: AtomicU64,
    stages: [CallCounts; STAGES.len()],
    subgraphs: Mutex<BTreeMap<String, Arc<CallCounts>>>,
    clients: Mutex<HashMap<Client, u64>>,
    /// The clients that any worker counts separately.
    known_clients: Arc<Mutex<HashSet<Client>>>,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            statuses: (100..600).map(|_| AtomicU64::new(0)).collect(),
            durations: Histogram::default(),
            with_errors: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            stages: Default::default(),
            subgraphs: Mutex::default(),
            clients: Mutex::default(),
            known_clients: Arc::default(),
        }
    }
}

impl Shard {
    /// Counts an answer to a GraphQL request; 499 when the client disconnected before it.
    pub(crate) fn answered(&self, status: u16, took: Duration) {
        // A stage may answer with any status up to 999. Those outside of HTTP's classes have no
        // counter; the durations count them.
        if let Some(counter) = self.statuses.get(usize::from(status).wrapping_sub(100)) {
            increment(counter, 1);
        }
        self.durations.add(took);
    }

    /// Counts an executed request with errors in its answer.
    pub(crate) fn executed_with_errors(&self) {
        increment(&self.with_errors, 1);
    }

    /// Counts an executed request whose response exceeded a limit.
    pub(crate) fn cut(&self) {
        increment(&self.cut, 1);
    }

    /// Counts a request of a client that sent its name.
    pub(crate) fn client(&self, name: Option<String>, version: Option<String>) {
        let client = (name.unwrap_or_default(), version.unwrap_or_default());
        let mut clients = lock(&self.clients);
        if let Some(count) = clients.get_mut(&client) {
            *count += 1;
            return;
        }
        let client = if self.is_known(&client) {
            client
        } else {
            ("(other)".to_owned(), String::new())
        };
        *clients.entry(client).or_default() += 1;
    }

    /// Whether a client is counted separately. Asked by each worker once for a client that is, and each
    /// time for one of the others.
    fn is_known(&self, client: &Client) -> bool {
        let mut known = lock(&self.known_clients);
        if known.len() >= CLIENTS_MAX {
            return known.contains(client);
        }
        known.insert(client.clone());
        true
    }

    /// Counts what the extensions of a worker report of their calls. `subgraphs` are the names in
    /// the order of their indexes.
    pub(crate) fn observer<'a>(
        self: &Arc<Self>,
        subgraphs: impl Iterator<Item = &'a str>,
    ) -> Rc<dyn Observer> {
        // By name, because a reload may number the subgraphs differently and their counts must go
        // on.
        let mut known = lock(&self.subgraphs);
        let subgraphs = subgraphs
            .map(|name| Arc::clone(known.entry(name.to_owned()).or_default()))
            .collect();
        drop(known);
        Rc::new(Counting {
            shard: Arc::clone(self),
            subgraphs,
        })
    }
}

struct Counting {
    shard: Arc<Shard>,
    subgraphs: Vec<Arc<CallCounts>>,
}

impl Observer for Counting {
    fn coprocessor(&self, stage: StageKind, succeeded: bool, took: Duration) {
        let place = STAGES.iter().position(|it| *it == stage);
        let place = place.expect("`STAGES` lists every kind of stage");
        self.shard.stages[place].add(succeeded, took);
    }

    fn subgraph(&self, index: usize, status: Option<u16>, took: Duration) {
        let succeeded = status.is_some_and(|status| (200..300).contains(&status));
        // Generation and observer number the subgraphs alike: one list makes both.
        self.subgraphs[index].add(succeeded, took);
    }

    fn retried(&self, index: usize) {
        increment(&self.subgraphs[index].retried, 1);
    }
}

/// The shards of all workers.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    shards: Mutex<Vec<Arc<Shard>>>,
    known_clients: Arc<Mutex<HashSet<Client>>>,
    planning: Arc<Planning>,
}

/// What the threads that plan count.
#[derive(Debug, Default)]
pub(crate) struct Planning {
    shed: AtomicU64,
    durations: Histogram,
}

impl Planning {
    /// Counts an operation that was turned away.
    pub(crate) fn shed(&self) {
        increment(&self.shed, 1);
    }

    /// Counts work on an operation.
    pub(crate) fn worked(&self, took: Duration) {
        self.durations.add(took);
    }
}

impl Metrics {
    /// A shard for one more worker.
    pub(crate) fn shard(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard {
            known_clients: Arc::clone(&self.known_clients),
            ..Shard::default()
        });
        lock(&self.shards).push(Arc::clone(&shard));
        shard
    }

    /// Where the threads that plan count.
    pub(crate) fn planning(&self) -> Arc<Planning> {
        Arc::clone(&self.planning)
    }
}

/// What a scrape shows in addition to what the workers counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanCache {
    /// Requests whose plan was in the cache.
    pub(crate) hits: u64,
    /// Requests that had to be planned.
    pub(crate) misses: u64,
    /// Plans in the cache.
    pub(crate) entries: u64,
    /// Bytes that they take, roughly.
    pub(crate) bytes: u64,
    /// Operations that wait to be planned.
    pub(crate) queued: u64,
}

/// What came of requests where there is a list of operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    /// Requests.
    pub(crate) requests: u64,
    /// Ids that are not in the list.
    pub(crate) not_found: u64,
    /// Texts that are not in it, and were refused.
    pub(crate) rejected: u64,
    /// Texts that are not in it.
    pub(crate) unknown: u64,
}

/// What became of answers of subgraphs that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) stats: CacheStats,
    /// Answers and entities that were there and that were not, by the name of the subgraph.
    pub(crate) subgraphs: Vec<(String, u64, u64)>,
    /// What a Redis could not be asked for, or given, in time.
    pub(crate) failures: u64,
}

/// The caches that all workers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    /// Of plans.
    pub(crate) plans: PlanCache,
    /// Of the texts of automatic persisted queries, where they are on.
    pub(crate) persisted: Option<CacheStats>,
    /// Of requests for operations of the list, where there is one.
    pub(crate) listed: Option<Listed>,
    /// Of answers of subgraphs, where they are kept.
    pub(crate) answers: Option<Answers>,
    /// Of what operations cost, where that is estimated.
    pub(crate) demanded: Option<Demanded>,
}

#[cfg(test)]
mod tests;
