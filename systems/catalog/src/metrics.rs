//! Counters of all workers, in the text format of Prometheus. Counting is one addition.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName};

/// What requests ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Product,
    ProductByPk,
    LineItem,
    LineItemByPk,
    Graphql,
    Other,
}

/// Names of endpoints, in their order.
const ENDPOINTS: [&str; 6] = [
    "product",
    "product_by_pk",
    "lineItem",
    "lineItem_by_pk",
    "graphql",
    "other",
];

/// Names of classes of statuses, in their order.
const CLASSES: [&str; 3] = ["2xx", "4xx", "5xx"];

/// What happened since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; CLASSES.len()]; ENDPOINTS.len()],
    headers: Vec<(HeaderName, AtomicU64)>,
    statements: AtomicU64,
    statements_failed: AtomicU64,
    rows: AtomicU64,
    database_us: AtomicU64,
}

impl Metrics {
    /// Counts from zero, and requests that have one of these headers apart.
    pub(crate) fn new(headers: &[HeaderName]) -> Self {
        let counted = headers.iter().map(|name| (name.clone(), AtomicU64::new(0)));
        Self {
            headers: counted.collect(),
            ..Self::default()
        }
    }

    /// A request has its answer.
    pub(crate) fn answered(&self, endpoint: Endpoint, status: StatusCode) {
        let class = match status.as_u16() {
            500.. => 2,
            400.. => 1,
            _ => 0,
        };
        add(&self.requests[endpoint as usize][class], 1);
    }

    /// The headers of a request.
    pub(crate) fn headers(&self, headers: &HeaderMap) {
        for (name, count) in &self.headers {
            if headers.contains_key(name) {
                add(count, 1);
            }
        }
    }

    /// A statement is done.
    pub(crate) fn statement(&self, took: Duration, rows: usize, is_ok: bool) {
        add(&self.statements, 1);
        add(&self.statements_failed, u64::from(!is_ok));
        add(&self.rows, u64::try_from(rows).unwrap_or(u64::MAX));
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(&self.database_us, us);
    }

    /// Everything, for `GET /metrics`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let mut line = |line: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(line);
        };
        let (name, help) = ("catalog_requests_total", "answered requests");
        line(format_args!(
            "# HELP {name} {help}\n# TYPE {name} counter\n"
        ));
        for (endpoint, classes) in ENDPOINTS.iter().zip(&self.requests) {
            for (class, count) in CLASSES.iter().zip(classes) {
                let count = count.load(Ordering::Relaxed);
                line(format_args!(
                    "{name}{{endpoint=\"{endpoint}\",status=\"{class}\"}} {count}\n"
                ));
            }
        }
        let (name, help) = ("catalog_header_requests_total", "requests with this header");
        line(format_args!(
            "# HELP {name} {help}\n# TYPE {name} counter\n"
        ));
        for (header, count) in &self.headers {
            let count = count.load(Ordering::Relaxed);
            line(format_args!("{name}{{header=\"{header}\"}} {count}\n"));
        }
        let counters = [
            (
                "statements_total",
                "statements sent to the database",
                &self.statements,
            ),
            (
                "statements_failed_total",
                "statements that the database did not do",
                &self.statements_failed,
            ),
            ("rows_total", "rows that the database gave", &self.rows),
            (
                "database_us_total",
                "time that the database took, in microseconds",
                &self.database_us,
            ),
        ];
        for (name, help, count) in counters {
            let count = count.load(Ordering::Relaxed);
            line(format_args!(
                "# HELP catalog_{name} {help}\n# TYPE catalog_{name} counter\ncatalog_{name} {count}\n"
            ));
        }
        text
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}
