//! Reader of k6's text summary at the end of its output. Durations have units.

use model::Metric;

use super::k6::{DURATIONS, GRPC, MEANING, dropped_text};
use super::{Condition, Document, ForeignRun, Missing, Reader, Reports, whole, words};

const SHAPE: &str = "k6 run";

/// The summary since version 1, which repeats metrics for each scenario below the totals.
pub(super) const TEXT: Reader = Reader {
    shape: SHAPE,
    reports: Reports::Lines(&[TOTALS]),
    recognizes: |document| document.text.contains(TOTALS) && has_durations(document.text),
    read,
};

pub(super) const OLD: Reader = Reader {
    shape: SHAPE,
    reports: Reports::Lines(&["http_reqs..", "data_received..", "http_req_blocked.."]),
    recognizes: |document| has_durations(document.text),
    read,
};

const TOTALS: &str = "█ TOTAL RESULTS";

fn has_durations(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| {
        DURATIONS.iter().any(|name| {
            unmarked(line)
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with("..."))
        })
    })
}

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let text = document.text;
    let duration = DURATIONS
        .iter()
        .find_map(|name| row(text, name))
        .ok_or_else(|| Missing("`http_req_duration` has no figures".to_owned()))?;
    let figure = |key: &str| words::pair(duration, key).and_then(words::time_us);
    let mut run = ForeignRun::new(SHAPE);
    run.put_all(
        1.0,
        [
            (Metric::Min, figure("min")),
            (Metric::Mean, figure("avg")),
            (Metric::P50, figure("med")),
            (Metric::P75, figure("p(75)")),
            (Metric::P90, figure("p(90)")),
            (Metric::P95, figure("p(95)")),
            (Metric::P99, figure("p(99)")),
            (Metric::P999, figure("p(99.9)")),
            (Metric::Max, figure("max")),
        ],
    );
    answers(&mut run, text)?;
    let users = row(text, "vus_max").and_then(|row| words::pair(row, "max"));
    run.under(Condition::Users, users);
    run.note(MEANING);
    let dropped = row(text, "dropped_iterations").and_then(|row| row.split_whitespace().next());
    if let Some(count) = dropped.and_then(words::number).filter(|count| *count > 0.0) {
        run.note(dropped_text(whole(count)));
    }
    for line in text.lines().map(str::trim) {
        if let Some(crossed) = line.strip_prefix("✗ '") {
            let expression = crossed.split('\'').next().unwrap_or_default();
            run.note(format!("k6 reports a crossed threshold: {expression}"));
        }
    }
    run.note("k6 rounds the figures of its text. The figures include requests of `setup()`");
    if !run.figures.contains_key(&Metric::P99) {
        run.note("it has no p99. Run k6 with --summary-trend-stats");
    }
    Ok(vec![run])
}

/// Reads the rows of requests and failures. The text of a test of gRPC lacks these rows.
fn answers(run: &mut ForeignRun, text: &str) -> Result<(), Missing> {
    let Some(requests) = row(text, "http_reqs") else {
        if row(text, DURATIONS[0]).is_some() {
            return Err(Missing("it has no `http_reqs`".to_owned()));
        }
        run.note(GRPC);
        return Ok(());
    };
    let mut numbers = requests.split_whitespace();
    let sent = numbers
        .next()
        .and_then(words::number)
        .ok_or_else(|| Missing("`http_reqs` has no count".to_owned()))?;
    let per_s = numbers
        .next()
        .and_then(|word| words::number(word.strip_suffix("/s")?));
    if let Some(failed) = row(text, "http_req_failed").and_then(|row| failures(row, sent)) {
        run.count(whole(sent - failed), whole(failed), "`http_req_failed`");
    }
    run.rate_of_all(per_s);
    Ok(())
}

/// The line without the mark of older versions before metrics with thresholds.
fn unmarked(line: &str) -> &str {
    line.trim().trim_start_matches(['✓', '✗']).trim_start()
}

/// The text after `name.....:`.
fn row<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (dots, rest) = unmarked(line).strip_prefix(name)?.split_once(':')?;
        // Only dots may follow. Otherwise `http_req_duration` would match `http_req_duration_expected`.
        dots.chars().all(|dot| dot == '.').then(|| rest.trim())
    })
}

/// Number of failed requests in `2.00%  144 out of 7219`. Older versions print `2.00% ✓ 144 ✗ 7075`. In it,
/// the mark of success counts the requests that failed.
fn failures(row: &str, sent: f64) -> Option<f64> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let count = match words.as_slice() {
        [_, count, "out", "of", _] | [_, "✓", count, "✗", _] => words::number(count),
        _ => None,
    };
    // Older versions do not always print the count. The share is exact to two digits.
    let share = || Some(words.first()?.strip_suffix('%')?.parse::<f64>().ok()? / 100.0 * sent);
    count.or_else(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::tests::{claims, is_noted, one};

    const TEXT: &str = include_str!("../../samples/k6-run.txt");

    #[test]
    fn the_text_says_the_same_as_the_export_of_the_same_run() {
        let text = one(TEXT);
        assert_eq!(text.shape, "k6 run");
        let export = one(include_str!("../../samples/k6-full-export.json"));
        assert_eq!(text.succeeded, export.succeeded);
        assert_eq!(text.failed, Some(1));
        for (metric, values) in &export.figures {
            let found = text.figures[metric][0];
            let is_near = (found / values[0] - 1.0).abs() < 0.01;
            assert!(is_near, "{metric:?}: {found}, not {}", values[0]);
        }
        is_noted(&text, "crossed threshold: p(99)<1");
        assert!(!text.notes.join(" ").contains("2000"), "{:?}", text.notes);
    }

    #[test]
    fn units_colors_and_the_marks_of_older_versions_are_understood() {
        let old = "     \u{1b}[32m✓\u{1b}[0m http_req_duration..............: avg=1.02s min=850µs med=1.5ms max=1m2.5s p(90)=2s p(95)=3s\n\
                   \u{1b}[31m✗\u{1b}[0m http_req_failed................: 2.00%  ✓ 20 ✗ 980\n  \
                   http_reqs......................: 1000  50.0/s\n  \
                   dropped_iterations.............: 7     0.35/s\n  \
                   vus_max........................: 50    min=50 max=50\n";
        let run = one(old);
        claims(
            &run,
            &[
                (Metric::Mean, 1020.0),
                (Metric::Min, 0.85),
                (Metric::Max, 62_500.0),
                (Metric::Requests, 49.0),
            ],
            Some((980, 20)),
        );
        is_noted(&run, "dropped 7 arrivals");
        is_noted(&run, "--summary-trend-stats");
        assert_eq!(run.conditions[&Condition::Users], "50");
    }
}
