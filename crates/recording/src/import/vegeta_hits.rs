//! Reader of vegeta's hits, one per line, in the form of `vegeta encode`. The quantiles are exact.

use jiff::Timestamp;
use serde::Deserialize;

use super::vegeta::{CLOCK, FAILURES};
use super::{Document, ForeignRun, Missing, Reader, samples};

const JSON_SHAPE: &str = "vegeta encode";
const CSV_SHAPE: &str = "vegeta encode -to=csv";

pub(super) const JSON: Reader = Reader {
    shape: JSON_SHAPE,
    recognizes: |document| {
        let first = document.text.lines().next().unwrap_or_default();
        serde_json::from_str::<Line>(first).is_ok()
    },
    read: json,
};

pub(super) const CSV: Reader = Reader {
    shape: CSV_SHAPE,
    recognizes: |document| {
        let first = document.text.lines().next().unwrap_or_default();
        samples::rows(first, false)
            .next()
            .is_some_and(|row| row.is_ok_and(|(_, row)| of_csv(&row).is_some()))
    },
    read: csv,
};

#[derive(Deserialize)]
struct Line {
    seq: u64,
    code: u16,
    timestamp: String,
    /// Latency in nanoseconds.
    latency: f64,
    #[serde(default)]
    error: String,
}

/// One request of vegeta.
struct Hit {
    code: u16,
    at_ns: i128,
    latency_ns: f64,
    error: String,
}

fn json(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let hit = |(index, text): (usize, &str)| {
        let line: Line = serde_json::from_str(text)
            .map_err(|error| Missing(format!("line {} is broken: {error}", index + 1)))?;
        let at: Timestamp = line.timestamp.parse().map_err(|_| {
            Missing(format!(
                "hit {} has no time, found `{}`",
                line.seq, line.timestamp
            ))
        })?;
        Ok(Hit {
            code: line.code,
            at_ns: at.as_nanosecond(),
            latency_ns: line.latency,
            error: line.error,
        })
    };
    let lines = document.text.lines().enumerate();
    let hits: Result<Vec<Hit>, Missing> = lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(hit)
        .collect();
    run(JSON_SHAPE, &hits?)
}

fn csv(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let hit = |row: Result<(usize, csv::StringRecord), Missing>| {
        let (number, row) = row?;
        of_csv(&row).ok_or_else(|| Missing(format!("row {number} is not a hit")))
    };
    let hits: Result<Vec<Hit>, Missing> = samples::rows(document.text, false).map(hit).collect();
    run(CSV_SHAPE, &hits?)
}

/// Parses a row. Time, status and latency come first. The error is the sixth column of eleven or more.
fn of_csv(row: &csv::StringRecord) -> Option<Hit> {
    let time = row.get(0)?;
    // Nanoseconds since 1970 have 19 digits. No other table begins with such a number.
    if time.len() != 19 || row.len() < 11 {
        return None;
    }
    Some(Hit {
        code: row.get(1)?.parse().ok()?,
        at_ns: time.parse().ok()?,
        latency_ns: row.get(2)?.parse().ok()?,
        error: row.get(5)?.to_owned(),
    })
}

fn run(shape: &'static str, hits: &[Hit]) -> Result<Vec<ForeignRun>, Missing> {
    let latencies: Vec<f64> = hits.iter().map(|hit| hit.latency_ns).collect();
    let (Some(first), Some(last)) = (
        hits.iter().map(|hit| hit.at_ns).min(),
        hits.iter().map(end_ns).max(),
    ) else {
        return Err(Missing("it has no hits".to_owned()));
    };
    let mut run = ForeignRun::new(shape);
    run.put_samples(1e-3, &latencies);
    let succeeded = hits.iter().filter(|hit| (200..400).contains(&hit.code));
    let succeeded = succeeded.count() as u64;
    run.count(succeeded, hits.len() as u64 - succeeded, FAILURES);
    run.rate_over(Some(seconds(last - first)));
    if let Some(hit) = hits.iter().find(|hit| !hit.error.is_empty()) {
        run.note(format!("vegeta's first error: {}", hit.error));
    }
    run.note(CLOCK);
    Ok(vec![run])
}

fn end_ns(hit: &Hit) -> i128 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole nanoseconds, far below 2^63"
    )]
    let latency = hit.latency_ns as i128;
    hit.at_ns + latency
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the length of a run stays far below 2^53 ns"
)]
fn seconds(ns: i128) -> f64 {
    ns as f64 / 1e9
}
