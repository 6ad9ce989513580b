//! The metrics of `/metrics`, under the names of Apollo Router.
//!
//! Each worker counts in a shard of its own, and a scrape adds up all shards. So workers do not write to the
//! same cache lines. A request costs two readings of the clock and three additions. `telemetry` writes the
//! text of a scrape. Labels are looked up only then, never during a request.

pub(crate) mod gathered;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_extensions::{Observer, StageKind};
use gateway_telemetry::{InstrumentHead, Series};
use operation_cache::CacheStats;

use crate::graphql::cost_limit::CostCounts;

/// Upper bounds of the histograms' buckets, in microseconds.
const BUCKETS_US: [u64; 15] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];
/// Maximum number of clients that are counted separately by name and version, for all workers together. All
/// further clients are counted together. A client may send any name. Without this limit it could fill the
/// memory, here and in the metrics storage.
const CLIENTS_MAX: usize = 500;

/// A histogram of durations.
#[derive(Debug, Default)]
struct Histogram {
    /// One bucket more than `BUCKETS_US`, for longer durations.
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
    // Relaxed: a scrape may see one counter earlier than another. No other data depends on the counters.
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The locked maps contain independent counters. A panic elsewhere leaves them valid.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One worker's counts of calls to one subgraph or to one stage of the coprocessor.
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
    /// Responses by status. The first entry is status 100.
    statuses: Vec<AtomicU64>,
    durations: Histogram,
    with_errors: AtomicU64,
    cut: AtomicU64,
    stages: [CallCounts; STAGES.len()],
    subgraphs: Mutex<BTreeMap<String, Arc<CallCounts>>>,
    clients: Mutex<HashMap<Client, u64>>,
    /// Clients that any worker counts separately.
    known_clients: Arc<Mutex<HashSet<Client>>>,
    /// The instruments of `telemetry.instrumentation`, by name.
    instruments: Mutex<BTreeMap<Arc<str>, Arc<Series>>>,
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
            instruments: Mutex::default(),
        }
    }
}

impl Shard {
    /// Counts a response to a GraphQL request. Status 499 means that the client disconnected before it.
    pub(crate) fn answered(&self, status: u16, took: Duration) {
        // A stage may return any status up to 999. A status outside of HTTP's classes has no counter, but its
        // duration is counted.
        if let Some(counter) = self.statuses.get(usize::from(status).wrapping_sub(100)) {
            increment(counter, 1);
        }
        self.durations.add(took);
    }

    /// Counts an executed request with errors in its response.
    pub(crate) fn executed_with_errors(&self) {
        increment(&self.with_errors, 1);
    }

    /// Counts an executed request with data missing because of a limit.
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

    /// True if this client is counted separately. Each worker calls it once for such a client, and each time
    /// for any other client.
    fn is_known(&self, client: &Client) -> bool {
        let mut known = lock(&self.known_clients);
        if known.len() >= CLIENTS_MAX {
            return known.contains(client);
        }
        known.insert(client.clone());
        true
    }

    /// The series of an instrument. An unchanged instrument continues its series after a reload.
    fn series(&self, head: &Arc<InstrumentHead>) -> Arc<Series> {
        let mut instruments = lock(&self.instruments);
        if let Some(known) = instruments.get(&head.name)
            && known.head() == head
        {
            return Arc::clone(known);
        }
        let series = Arc::new(Series::new(Arc::clone(head)));
        instruments.insert(Arc::clone(&head.name), Arc::clone(&series));
        series
    }

    /// Counts the calls that the extensions of a worker report. `subgraphs` contains the names in the order
    /// of their indexes.
    pub(crate) fn observer<'a>(
        self: &Arc<Self>,
        subgraphs: impl Iterator<Item = &'a str>,
    ) -> Rc<dyn Observer> {
        // Looked up by name, because a reload may change the numbers of the subgraphs, and their counts must
        // continue.
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
        // Generation and observer use equal numbers, because both are built from one list.
        self.subgraphs[index].add(succeeded, took);
    }

    fn retried(&self, index: usize) {
        increment(&self.subgraphs[index].retried, 1);
    }

    fn series(&self, instrument: &Arc<InstrumentHead>) -> Arc<Series> {
        self.shard.series(instrument)
    }
}

/// The shards of all workers.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    shards: Mutex<Vec<Arc<Shard>>>,
    known_clients: Arc<Mutex<HashSet<Client>>>,
    planning: Arc<Planning>,
}

/// The counters of the planning threads.
#[derive(Debug, Default)]
pub(crate) struct Planning {
    shed: AtomicU64,
    durations: Histogram,
}

impl Planning {
    /// Counts an operation that was rejected because of overload.
    pub(crate) fn shed(&self) {
        increment(&self.shed, 1);
    }

    /// Counts the time of work on an operation.
    pub(crate) fn worked(&self, took: Duration) {
        self.durations.add(took);
    }
}

impl Metrics {
    /// Creates a shard for one more worker.
    pub(crate) fn shard(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard {
            known_clients: Arc::clone(&self.known_clients),
            ..Shard::default()
        });
        lock(&self.shards).push(Arc::clone(&shard));
        shard
    }

    /// The counters of the planning threads.
    pub(crate) fn planning(&self) -> Arc<Planning> {
        Arc::clone(&self.planning)
    }
}

/// The values of the plan cache for a scrape.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanCache {
    /// Number of requests with a cached plan.
    pub(crate) hits: u64,
    /// Number of requests that needed planning.
    pub(crate) misses: u64,
    /// Number of plans in the cache.
    pub(crate) entries: u64,
    /// Approximate memory use of the cache in bytes.
    pub(crate) bytes: u64,
    /// Number of operations that wait for planning.
    pub(crate) queued: u64,
}

/// Results of requests if there is an operation list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    /// Number of requests.
    pub(crate) requests: u64,
    /// Requests with an id that is not in the list.
    pub(crate) not_found: u64,
    /// Requests that were rejected because their text is not in the list.
    pub(crate) rejected: u64,
    /// Requests with a text that is not in the list.
    pub(crate) unknown: u64,
}

/// The values of the cache of subgraph responses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) stats: CacheStats,
    /// Hits and misses of responses and entities, by the name of the subgraph.
    pub(crate) subgraphs: Vec<(String, u64, u64)>,
    /// Lookups and writes that failed because Redis did not respond in time.
    pub(crate) failures: u64,
}

/// The caches that all workers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caches {
    /// The cache of query plans.
    pub(crate) plans: PlanCache,
    /// The cache of automatic persisted queries. `None` if they are off.
    pub(crate) persisted: Option<CacheStats>,
    /// Requests for listed operations. `None` without a list.
    pub(crate) listed: Option<Listed>,
    /// The cache of subgraph responses. `None` if it is off.
    pub(crate) answers: Option<Answers>,
    /// Estimated and actual costs of operations. `None` if costs are not estimated.
    pub(crate) cost_counts: Option<CostCounts>,
}

#[cfg(test)]
mod tests;
