//! Reader of HdrHistogram's percentile table. Sources are `weigh`, wrk2's spectrum, the plotter's input, and
//! vegeta's `hdrplot`.
//!
//! Only vegeta names the unit. The printers of HdrHistogram write numbers in the unit of their caller, so the
//! user can name it. Without the user's unit, a table is read in milliseconds, as `weigh` and wrk2 write it.

use model::Metric;

use super::{Document, ForeignRun, Missing, Reader, Reports};

const TABLE_SHAPE: &str = "HdrHistogram's percentile table";
const HDRPLOT_SHAPE: &str = "vegeta report -type=hdrplot";

pub(super) const TABLE: Reader = Reader {
    shape: TABLE_SHAPE,
    reports: TABLES,
    recognizes: |document| header(document.text).is_some(),
    read: |document| read(document, TABLE_SHAPE),
};

pub(super) const HDRPLOT: Reader = Reader {
    shape: HDRPLOT_SHAPE,
    reports: TABLES,
    recognizes: |document| header(document.text).is_some_and(|line| line.contains("Value(ms)")),
    read: |document| read(document, HDRPLOT_SHAPE),
};

/// Each table begins with its header.
const TABLES: Reports = Reports::Lines(&["Value"]);

fn header(text: &str) -> Option<&str> {
    text.lines().find(|line| {
        line.contains("Value") && line.contains("Percentile") && line.contains("TotalCount")
    })
}

fn read(document: &Document<'_>, shape: &'static str) -> Result<Vec<ForeignRun>, Missing> {
    let mut run = ForeignRun::new(shape);
    run.is_unit_open = shape == TABLE_SHAPE;
    let unit_us = document.unit_us.filter(|_| run.is_unit_open).unwrap_or(1e3);
    let rows = rows(document.text);
    let Some(last) = rows.last() else {
        return Err(Missing("the table has no rows".to_owned()));
    };
    let ladder = [
        (Metric::P50, 0.5),
        (Metric::P75, 0.75),
        (Metric::P90, 0.9),
        (Metric::P95, 0.95),
        (Metric::P99, 0.99),
        (Metric::P999, 0.999),
    ];
    for (metric, share) in ladder {
        // The first row that reaches the share is used, so that the value is never too low.
        let row = rows.iter().find(|row| row.1 >= share - 1e-9);
        run.put(metric, row.map(|row| row.0 * unit_us));
    }
    run.put(Metric::Max, Some(last.0 * unit_us));
    if let Some((mean, deviation)) = summary(document.text, "#[Mean") {
        run.put(Metric::Mean, Some(mean * unit_us));
        run.put(Metric::Stdev, Some(deviation * unit_us));
    }
    if run.is_unit_open && document.unit_us.is_none() {
        run.note("the table names no unit and is read in milliseconds. If it has another unit, name it with `--unit us`, `s` or `ns`");
    }
    run.note("percentiles come from the table's rows, rounded up to the next row");
    run.note("the table has no count of failures and no rate");
    Ok(vec![run])
}

/// Value and share of the requests, one pair per line.
fn rows(text: &str) -> Vec<(f64, f64)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let value = words.next()?.parse().ok()?;
        let share = words.next()?.parse().ok()?;
        // A third column is required, because other files also have pairs of numbers.
        words.next()?.parse::<f64>().ok()?;
        Some((value, share))
    };
    // On request, wrk2 prints a second, uncorrected table. This reads the first one.
    let lines = text.lines().skip_while(|line| header(line).is_none());
    lines
        .skip(1)
        .take_while(|line| header(line).is_none())
        .filter_map(row)
        .collect()
}

/// Parses `#[Mean    =        3.390, StdDeviation   =        1.680]`.
fn summary(text: &str, label: &str) -> Option<(f64, f64)> {
    let line = text.lines().find(|line| line.starts_with(label))?;
    let mut numbers = line
        .split('=')
        .skip(1)
        .filter_map(|part| part.trim().split([',', ']']).next()?.trim().parse().ok());
    Some((numbers.next()?, numbers.next()?))
}
