//! Tools in C: siege, h2load and scripts of wrk.

use model::Metric;
use serde_json::Value;

use super::super::table::{Answered, Counts, Fields, Pace, find, labels, number, text};
use super::super::{ForeignRun, Reports, whole, words};

use Metric::{Max, Mean, Min, P50, P75, P90, P95, P99, P999, Requests, Stdev};

pub(in crate::import) const SIEGE: Fields = Fields {
    shape: "siege",
    marks: &["transactions", "availability", "elapsed_time"],
    unit_us: Some(1e6),
    figures: &[
        (Min, "shortest_transaction|Shortest transaction"),
        (Mean, "response_time|Response time"),
        (Max, "longest_transaction|Longest transaction"),
    ],
    counts: Counts::Sums(
        &["successful_transactions|Successful transactions"],
        &["failed_transactions|Failed transactions"],
    ),
    failures: "a status of 400 or more, or no answer",
    rate: Pace::Over("elapsed_time|Elapsed time", 1.0),
    is_closed_loop: true,
    more: |_, run| {
        // A time of 0.00 s is below siege's resolution and not a latency of zero.
        run.figures
            .retain(|metric, values| *metric == Requests || values[0] > 0.0);
        if !run.figures.contains_key(&Mean) {
            run.note("its mean is 0.00 s. siege rounds to 10 ms, so the mean is unknown");
        }
    },
    notes: &["siege rounds times to 10 ms and has no percentiles"],
    ..Fields::NONE
};

pub(in crate::import) const SIEGE_TEXT: Fields = Fields {
    reports: Reports::Lines(&["Transactions:"]),
    words: &["Transactions:", "Availability:", "Elapsed time:"],
    marks: &[],
    tree: labels,
    ..SIEGE
};

pub(in crate::import) const H2LOAD: Fields = Fields {
    shape: "h2load",
    reports: Reports::Lines(&["finished in ", "starting benchmark..."]),
    words: &["finished in ", "time for request:"],
    tree: labels,
    latencies: "time for request",
    figures: &[
        (Min, "min"),
        (Mean, "mean"),
        (Stdev, "sd"),
        (P50, "median"),
        (P95, "p95"),
        (P99, "p99"),
        (Max, "max"),
    ],
    is_closed_loop: true,
    more: of_h2load,
    ..Fields::NONE
};

/// Reads the sentences of h2load, which have no labels: `finished in 52ms`, `1000 total, … 1000 succeeded`.
fn of_h2load(tree: &Value, run: &mut ForeignRun) {
    let list = text(tree, "requests").unwrap_or_default();
    let count = |name: &str| {
        list.split(',')
            .find_map(|part| words::number(part.trim().strip_suffix(name)?.trim()))
    };
    if let (Some(succeeded), Some(failed)) = (count("succeeded"), count("failed")) {
        run.count(
            whole(succeeded),
            whole(failed),
            "a status of 400 or more, or no answer",
        );
    }
    run.rate_over(number(tree, "finished_us").map(|us| us / 1e6));
    if let Some(protocol) = text(tree, "Application protocol") {
        run.note(format!("the protocol was {protocol}"));
    }
    if !run.figures.contains_key(&P99) {
        run.note("h2load has no percentiles. Its --log-file has every request, which is not read");
    }
}

/// JSON that a script of wrk or wrk2 writes. Only some scripts name the unit of latencies.
pub(in crate::import) const WRK_SCRIPT: Fields = Fields {
    shape: "JSON of a script of wrk",
    marks: &[
        "duration_in_microseconds",
        "requests",
        "latency_distribution/0/latency_in_microseconds",
    ],
    figures: &[
        (
            P50,
            "latency_distribution/[percentile=50]/latency_in_microseconds",
        ),
        (
            P75,
            "latency_distribution/[percentile=75]/latency_in_microseconds",
        ),
        (
            P90,
            "latency_distribution/[percentile=90]/latency_in_microseconds",
        ),
        (
            P95,
            "latency_distribution/[percentile=95]/latency_in_microseconds",
        ),
        (
            P99,
            "latency_distribution/[percentile=99]/latency_in_microseconds",
        ),
        (
            P999,
            "latency_distribution/[percentile=99.9]/latency_in_microseconds",
        ),
    ],
    counts: Counts::By(of_wrk),
    more: |tree, run| {
        run.rate_of_count(
            number(tree, "requests"),
            number(tree, "duration_in_microseconds"),
        )
    },
    ..Fields::NONE
};

pub(in crate::import) const WRK_SCRIPT_WITHOUT_UNIT: Fields = Fields {
    marks: &["duration_in_microseconds", "requests", "latency"],
    latencies: "latency",
    unit_us: None,
    figures: &[
        (Min, "min"),
        (Mean, "mean|avg"),
        (Stdev, "stdev|stddev"),
        (P50, "p50|50|median"),
        (P75, "p75|75"),
        (P90, "p90|90"),
        (P95, "p95|95"),
        (P99, "p99|99"),
        (P999, "p999|p99.9|p99_9|99.9"),
        (Max, "max"),
    ],
    ..WRK_SCRIPT
};

/// Counts of wrk's errors. A script that leaves out the errors of statuses does not know the failures.
fn of_wrk(tree: &Value) -> Option<Answered> {
    let errors = find(tree, "errors")?;
    let answers = whole(number(tree, "requests")?);
    let status = whole(number(errors, "status")?);
    let broken = ["connect", "read", "write", "timeout"];
    let broken = broken
        .iter()
        .filter_map(|kind| number(errors, kind))
        .map(whole)
        .sum::<u64>();
    Some(Answered {
        succeeded: answers.saturating_sub(status),
        failed: status + broken,
    })
}
