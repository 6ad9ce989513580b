//! Reader of bombardier's text.
//!
//! bombardier's standard deviations are wrong (each distinct value is summed once and divided by the number
//! of requests), so they are left out.

use model::Metric;

use super::{Condition, Document, ForeignRun, Missing, Reader, Reports, whole, words};

const TEXT_SHAPE: &str = "bombardier";

pub(super) const TEXT: Reader = Reader {
    shape: TEXT_SHAPE,
    reports: Reports::Lines(&["Reqs/sec", "Bombarding ", "Statistics "]),
    recognizes: |document| {
        document.text.contains("Reqs/sec") && document.text.contains("HTTP codes:")
    },
    read: text,
};

const FAILURES: &str = "a status outside of 200 to 399, or no answer";

fn text(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let text = document.text;
    let columns = |label: &str| -> Option<Vec<&str>> {
        Some(words::rest_of(text, label)?.split_whitespace().collect())
    };
    let latency = columns("Latency ").unwrap_or_default();
    // The columns are average, deviation and maximum. The deviation is skipped for the reason in the module's
    // documentation.
    let column = |index: usize| latency.get(index).and_then(|word| words::time_us(word));
    let mean = column(0).ok_or_else(|| Missing("the row `Latency` has no average".to_owned()))?;
    let quantile = |percent: &str| words::after(text, percent).and_then(words::time_us);
    let mut run = ForeignRun::new(TEXT_SHAPE);
    run.put_all(
        1.0,
        [
            (Metric::Mean, Some(mean)),
            (Metric::P50, quantile("50%")),
            (Metric::P75, quantile("75%")),
            (Metric::P90, quantile("90%")),
            (Metric::P95, quantile("95%")),
            (Metric::P99, quantile("99%")),
            (Metric::Max, column(2)),
        ],
    );
    let codes: Vec<(&str, f64)> = text
        .lines()
        .skip_while(|line| !line.contains("HTTP codes:"))
        // The two lines below the heading contain the counts.
        .skip(1)
        .take(2)
        .flat_map(|line| line.split(','))
        .filter_map(|part| {
            let (class, count) = part.split_once(" - ")?;
            Some((class.trim(), words::number(count)?))
        })
        .collect();
    let (good, bad): (Vec<_>, Vec<_>) = codes
        .into_iter()
        .partition(|(class, _)| ["2xx", "3xx"].contains(class));
    let sum = |counts: &[(&str, f64)]| counts.iter().map(|(_, count)| count).sum::<f64>();
    let (good, bad) = (sum(&good), sum(&bad));
    run.count(whole(good), whole(bad), FAILURES);
    let per_s = words::number_after(text, "Reqs/sec");
    run.put(
        Metric::Requests,
        // bombardier's rate counts every response. It is multiplied by the share of successes.
        per_s
            .filter(|_| good + bad > 0.0)
            .map(|rate| rate * good / (good + bad)),
    );
    run.note(
        "requests/s is the mean of bombardier's samples, because its text does not contain the run time",
    );
    conditions(&mut run, text);
    notes(&mut run);
    Ok(vec![run.closed()])
}

/// Parses `Bombarding URL for 10s using 10 connection(s)`, or `with 1000 request(s) using …`.
fn conditions(run: &mut ForeignRun, text: &str) {
    let words: Vec<&str> = words::rest_of(text, "Bombarding ")
        .into_iter()
        .flat_map(str::split_whitespace)
        .collect();
    run.subject = words.first().map(|url| (*url).to_owned());
    run.under(Condition::Target, words.first());
    let after = |word: &str| words.iter().skip_while(|found| **found != word).nth(1);
    run.under(Condition::Connections, after("using"));
    let requests = after("with").map(|count| format!("{count} requests"));
    run.under(
        Condition::Length,
        after("for").map(|&length| length.to_owned()).or(requests),
    );
}

pub(super) fn notes(run: &mut ForeignRun) {
    run.note("bombardier computes standard deviations wrongly, so they are omitted");
    if !run.figures.contains_key(&Metric::P99) {
        run.note("it has no percentiles. Run bombardier with -l");
    }
}
