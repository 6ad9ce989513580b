//! Counters of all workers, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::rule::Decision;

/// Upper bounds of the histogram of store latency, in microseconds.
const BOUNDS_US: [u64; 12] = [
    10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000,
];

/// What happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Labels of decisions: which store is asked, and by which rule.
    made_by: String,
    passed: AtomicU64,
    limited: AtomicU64,
    bans: AtomicU64,
    invalid: AtomicU64,
    store_failures: AtomicU64,
    by_policy: AtomicU64,
    requests: AtomicU64,
    /// One more than the bounds, for what is above all of them.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    store_us: AtomicU64,
}

impl Metrics {
    /// Nothing has happened yet.
    pub(crate) fn of(store: &str, rule: &str) -> Self {
        Self {
            made_by: format!("store=\"{store}\",rule=\"{rule}\""),
            ..Self::default()
        }
    }

    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// The input of a decision was no address or no e-mail.
    pub(crate) fn invalid(&self) {
        self.invalid.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn decided(&self, decision: Decision) {
        let counter = if decision.is_limited {
            &self.limited
        } else {
            &self.passed
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if decision.starts_ban {
            self.bans.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The store did not decide, so the policy did.
    pub(crate) fn store_failed(&self) {
        self.store_failures.fetch_add(1, Ordering::Relaxed);
        self.by_policy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn store_took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.store_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Everything, for `GET /metrics`.
    pub(crate) fn text(&self) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let mut line = |line: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(line);
        };
        let counters = [
            ("requests_total", "HTTP requests", &self.requests),
            ("bans_total", "bans that were started", &self.bans),
            (
                "invalid_total",
                "decisions refused for their address or e-mail",
                &self.invalid,
            ),
            (
                "store_failures_total",
                "decisions that the store did not make",
                &self.store_failures,
            ),
            (
                "policy_decisions_total",
                "decisions made by the policy for a failed store",
                &self.by_policy,
            ),
        ];
        for (name, help, counter) in counters {
            line(format_args!(
                "# HELP ratelimiter_{name} {help}\n# TYPE ratelimiter_{name} counter\nratelimiter_{name} {}\n",
                read(counter)
            ));
        }
        line(format_args!(
            "# HELP ratelimiter_decisions_total answers by result, with the store asked and its rule\n# TYPE ratelimiter_decisions_total counter\n"
        ));
        for (result, counter) in [("passed", &self.passed), ("limited", &self.limited)] {
            line(format_args!(
                "ratelimiter_decisions_total{{result=\"{result}\",{}}} {}\n",
                self.made_by,
                read(counter)
            ));
        }
        line(format_args!(
            "# HELP ratelimiter_store_latency_us time that the store took, in microseconds\n# TYPE ratelimiter_store_latency_us histogram\n"
        ));
        let mut sum = 0;
        for (place, bucket) in self.buckets.iter().enumerate() {
            sum += read(bucket);
            let bound = BOUNDS_US
                .get(place)
                .map_or("+Inf".to_owned(), u64::to_string);
            line(format_args!(
                "ratelimiter_store_latency_us_bucket{{le=\"{bound}\"}} {sum}\n"
            ));
        }
        line(format_args!(
            "ratelimiter_store_latency_us_sum {}\nratelimiter_store_latency_us_count {sum}\n",
            read(&self.store_us)
        ));
        text
    }
}
