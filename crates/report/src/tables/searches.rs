//! Table of searches for the highest rate.

use analysis::summary::{SearchSummary, Summary};
use model::{Metric, Unit};
use recording::digits;

use crate::cell;
use crate::table::{Column, Table, row};

/// Title of the table.
pub(crate) const TITLE: &str = "The highest rate sustained, by round";

/// One row for each search.
pub(crate) fn table(summary: &Summary) -> Table {
    let times = summary.unit(Metric::P99);
    let mut rows = Vec::new();
    for variant in &summary.variants {
        for (round, search) in (1u64..).zip(&variant.searches) {
            rows.push(row([
                variant.name.clone(),
                digits::count(round),
                rate(search.sustained_per_s),
                cell::single(search.sustained_latency_us_p99, times),
                refused(search, times),
            ]));
        }
    }
    Table::new(
        "the highest rate sustained",
        [
            Column::words("variant"),
            Column::figure("round", ""),
            Column::figure("sustained", "requests/s"),
            Column::figure("its p99", times.sign()),
            Column::words("not sustained"),
        ],
        rows,
    )
}

/// Reason why no higher rate was found.
fn refused(search: &SearchSummary, times: Unit) -> String {
    let Some(per_s) = search.refused_per_s else {
        return "none, this is the highest rate of the search".to_owned();
    };
    let p99 = cell::single(search.refused_latency_us_p99, times);
    let mut text = format!("{} requests/s: p99 {p99} {}", rate(per_s), times.sign());
    if search.refused_not_passed > 0 {
        let count = digits::count(search.refused_not_passed);
        text += &format!(", {count} not answered as expected");
    }
    text
}

fn rate(per_s: f64) -> String {
    // An expected half width of 0.05 % shows all digits that the search can resolve.
    digits::value(per_s, Some(per_s * 0.0005))
}

#[cfg(test)]
mod tests {
    use analysis::summary::Verdict;
    use recording::sample::SampleRun;
    use recording::{SearchRecord, SearchStep};

    use super::*;
    use crate::{Terminal, full_text, html, markdown};

    #[test]
    fn every_rendering_says_which_rate_was_sustained_and_which_was_not() {
        let mut recording = SampleRun::open()
            .variant("one", 700.0)
            .variant("four", 700.0)
            .build();
        let capacity = serde_json::json!({
            "rate_from_per_s": 1000.0,
            "rate_to_per_s": 40_000.0,
            "step_percent": 10.0,
            "latency_us_p99_below": 10_000,
        });
        recording.load.capacity = Some(serde_json::from_value(capacity).unwrap());
        for round in &mut recording.rounds {
            // The found rate is the rate of the measurement, which is twice as high for four.
            if round.variant == "four" {
                round.elapsed_us /= 2;
            }
            let step = |rate_per_s: f64, p99: f64, not_passed: u64| SearchStep {
                rate_per_s,
                latency_us_p99: Some(p99),
                not_passed,
                is_sustained: p99 < 10_000.0,
                is_disturbed: false,
            };
            round.search = Some(SearchRecord {
                steps: vec![step(2100.0, 8_000.0, 0), step(2310.0, 15_300.0, 7)],
                is_at_top: false,
            });
        }
        let summary = Summary::of(&recording);
        let verdict = &summary.variants[1].verdict;
        assert!(matches!(verdict, Verdict::Faster { .. }), "{verdict:?}");
        let sentence = crate::words::verdict(verdict);
        assert!(sentence.ends_with("more requests/s"), "{sentence}");
        for page in [
            full_text(&recording, &summary, Terminal::plain(160)),
            markdown(&recording, &summary),
            html(&recording, &summary),
        ] {
            for words in [
                "2,310 requests/s: p99 15,300 us, 7 not answered as expected",
                "the highest sustained rate between 1,000 and 40,000 requests/s (in",
                "The highest rate sustained",
            ] {
                assert!(page.contains(words), "{words}:\n{page}");
            }
        }
    }
}
