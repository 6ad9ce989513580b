//! Counters of all workers. Counting is one addition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};
use telemetry::metrics::{Counts, Scrape};

/// The endpoint of a request, as a label of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Product,
    ProductByPk,
    LineItem,
    LineItemByPk,
    Graphql,
    Other,
}

/// Labels of endpoints, in the order of the enum.
const ENDPOINTS: [&str; 6] = [
    "product",
    "product_by_pk",
    "lineItem",
    "lineItem_by_pk",
    "graphql",
    "other",
];

/// Labels of status classes, in order.
const CLASSES: [&str; 3] = ["2xx", "4xx", "5xx"];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; CLASSES.len()]; ENDPOINTS.len()],
    headers: Vec<(HeaderName, AtomicU64)>,
    statements: AtomicU64,
    statements_failed: AtomicU64,
    refused_busy: AtomicU64,
    rows: AtomicU64,
    database_us: AtomicU64,
}

impl Metrics {
    /// Starts all counters at zero. Requests with one of these headers are counted separately.
    pub(crate) fn new(headers: &[HeaderName]) -> Self {
        let counted = headers.iter().map(|name| (name.clone(), AtomicU64::new(0)));
        Self {
            headers: counted.collect(),
            ..Self::default()
        }
    }

    /// Counts a response.
    pub(crate) fn answered(&self, endpoint: Endpoint, status: StatusCode) {
        let class = match status.as_u16() {
            500.. => 2,
            400.. => 1,
            _ => 0,
        };
        add(&self.requests[endpoint as usize][class], 1);
    }

    /// Counts the configured headers of a request.
    pub(crate) fn headers(&self, headers: &HeaderMap) {
        for (name, count) in &self.headers {
            if headers.contains_key(name) {
                add(count, 1);
            }
        }
    }

    /// Counts a finished statement with its duration and rows.
    pub(crate) fn statement(&self, took: Duration, rows: usize, is_ok: bool) {
        add(&self.statements, 1);
        add(&self.statements_failed, u64::from(!is_ok));
        // A list has at most a few thousand rows, and 2^64 microseconds are 584,000 years.
        add(&self.rows, u64::try_from(rows).unwrap_or(u64::MAX));
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(&self.database_us, us);
    }
}

impl Metrics {
    /// Counts a statement if it found the queue of the database full.
    pub(crate) fn busy(&self, is_busy: bool) {
        if is_busy {
            add(&self.refused_busy, 1);
        }
    }
}

impl Counts for Metrics {
    fn tell(&self, scrape: &mut Scrape<'_>) -> std::fmt::Result {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let requests = ENDPOINTS.iter().zip(&self.requests);
        let requests = requests.flat_map(|(endpoint, classes)| {
            let of = |(class, count): (&&'static str, _)| {
                ([("endpoint", *endpoint), ("status", *class)], read(count))
            };
            CLASSES.iter().zip(classes).map(of)
        });
        let requests: Vec<_> = requests.collect();
        scrape.counters(
            "catalog_requests",
            "Answered requests",
            requests.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        let headers = self.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, count)| ([("header", name.as_str())], read(count)))
            .collect();
        scrape.counters(
            "catalog_header_requests",
            "Requests with this header",
            headers.iter().map(|(labels, count)| (&labels[..], *count)),
        )?;
        for (name, help, count) in [
            (
                "catalog_statements",
                "Statements sent to the database",
                &self.statements,
            ),
            (
                "catalog_statements_failed",
                "Statements that the database did not execute",
                &self.statements_failed,
            ),
            (
                "catalog_statements_refused",
                "Statements refused because too many waited for the database",
                &self.refused_busy,
            ),
            (
                "catalog_rows",
                "Rows that the database returned",
                &self.rows,
            ),
            (
                "catalog_database_us",
                "Time that the database took, in microseconds",
                &self.database_us,
            ),
        ] {
            scrape.counter(name, help, read(count))?;
        }
        Ok(())
    }
}

fn add(counter: &AtomicU64, more: u64) {
    // Relaxed: a scrape may see one counter a little earlier than another.
    counter.fetch_add(more, Ordering::Relaxed);
}
