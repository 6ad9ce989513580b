//! Reader of oha's JSON, in seconds, and of its text, which contains units.
//!
//! `successRate` counts every response, even a 500, so successes are counted from the status codes. oha
//! counts requests that the end of the run cut off as errors. This reader does not count them.

use model::Metric;
use serde_json::Value;

use super::{Document, ForeignRun, Missing, Reader, by_status, whole, words};
use crate::digits;

const JSON_SHAPE: &str = "oha --output-format json";
const TEXT_SHAPE: &str = "oha";

pub(super) const JSON: Reader = Reader {
    shape: JSON_SHAPE,
    recognizes: |document| {
        document.has(&["summary", "successRate"]) && document.has(&["latencyPercentiles"])
    },
    read: json,
};

/// oha's text looks like hey's, except for the success rate and oha's own units.
pub(super) const TEXT: Reader = Reader {
    shape: TEXT_SHAPE,
    recognizes: |document| {
        document.text.contains("Success rate:") && document.text.contains("Requests/sec:")
    },
    read: text,
};

/// oha's error text for requests in flight when its time is over.
const CUT_OFF: &str = "aborted due to deadline";

fn json(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let summary = |name: &str| document.number(&["summary", name]);
    let quantile = |name: &str| document.number(&["latencyPercentiles", name]);
    let mut run = ForeignRun::new(JSON_SHAPE);
    run.put_all(
        1e6,
        [
            (Metric::Min, summary("fastest")),
            (Metric::Mean, summary("average")),
            (Metric::P50, quantile("p50")),
            (Metric::P75, quantile("p75")),
            (Metric::P90, quantile("p90")),
            (Metric::P95, quantile("p95")),
            (Metric::P99, quantile("p99")),
            (Metric::P999, quantile("p99.9")),
            (Metric::Max, summary("slowest")),
        ],
    );
    let (succeeded, other) = by_status(document.at(&["statusCodeDistribution"]));
    let kinds = document
        .at(&["errorDistribution"])
        .and_then(Value::as_object);
    let errors = kinds.into_iter().flatten();
    let errors = errors.map(|(kind, count)| (kind.as_str(), count.as_f64().map_or(0, whole)));
    counts(&mut run, [succeeded, other], errors);
    run.rate_over(Some(document.need(&["summary", "total"])?));
    run.note(CLOCK);
    Ok(vec![run.closed()])
}

fn text(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let text = document.text;
    // `0.0021 sec`, or in newer versions `2.1 ms`.
    let time = |label: &str| words::rest_of(text, label).and_then(time_us);
    let quantile = |percent: &str| time_us(words::rest_of(text, percent)?.strip_prefix("in ")?);
    let mut run = ForeignRun::new(TEXT_SHAPE);
    run.put_all(
        1.0,
        [
            (Metric::Min, time("Fastest:")),
            (Metric::Mean, time("Average:")),
            (Metric::P50, quantile("50.00%")),
            (Metric::P75, quantile("75.00%")),
            (Metric::P90, quantile("90.00%")),
            (Metric::P95, quantile("95.00%")),
            (Metric::P99, quantile("99.00%")),
            (Metric::P999, quantile("99.90%")),
            (Metric::Max, time("Slowest:")),
        ],
    );
    let mut answers = [0, 0];
    let mut errors = Vec::new();
    for line in text.lines().map(str::trim) {
        let Some((bracketed, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        else {
            continue;
        };
        let (rest, count) = (rest.trim(), words::number(bracketed).map_or(0, whole));
        match rest.strip_suffix(" responses").and_then(words::number) {
            Some(answered) => {
                // Sorted by success: index 0 for 200 to 399, 1 for every other status.
                answers[usize::from(!(200..400).contains(&count))] += whole(answered);
            }
            None => errors.push((rest, count)),
        }
    }
    counts(&mut run, answers, errors.into_iter());
    let total_us =
        time("Total:").ok_or_else(|| Missing("`Total:` has no time with a unit".to_owned()))?;
    run.rate_over(Some(total_us / 1e6));
    run.note(CLOCK);
    Ok(vec![run.closed()])
}

/// `2.0045 sec`: a number, a blank and a unit.
fn time_us(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let number = words.next()?;
    let unit = words.next()?.trim_end_matches(',');
    // Newer versions print `sec`, `ms` or `us`. The common reader expects `s`.
    let unit = if unit.starts_with("sec") { "s" } else { unit };
    words::time_us(&format!("{number}{unit}"))
}

const CLOCK: &str = "oha counts latency from the send, or with --latency-correction from the \
                     wake-up of its timer, but never from due";

/// Counts successes, responses with another status, and errors by oha's names.
fn counts<'a>(
    run: &mut ForeignRun,
    [succeeded, other]: [u64; 2],
    errors: impl Iterator<Item = (&'a str, u64)>,
) {
    // The end of the run cut these requests off, not the server, so they are not failures.
    let (cut_off, broken): (Vec<_>, Vec<_>) = errors.partition(|(kind, _)| *kind == CUT_OFF);
    let sum = |errors: &[(&str, u64)]| errors.iter().map(|(_, count)| count).sum::<u64>();
    run.count(
        succeeded,
        other + sum(&broken),
        "a status outside of 200 to 399, or no answer",
    );
    if other > 0 {
        run.note("oha's own success rate counts every answer as a success, whatever its status");
    }
    if !cut_off.is_empty() {
        run.note(format!(
            "no figure contains the {} requests that were in flight at the end",
            digits::count(sum(&cut_off))
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::{claims, is_noted, one};

    const TEXT: &str = include_str!("../../samples/oha.txt");

    #[test]
    fn the_text_is_not_taken_for_that_of_hey_and_has_its_own_units() {
        for text in [
            TEXT.to_owned(),
            // Newer versions choose a unit for each time.
            TEXT.replace("0.0028 sec", "2.8000 ms")
                .replace("0.0004 sec", "400.0000 us"),
        ] {
            let run = one(&text);
            assert_eq!(run.shape, "oha");
            claims(
                &run,
                &[
                    (Metric::Min, 0.4),
                    (Metric::Mean, 3.0),
                    (Metric::P50, 2.8),
                    (Metric::P99, 12.0),
                    (Metric::P999, 30.1),
                    (Metric::Max, 1020.0),
                    (Metric::Requests, 32_900.0 / 10.0021),
                ],
                Some((32_900, 300)),
            );
            is_noted(&run, "10 requests that were in flight");
            is_noted(&run, "whatever its status");
        }
    }
}
