//! The metrics of `/metrics`.
//!
//! Every worker counts in its own shard, and a scrape adds up the shards. So workers never write to the same
//! cache lines. A request costs two readings of the clock and four additions. `telemetry` writes the values
//! of a scrape. Labels are looked up only during a scrape, never for a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chassis::ConnectionTable;
use telemetry::metrics::{Buckets, Counts, Scrape};

use crate::clock;
use crate::identity::Identity;
use crate::reply::{Outcome, Status};

/// Upper bounds of the histogram's buckets, in microseconds.
const BUCKETS_US: [u64; 15] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 10_000_000,
];

/// The counters of one worker.
#[derive(Debug, Default)]
pub struct Shard {
    requests: [AtomicU64; Status::ALL.len()],
    with_errors: AtomicU64,
    /// One bucket more than bounds, for durations beyond the last bound.
    durations: [AtomicU64; BUCKETS_US.len() + 1],
    duration_sum_ns: AtomicU64,
}

impl Shard {
    /// Counts a response on any path.
    pub fn responded(&self, status: Status) {
        add(&self.requests[status as usize], 1);
    }

    /// Counts the response of a GraphQL request, and the time since `start`, when its head had been read. The
    /// time to send the response is not included.
    pub fn answered(&self, start: Instant) {
        let took = clock::now().duration_since(start);
        add(&self.durations[bucket_of(took)], 1);
        add(&self.duration_sum_ns, saturating_ns(took));
    }

    /// Counts an outcome if its response contains `errors`.
    pub fn executed(&self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Data(_)) {
            add(&self.with_errors, 1);
        }
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    // Relaxed: a scrape may read one counter a little earlier than another.
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn saturating_ns(duration: Duration) -> u64 {
    // 2^64 nanoseconds are 584 years.
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The first bucket with a bound of at least the duration.
fn bucket_of(duration: Duration) -> usize {
    let ns = saturating_ns(duration);
    // The bounds are multiplied, because a division would truncate the duration: 25.9 µs would count as 25.
    BUCKETS_US.partition_point(|bound_us| bound_us * 1_000 < ns)
}

/// The shards of all workers, and the connections.
#[derive(Debug)]
pub struct Metrics {
    identity: Identity,
    connections: Arc<ConnectionTable>,
    shards: Mutex<Vec<Arc<Shard>>>,
}

impl Metrics {
    /// Creates metrics without workers.
    #[must_use]
    pub fn new(identity: Identity, connections: Arc<ConnectionTable>) -> Self {
        Self {
            identity,
            connections,
            shards: Mutex::default(),
        }
    }

    /// A shard for one more worker.
    #[must_use]
    pub fn shard(&self) -> Arc<Shard> {
        let shard = Arc::new(Shard::default());
        let mut shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        shards.push(Arc::clone(&shard));
        shard
    }

    /// All counters, and the current resource usage of the process.
    #[must_use]
    pub fn text(self: &Arc<Self>) -> String {
        telemetry::metrics::text(Arc::clone(self))
    }
}

impl Counts for Metrics {
    fn tell(&self, scrape: &mut Scrape<'_>) -> std::fmt::Result {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |pick: &dyn Fn(&Shard) -> &AtomicU64| -> u64 {
            let counts = shards
                .iter()
                .map(|shard| pick(shard).load(Ordering::Relaxed));
            counts.sum()
        };
        let labels = [
            ("version", self.identity.version),
            ("graphql", self.identity.graphql),
            ("http", self.identity.http),
        ];
        scrape.gauge("graphql_server_info", "What runs here", (&labels, 1))?;
        let codes = Status::ALL.map(|status| status.code().to_string());
        let statuses: Vec<_> = codes
            .iter()
            .map(|code| [("status", code.as_str())])
            .collect();
        let samples = statuses.iter().enumerate().map(|(place, labels)| {
            let count = sum(&|shard| &shard.requests[place]);
            (&labels[..], count)
        });
        scrape.counters(
            "http_requests",
            "Responses on all paths, by status",
            samples,
        )?;
        scrape.counter(
            "graphql_responses_with_errors",
            "GraphQL responses with an `errors` entry",
            sum(&|shard| &shard.with_errors),
        )?;
        // Prometheus requires seconds. Whole microseconds compare exactly while counting.
        let bounds = BUCKETS_US.map(|us| Duration::from_micros(us).as_secs_f64());
        let counts: [u64; BUCKETS_US.len() + 1] =
            std::array::from_fn(|place| sum(&|shard| &shard.durations[place]));
        let buckets = Buckets {
            bounds: &bounds,
            counts: &counts,
            sum: Duration::from_nanos(sum(&|shard| &shard.duration_sum_ns)).as_secs_f64(),
        };
        scrape.histograms(
            "graphql_request_duration_seconds",
            "From the head of a request to /graphql to its response",
            [(&[][..], buckets)],
        )?;
        self.connections.tell(scrape)
    }
}

#[cfg(test)]
mod tests {
    use chassis::Most;

    use super::*;
    use crate::identity::JUNIPER_NTEX;

    fn sample(text: &str, name: &str) -> f64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
            .parse()
            .unwrap()
    }

    #[test]
    fn a_scrape_adds_up_all_workers() {
        let connections = ConnectionTable::new(Most::new(Some(9), None, 1.0));
        let metrics = Arc::new(Metrics::new(JUNIPER_NTEX, connections));
        for shard in [metrics.shard(), metrics.shard()] {
            shard.responded(Status::Ok);
            shard.executed(&Outcome::Refused(Vec::new()));
            shard.executed(&Outcome::Data(Vec::new()));
            shard.answered(clock::now());
        }
        let text = metrics.text();
        assert_eq!(sample(&text, "http_requests_total{status=\"200\"}"), 2.0);
        assert_eq!(sample(&text, "http_requests_total{status=\"404\"}"), 0.0);
        assert_eq!(sample(&text, "graphql_responses_with_errors_total"), 2.0);
        assert_eq!(sample(&text, "graphql_request_duration_seconds_count"), 2.0);
    }

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let us = Duration::from_micros;
        assert_eq!(bucket_of(Duration::ZERO), 0);
        assert_eq!(bucket_of(us(25)), 0);
        assert_eq!(bucket_of(us(25) + Duration::from_nanos(1)), 1);
        assert_eq!(bucket_of(us(10_000_000)), BUCKETS_US.len() - 1);
        assert_eq!(bucket_of(us(10_000_001)), BUCKETS_US.len());
    }
}
