//! What `/metrics` shows, in the text format of Prometheus.
//!
//! Every worker counts in a shard of its own and a scrape adds the shards up, so that workers do
//! not fight over cache lines. A request costs two readings of the clock and four additions.
//!
//! Absent on purpose: a metrics library; it would cost a look-up by label per request.

mod process;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::identity::Identity;
use crate::reply::{Outcome, Status};

/// Upper bounds of the histogram's buckets: microseconds, and the same in seconds as printed.
const BUCKETS: [(u64, &str); 15] = [
    (25, "0.000025"),
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (1_000_000, "1"),
    (10_000_000, "10"),
];

/// The counts of one worker.
#[derive(Debug, Default)]
pub struct Shard {
    requests: [AtomicU64; Status::ALL.len()],
    with_errors: AtomicU64,
    /// One more than the buckets: what is beyond the last.
    durations: [AtomicU64; BUCKETS.len() + 1],
    duration_sum_ns: AtomicU64,
}

impl Shard {
    /// Counts a response on any path.
    pub fn responded(&self, status: Status) {
        add(&self.requests[status as usize], 1);
    }

    /// Counts the response of a GraphQL request and how long it took since `start`, which is
    /// when its head had been read. Sending the response is not part of it.
    pub fn answered(&self, start: Instant) {
        let took = clock::now().duration_since(start);
        add(&self.durations[bucket_of(took)], 1);
        add(&self.duration_sum_ns, saturating_ns(took));
    }

    /// Counts an outcome that puts `errors` into a response.
    pub fn executed(&self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Data(_)) {
            add(&self.with_errors, 1);
        }
    }
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn saturating_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The first bucket whose bound is not below the duration.
fn bucket_of(duration: Duration) -> usize {
    let ns = saturating_ns(duration);
    BUCKETS
        .iter()
        .position(|(bound_us, _)| ns <= bound_us * 1_000)
        .unwrap_or(BUCKETS.len())
}

/// The shards of all workers.
#[derive(Debug)]
pub struct Metrics {
    identity: Identity,
    shards: Mutex<Vec<Arc<Shard>>>,
}

impl Metrics {
    /// No workers yet.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
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

    /// Everything counted so far, and what the process uses now.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(4096);
        self.write_counts(&mut text)
            .and_then(|()| process::write(&mut text))
            .expect("writing to a string cannot fail");
        text
    }

    fn write_counts(&self, text: &mut String) -> std::fmt::Result {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |pick: &dyn Fn(&Shard) -> &AtomicU64| -> u64 {
            let counts = shards
                .iter()
                .map(|shard| pick(shard).load(Ordering::Relaxed));
            counts.sum()
        };
        describe(text, "graphql_server_info", "gauge", "What runs here.")?;
        let Identity {
            version,
            graphql,
            http,
            ..
        } = self.identity;
        writeln!(
            text,
            "graphql_server_info{{version=\"{version}\",graphql=\"{graphql}\",http=\"{http}\"}} 1"
        )?;
        let name = "http_requests_total";
        describe(text, name, "counter", "Responses on all paths, by status.")?;
        for (place, status) in Status::ALL.into_iter().enumerate() {
            let count = sum(&|shard| &shard.requests[place]);
            writeln!(text, "{name}{{status=\"{}\"}} {count}", status.code())?;
        }
        let name = "graphql_responses_with_errors_total";
        describe(
            text,
            name,
            "counter",
            "GraphQL responses with an `errors` entry.",
        )?;
        writeln!(text, "{name} {}", sum(&|shard| &shard.with_errors))?;
        let name = "graphql_request_duration_seconds";
        let help = "From the head of a request to /graphql to its response.";
        describe(text, name, "histogram", help)?;
        let mut so_far = 0;
        for (place, (_, bound)) in BUCKETS.iter().enumerate() {
            so_far += sum(&|shard| &shard.durations[place]);
            writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {so_far}")?;
        }
        so_far += sum(&|shard| &shard.durations[BUCKETS.len()]);
        writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {so_far}")?;
        let seconds = Duration::from_nanos(sum(&|shard| &shard.duration_sum_ns)).as_secs_f64();
        writeln!(text, "{name}_sum {seconds}")?;
        writeln!(text, "{name}_count {so_far}")
    }
}

/// The two lines before the samples of a metric.
fn describe(text: &mut String, name: &str, kind: &str, help: &str) -> std::fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

#[cfg(test)]
mod tests {
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
        let metrics = Metrics::new(JUNIPER_NTEX);
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
        assert_eq!(bucket_of(us(10_000_000)), BUCKETS.len() - 1);
        assert_eq!(bucket_of(us(10_000_001)), BUCKETS.len());
    }

    #[test]
    fn printed_bounds_are_the_bounds() {
        for (us, printed) in BUCKETS {
            let seconds: f64 = printed.parse().unwrap();
            assert_eq!(Duration::from_secs_f64(seconds), Duration::from_micros(us));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_uses_memory_and_time() {
        let text = Metrics::new(JUNIPER_NTEX).text();
        assert!(sample(&text, "process_resident_memory_bytes") > 1e5);
        assert!(sample(&text, "process_cpu_seconds_total") >= 0.0);
    }
}
