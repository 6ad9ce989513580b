//! Reader of hey's report and of its list of all requests, in seconds with four decimals.

use model::Metric;

use super::{Document, ForeignRun, Missing, Reader, samples, whole, words};

const SHAPE: &str = "hey";
const CSV_SHAPE: &str = "hey -o csv";
const FAILURES: &str = "a status outside of 200 to 399, or no answer";

pub(super) const TEXT: Reader = Reader {
    shape: SHAPE,
    recognizes: |document| {
        document.text.contains("Slowest:") && document.text.contains("Response time histogram:")
    },
    read: text,
};

pub(super) const CSV: Reader = Reader {
    shape: CSV_SHAPE,
    recognizes: |document| document.text.starts_with("response-time,DNS+dialup,"),
    read: csv,
};

fn text(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let text = document.text;
    let number = |label: &str| words::number_after(text, label);
    // Some versions print the percent sign twice: `50%% in 0.0039 secs`.
    let quantile = |percent: &str| {
        let line = words::rest_of(text, percent)?;
        let line = line.trim_start_matches('%').trim().strip_prefix("in ")?;
        words::number(line.split_whitespace().next()?)
    };
    let mut run = ForeignRun::new(SHAPE).closed();
    run.put_all(
        1e6,
        [
            (Metric::Min, number("Fastest:")),
            (Metric::Mean, number("Average:")),
            (Metric::P50, quantile("50%")),
            (Metric::P75, quantile("75%")),
            (Metric::P90, quantile("90%")),
            (Metric::P95, quantile("95%")),
            (Metric::P99, quantile("99%")),
            (Metric::Max, number("Slowest:")),
        ],
    );
    let mut counts = [0.0, 0.0];
    for line in text.lines().map(str::trim) {
        let Some((bracketed, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        else {
            continue;
        };
        let count = rest.split_whitespace().next();
        if rest.trim_end().ends_with("responses") {
            let is_success = bracketed
                .parse()
                .is_ok_and(|code: u16| (200..400).contains(&code));
            counts[usize::from(!is_success)] += count.and_then(words::number).unwrap_or(0.0);
        } else {
            // The errors are listed as `[count]  message`.
            counts[1] += words::number(bracketed).unwrap_or(0.0);
        }
    }
    run.count(whole(counts[0]), whole(counts[1]), FAILURES);
    let seconds = number("Total:").ok_or_else(|| Missing("`Total:` has no number".to_owned()))?;
    run.rate_over(Some(seconds));
    run.note("hey prints latencies in steps of 0.1 ms and keeps only the first million");
    Ok(vec![run])
}

fn csv(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let places = ["status-code", "offset"].map(|name| samples::column(document.text, name));
    let [Some(status), Some(offset)] = places else {
        return Err(Missing(
            "it has no columns `status-code` and `offset`".to_owned(),
        ));
    };
    let mut times = Vec::new();
    let (mut succeeded, mut last) = (0, 0.0_f64);
    for row in samples::rows(document.text, true) {
        let (number, row) = row?;
        let at = |place: usize| row.get(place)?.parse::<f64>().ok();
        let (Some(time), Some(code), Some(sent)) = (at(0), at(status), at(offset)) else {
            return Err(Missing(format!("row {number} does not have three numbers")));
        };
        times.push(time);
        succeeded += u64::from((200.0..400.0).contains(&code));
        // The list does not contain the length of the run, so the end of the last response is used.
        last = last.max(sent + time);
    }
    if times.is_empty() {
        return Err(Missing("it has no rows".to_owned()));
    }
    let mut run = ForeignRun::new(CSV_SHAPE).closed();
    run.put_samples(1e6, &times);
    run.count(succeeded, times.len() as u64 - succeeded, FAILURES);
    run.rate_over(Some(last));
    run.note("hey's list omits requests without an answer");
    run.note("hey lists latencies in steps of 0.1 ms, and only the first million");
    Ok(vec![run])
}
