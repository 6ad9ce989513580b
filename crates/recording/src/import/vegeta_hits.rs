//! Reader of vegeta's hits, one per line, in the form of `vegeta encode`. The quantiles are exact.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;

use super::samples::{Hit, Hits};
use super::vegeta::{CLOCK, FAILURES};
use super::{Document, ForeignRun, Missing, Reader, Reports, samples};

const JSON_SHAPE: &str = "vegeta encode";
const CSV_SHAPE: &str = "vegeta encode -to=csv";

pub(super) const JSON: Reader = Reader {
    shape: JSON_SHAPE,
    reports: Reports::One,
    recognizes: |document| {
        let first = document.text.lines().next().unwrap_or_default();
        serde_json::from_str::<Line>(first).is_ok()
    },
    read: json,
};

pub(super) const CSV: Reader = Reader {
    shape: CSV_SHAPE,
    reports: Reports::One,
    recognizes: |document| {
        let first = document.text.lines().next().unwrap_or_default();
        samples::rows(first, false, b',')
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
    #[serde(default)]
    method: String,
    #[serde(default)]
    url: String,
}

/// One request of vegeta.
struct Sent {
    /// Number of the request in its attack.
    seq: u64,
    /// Method and URL. Empty in results of old versions.
    name: String,
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
        Ok(Sent {
            seq: line.seq,
            name: named(&line.method, &line.url),
            code: line.code,
            at_ns: at.as_nanosecond(),
            latency_ns: line.latency,
            error: line.error,
        })
    };
    let lines = document.text.lines().enumerate();
    let hits: Result<Vec<Sent>, Missing> = lines
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
    let hits: Result<Vec<Sent>, Missing> =
        samples::rows(document.text, false, b',').map(hit).collect();
    run(CSV_SHAPE, &hits?)
}

/// Parses a row. Time, status and latency come first. The error is the sixth column of eleven or more.
fn of_csv(row: &csv::StringRecord) -> Option<Sent> {
    let time = row.get(0)?;
    // Nanoseconds since 1970 have 19 digits. No other table begins with such a number.
    if time.len() != 19 || row.len() < 11 {
        return None;
    }
    Some(Sent {
        seq: row.get(8)?.parse().ok()?,
        name: named(row.get(9)?, row.get(10)?),
        code: row.get(1)?.parse().ok()?,
        at_ns: time.parse().ok()?,
        latency_ns: row.get(2)?.parse().ok()?,
        error: row.get(5)?.to_owned(),
    })
}

fn named(method: &str, url: &str) -> String {
    format!("{method} {url}").trim().to_owned()
}

/// The runs in a list. A number that an attack has twice begins another attack, which someone appended.
fn run(shape: &'static str, sent: &[Sent]) -> Result<Vec<ForeignRun>, Missing> {
    let mut runs: Vec<&[Sent]> = Vec::new();
    let (mut seen, mut from) = (BTreeSet::new(), 0);
    for (index, one) in sent.iter().enumerate() {
        if !seen.insert(one.seq) {
            runs.push(&sent[from..index]);
            seen = BTreeSet::from([one.seq]);
            from = index;
        }
    }
    runs.push(&sent[from..]);
    let times = |run: &[Sent]| {
        let first = run.iter().map(|one| one.at_ns).min();
        first.zip(run.iter().map(|one| one.at_ns).max())
    };
    let overlap = |pair: &[&[Sent]]| match (times(pair[0]), times(pair[1])) {
        (Some(one), Some(other)) => one.0 <= other.1 && other.0 <= one.1,
        _ => false,
    };
    // Equal copies of one run have equal times and are no mixture.
    let is_copy = |pair: &[&[Sent]]| times(pair[0]) == times(pair[1]);
    if runs.windows(2).any(|pair| overlap(pair) && !is_copy(pair)) {
        return Err(Missing(
            "it mixes the hits of several attacks. Give each attack its own file".to_owned(),
        ));
    }
    runs.into_iter().map(|sent| of_one(shape, sent)).collect()
}

fn of_one(shape: &'static str, sent: &[Sent]) -> Result<ForeignRun, Missing> {
    let Some(first) = sent.iter().map(|one| one.at_ns).min() else {
        return Err(Missing("it has no hits".to_owned()));
    };
    let mut hits = Hits::default();
    for one in sent {
        hits.add(&Hit {
            name: &one.name,
            // A difference from the first is exact, and nanoseconds since 1970 are not.
            sent_us: Some(microseconds(one.at_ns - first)),
            latency_us: one.latency_ns / 1e3,
            is_success: Some((200..400).contains(&one.code)),
            is_repeat: false,
        });
    }
    let mut run = hits.run(shape, FAILURES)?;
    if let Some(one) = sent.iter().find(|one| !one.error.is_empty()) {
        run.note(format!("vegeta's first error: {}", one.error));
    }
    run.note(CLOCK);
    Ok(run)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the length of a run stays far below 2^53 ns"
)]
fn microseconds(ns: i128) -> f64 {
    ns as f64 / 1e3
}
