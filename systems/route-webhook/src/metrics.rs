//! Counters of all workers, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::exchange::Endpoint;

/// Upper bounds of the histogram of durations, in microseconds.
const BOUNDS_US: [u64; 11] = [
    10, 25, 50, 100, 250, 500, 1_000, 5_000, 25_000, 100_000, 1_000_000,
];

/// What happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by endpoint, and by the first digit of their status.
    answers: [[AtomicU64; 6]; Endpoint::ALL.len()],
    /// One more than the bounds, for what is above all of them.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Metrics {
    pub(crate) fn answered(&self, endpoint: Endpoint, status: u16, time: Duration) {
        let class = usize::from(status / 100).min(5);
        self.answers[endpoint as usize][class].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Everything, for `GET /metrics`.
    pub(crate) fn text(&self) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::from(
            "# HELP webhook_answers_total answers by endpoint and first digit of their status\n\
             # TYPE webhook_answers_total counter\n",
        );
        // Writing to a `String` cannot fail.
        let mut line = |line: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(line);
        };
        for endpoint in Endpoint::ALL {
            for (class, counter) in self.answers[endpoint as usize].iter().enumerate() {
                let count = read(counter);
                if count > 0 {
                    let name = endpoint.name();
                    line(format_args!(
                        "webhook_answers_total{{endpoint=\"{name}\",status=\"{class}xx\"}} {count}\n"
                    ));
                }
            }
        }
        line(format_args!(
            "# HELP webhook_duration_us time from the head of a request to its answer, in microseconds\n\
             # TYPE webhook_duration_us histogram\n"
        ));
        let mut sum = 0;
        for (place, bucket) in self.buckets.iter().enumerate() {
            sum += read(bucket);
            let bound = BOUNDS_US.get(place);
            let bound = bound.map_or("+Inf".to_owned(), u64::to_string);
            line(format_args!(
                "webhook_duration_us_bucket{{le=\"{bound}\"}} {sum}\n"
            ));
        }
        line(format_args!(
            "webhook_duration_us_sum {}\nwebhook_duration_us_count {sum}\n",
            read(&self.sum_us)
        ));
        text
    }
}
