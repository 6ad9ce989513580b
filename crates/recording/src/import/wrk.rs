//! Reader of wrk's and wrk2's reports, which contain times with units.
//!
//! wrk edits its own latencies after the run. It fills in samples that it did not measure. wrk2 keeps latency
//! from the planned send, and discards its first ten seconds.

use model::Metric;

use super::{Condition, Document, ForeignRun, Missing, Reader, Reports, whole, words};
use crate::digits;

pub(super) const TEXT: Reader = Reader {
    shape: "wrk, wrk2",
    reports: Reports::Lines(&["Requests/sec:", "Running ", "Thread Stats"]),
    recognizes: |document| {
        document.text.contains("Thread Stats") && document.text.contains("Requests/sec:")
    },
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let text = document.text;
    // Only wrk2 calibrates its threads and prints a spectrum.
    let is_wrk2 = text.contains("Thread calibration") || text.contains("HdrHistogram");
    let mut run = if is_wrk2 {
        ForeignRun::new("wrk2")
    } else {
        ForeignRun::new("wrk").closed()
    };
    // The first such line is the row of averages. `Latency Distribution` comes after it.
    let latency: Vec<&str> = words::rest_of(text, "Latency ")
        .into_iter()
        .flat_map(str::split_whitespace)
        .collect();
    let column = |index: usize| latency.get(index).and_then(|word| words::time_us(word));
    let mean = column(0).ok_or_else(|| Missing("the row `Latency` has no average".to_owned()))?;
    run.put_all(
        1.0,
        [
            (Metric::Mean, Some(mean)),
            (Metric::Stdev, column(1)),
            (Metric::Max, column(2)),
        ],
    );
    for (metric, share) in [
        (Metric::P50, 50.0),
        (Metric::P75, 75.0),
        (Metric::P90, 90.0),
        (Metric::P95, 95.0),
        (Metric::P99, 99.0),
        (Metric::P999, 99.9),
    ] {
        run.put(metric, quantile(text, share));
    }
    conditions(&mut run, text);
    counts(&mut run, text)?;
    notes(&mut run, is_wrk2);
    Ok(vec![run])
}

/// Parses `Running 3s test @ URL` and `1 threads and 10 connections`.
fn conditions(run: &mut ForeignRun, text: &str) {
    if let Some((length, url)) =
        words::rest_of(text, "Running ").and_then(|rest| rest.split_once(" test @ "))
    {
        run.subject = Some(url.trim().to_owned());
        run.under(Condition::Target, Some(url.trim()));
        run.under(Condition::Length, Some(length.trim()));
    }
    let counts = text.lines().find_map(|line| {
        let (threads, rest) = line.trim().split_once(" threads and ")?;
        Some((threads, rest.strip_suffix(" connections")?))
    });
    run.under(Condition::Threads, counts.map(|(threads, _)| threads));
    run.under(
        Condition::Connections,
        counts.map(|(_, connections)| connections),
    );
}

/// Parses `N requests in T, M read`, the lines of errors, and the rate.
fn counts(run: &mut ForeignRun, text: &str) -> Result<(), Missing> {
    let line = text
        .lines()
        .find_map(|line| line.split_once(" requests in "));
    let (answers, rest) = line.ok_or_else(|| Missing("it has no `requests in`".to_owned()))?;
    let answers = words::number(answers)
        .ok_or_else(|| Missing("`requests in` has no count before it".to_owned()))?;
    let other_status = words::number_after(text, "Non-2xx or 3xx responses:").unwrap_or(0.0);
    let broken: f64 = words::rest_of(text, "Socket errors:")
        .into_iter()
        .flat_map(|list| list.split(','))
        .filter_map(|part| words::number(part.split_whitespace().last()?))
        .sum();
    run.count(
        whole(answers - other_status),
        whole(other_status + broken),
        "a status outside of 200 to 399, or a socket error or timeout",
    );
    let us = rest.split(',').next().and_then(words::time_us);
    run.rate_over(us.map(|us| us / 1e6));
    Ok(())
}

/// Parses `     50%    3.13ms` or `  50.000%    3.13ms`, only in the first list. On request, wrk2 prints a
/// second, uncorrected list.
fn quantile(text: &str, share: f64) -> Option<f64> {
    text.lines().find_map(|line| {
        let (percent, rest) = line.trim().split_once('%')?;
        let percent: f64 = percent.parse().ok()?;
        ((percent - share).abs() < 1e-9)
            .then(|| words::time_us(rest))
            .flatten()
    })
}

fn notes(run: &mut ForeignRun, is_wrk2: bool) {
    if is_wrk2 {
        run.note(format!(
            "wrk2 discards its first 10 s as calibration, so its latencies come from fewer than the \
             {} counted requests",
            digits::count(run.succeeded.unwrap_or(0) + run.failed.unwrap_or(0))
        ));
    } else {
        run.note("wrk fills in latencies that it did not measure before it computes percentiles");
        if !run.figures.contains_key(&Metric::P99) {
            run.note("it has no percentiles. Run wrk with --latency");
        }
    }
}
