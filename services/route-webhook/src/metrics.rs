//! Counters of all workers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use telemetry::metrics::{Buckets, Counts, Scrape};

use crate::endpoint::Endpoint;

/// Upper bounds of the histogram of durations, in microseconds.
const BOUNDS_US: [f64; 11] = [
    10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 5e3, 2.5e4, 1e5, 1e6,
];

/// Status classes, by their first digit.
const CLASSES: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Responses by endpoint, and by the first digit of their status.
    answers: [[AtomicU64; CLASSES.len()]; Endpoint::ALL.len()],
    /// One more than the bounds, for values above all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    routes_denied: AtomicU64,
}

impl Metrics {
    /// Counts a refused order of routes: the sender, the namespace or a foreign object forbids it.
    pub(crate) fn route_denied(&self) {
        self.routes_denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, endpoint: Endpoint, status: u16, time: Duration) {
        let class = usize::from(status / 100).min(5);
        self.answers[endpoint as usize][class].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us as f64);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }
}

impl Counts for Metrics {
    fn tell(&self, scrape: &mut Scrape<'_>) -> std::fmt::Result {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let answers = Endpoint::ALL.iter().flat_map(|endpoint| {
            let of = move |(class, count): (&&'static str, _)| {
                let labels = [("endpoint", endpoint.name()), ("status", *class)];
                (labels, read(count))
            };
            CLASSES
                .iter()
                .zip(&self.answers[*endpoint as usize])
                .map(of)
        });
        let answers: Vec<_> = answers.filter(|(_, count)| *count > 0).collect();
        scrape.counters(
            "webhook_answers",
            "Answers by endpoint and first digit of their status",
            answers.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        scrape.counter(
            "webhook_routes_denied",
            "Orders of PUT /route refused for their sender, a namespace or an object of another",
            read(&self.routes_denied),
        )?;
        let counts: Vec<u64> = self.buckets.iter().map(read).collect();
        let buckets = Buckets {
            bounds: &BOUNDS_US,
            counts: &counts,
            // Exact up to 2^53 µs, which is 285 years.
            sum: read(&self.sum_us) as f64,
        };
        scrape.histograms(
            "webhook_duration_us",
            "Time from the head of a request to its answer, in microseconds",
            [(&[][..], buckets)],
        )
    }
}
