//! Reader of vegeta's report as text, whose durations have units.

use model::Metric;

use super::{Document, ForeignRun, Missing, Reader, Reports, whole, words};

const TEXT_SHAPE: &str = "vegeta report";

pub(super) const TEXT: Reader = Reader {
    shape: TEXT_SHAPE,
    reports: Reports::Lines(&["Latencies ", "Requests "]),
    recognizes: |document| {
        document.text.contains("Latencies ") && document.text.contains("Success ")
    },
    read: text,
};

fn text(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let latencies = row(document.text, "Latencies")?;
    let latency = |name: &str| value(&latencies, name).and_then(words::time_us);
    let mut run = ForeignRun::new(TEXT_SHAPE);
    run.put_all(
        1.0,
        [
            (Metric::Min, latency("min")),
            (Metric::Mean, latency("mean")),
            (Metric::P50, latency("50")),
            (Metric::P90, latency("90")),
            (Metric::P95, latency("95")),
            (Metric::P99, latency("99")),
            (Metric::Max, latency("max")),
        ],
    );
    if run.figures.is_empty() {
        return Err(Missing("the row `Latencies` has no durations".to_owned()));
    }
    let requests = row(document.text, "Requests")?;
    let count = |name: &str| value(&requests, name).and_then(words::number);
    let sent =
        count("total").ok_or_else(|| Missing("the row `Requests` has no total".to_owned()))?;
    run.offered_per_s = count("rate");
    let codes = row(document.text, "Status Codes")?;
    let succeeded: u64 = codes
        .1
        .iter()
        .flat_map(|part| part.split_whitespace())
        .filter_map(|part| {
            let (code, count) = part.split_once(':')?;
            let is_success = (200..400).contains(&code.parse::<u16>().ok()?);
            is_success.then(|| count.parse::<u64>().ok()).flatten()
        })
        .sum();
    run.count(succeeded, whole(sent).saturating_sub(succeeded), FAILURES);
    let duration = row(document.text, "Duration")?;
    let seconds = value(&duration, "total").and_then(words::time_us);
    run.rate_over(seconds.map(|us| us / 1e6));
    notes(&mut run);
    Ok(vec![run])
}

pub(super) const FAILURES: &str = "a status outside of 200 to 399, or no answer";

fn notes(run: &mut ForeignRun) {
    run.note(ESTIMATES);
    run.note(CLOCK);
}

pub(super) const ESTIMATES: &str = "vegeta's percentiles are estimates of a t-digest";

pub(super) const CLOCK: &str = "vegeta counts latency from the actual send. If all workers are \
                                busy, the schedule slips unseen";

/// The names in the brackets of a row, and the values after them.
type Row<'a> = (Vec<&'a str>, Vec<&'a str>);

fn row<'a>(text: &'a str, label: &str) -> Result<Row<'a>, Missing> {
    let parts = words::rest_of(text, label)
        .and_then(|rest| rest.split_once('['))
        .and_then(|(_, rest)| rest.split_once(']'));
    let (names, values) = parts.ok_or_else(|| Missing(format!("it has no row `{label}`")))?;
    let split = |list: &'a str| list.split(',').map(str::trim).collect();
    Ok((split(names), split(values)))
}

fn value<'a>(row: &Row<'a>, name: &str) -> Option<&'a str> {
    let index = row.0.iter().position(|found| *found == name)?;
    row.1.get(index).copied()
}
