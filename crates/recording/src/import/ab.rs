//! Reader of ApacheBench's report and its tables of percentages and of requests, in milliseconds.

use model::Metric;

use super::{Condition, Document, ForeignRun, Missing, Reader, Reports, whole, words};
use crate::digits;

const TEXT_SHAPE: &str = "ab";
const CSV_SHAPE: &str = "ab -e";
const TABLE_SHAPE: &str = "ab -g";

pub(super) const TEXT: Reader = Reader {
    shape: TEXT_SHAPE,
    reports: Reports::Lines(&[
        "Complete requests:",
        "This is ApacheBench",
        "Server Software:",
    ]),
    recognizes: |document| {
        let has = |text: &str| document.text.contains(text);
        // The page of `ab -w` has the same words in other places.
        has("Complete requests:") && has("Failed requests:") && !has("<table")
    },
    read: text,
};

pub(super) const CSV: Reader = Reader {
    shape: CSV_SHAPE,
    reports: Reports::FirstLine,
    recognizes: |document| document.text.starts_with("Percentage served,Time in ms"),
    read: csv,
};

pub(super) const TABLE: Reader = Reader {
    shape: TABLE_SHAPE,
    reports: Reports::FirstLine,
    recognizes: |document| {
        document
            .text
            .starts_with("starttime\tseconds\tctime\tdtime\tttime\twait")
    },
    read: table,
};

fn text(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let text = document.text;
    let number = |label: &str| words::number_after(text, label);
    let need =
        |label: &str| number(label).ok_or_else(|| Missing(format!("`{label}` has no number")));
    let mut run = ForeignRun::new(TEXT_SHAPE).closed();
    let total: Vec<f64> = words::rest_of(text, "Total:")
        .into_iter()
        .flat_map(str::split_whitespace)
        .filter_map(words::number)
        .collect();
    let quantile = |percent: &str| number(percent);
    run.put_all(
        1e3,
        [
            (Metric::Min, total.first().copied()),
            (Metric::Stdev, total.get(2).copied()),
            (Metric::Max, total.get(4).copied()),
            // There are two such lines, and this reads the first. The second is divided by the connections.
            (Metric::Mean, Some(need("Time per request:")?)),
            (Metric::P50, quantile("50%")),
            (Metric::P75, quantile("75%")),
            (Metric::P90, quantile("90%")),
            (Metric::P95, quantile("95%")),
            (Metric::P99, quantile("99%")),
        ],
    );
    let complete = need("Complete requests:")?;
    let length = kind(text, "Length:");
    // Responses of another length are responses. `ab` counts them as failed, although pages often change.
    let broken = need("Failed requests:")? - length;
    let other_status = number("Non-2xx responses:").unwrap_or(0.0);
    // A failed request may also have another status, so the sum is limited to the number of all requests.
    let failed = (broken + other_status).min(complete);
    run.count(
        whole(complete - failed),
        whole(failed),
        "a status outside of 200 to 299, which ab counts as complete, or no answer",
    );
    if length > 0.0 {
        run.note(format!(
            "{} answers differed in length from the first answer. ab calls them failed, but here \
             they count as answers (run ab with -l)",
            digits::count(whole(length))
        ));
    }
    run.rate_over(Some(need("Time taken for tests:")?));
    conditions(&mut run, text);
    run.note(
        "ab's percentiles are whole milliseconds. Its mean is the run time times connections, \
         divided by requests",
    );
    Ok(vec![run])
}

fn conditions(run: &mut ForeignRun, text: &str) {
    let part = |label: &str| words::rest_of(text, label);
    let target = [
        part("Server Hostname:"),
        part("Server Port:"),
        part("Document Path:"),
    ];
    if let [Some(host), Some(port), Some(path)] = target {
        run.under(Condition::Target, Some(format!("{host}:{port}{path}")));
    }
    // `ab` prints this line only with -k.
    run.under(Condition::Connections, part("Concurrency Level:"));
    run.under(Condition::Length, part("Complete requests:"));
    let is_kept = part("Keep-Alive requests:").is_some();
    run.under(
        Condition::KeepAlive,
        Some(if is_kept { "yes" } else { "no" }),
    );
}

/// A count in the brackets below `Failed requests`.
fn kind(text: &str, label: &str) -> f64 {
    let brackets = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("(Connect:"));
    let count = brackets
        .and_then(|line| line.split_once(label))
        .and_then(|(_, rest)| rest.trim().split([',', ')']).next())
        .and_then(words::number);
    count.unwrap_or(0.0)
}

fn csv(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let rows: Vec<(f64, f64)> = document
        .text
        .lines()
        .filter_map(|line| {
            let (percent, ms) = line.split_once(',')?;
            Some((percent.trim().parse().ok()?, ms.trim().parse().ok()?))
        })
        .collect();
    let at = |percent: f64| {
        // Newer versions round percentages.
        let row = rows.iter().find(|row| (row.0 - percent).abs() < 1e-9);
        row.map(|row| row.1)
    };
    let mut run = ForeignRun::new(CSV_SHAPE).closed();
    run.put_all(
        1e3,
        [
            (Metric::Min, at(0.0)),
            (Metric::P50, at(50.0)),
            (Metric::P75, at(75.0)),
            (Metric::P90, at(90.0)),
            (Metric::P95, at(95.0)),
            (Metric::P99, at(99.0)),
            (Metric::Max, at(100.0)),
        ],
    );
    if run.figures.is_empty() {
        return Err(Missing("it has no rows".to_owned()));
    }
    run.note("the table has no count of failures and no rate");
    Ok(vec![run])
}

/// The table of all requests, with their total times in the fifth column. It is sorted by total time.
fn table(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let times: Vec<f64> = document
        .text
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(4)?.trim().parse().ok())
        .collect();
    if times.is_empty() {
        return Err(Missing("it has no rows".to_owned()));
    }
    let mut run = ForeignRun::new(TABLE_SHAPE).closed();
    run.put_samples(1e3, &times);
    run.note("ab lists whole milliseconds. The list has no count of failures and no rate");
    Ok(vec![run])
}
