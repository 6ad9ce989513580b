//! The steps of a scenario, each over all measurements of a variant.

use analysis::summary::tail;
use model::Outcomes;
use recording::{RoundRecord, digits, float};
use stats::Histogram;

/// One step over several measurements.
pub(crate) struct Step {
    pub(crate) name: String,
    latency: Histogram,
    outcomes: Outcomes,
    skipped: u64,
}

/// The steps of these measurements. Empty for a rotation.
pub(crate) fn all(rounds: &[&RoundRecord]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // A disturbed measurement was repeated, so counting both would count twice.
    let is_kept = |round: &&&RoundRecord| !round.disturbed;
    for round in rounds.iter().filter(is_kept) {
        for (index, record) in round.steps.iter().enumerate() {
            // The first measurement defines the names. All other measurements have these steps in this order.
            if steps.len() == index {
                steps.push(Step {
                    name: record.name.clone(),
                    latency: Histogram::new(),
                    outcomes: Outcomes::default(),
                    skipped: 0,
                });
            }
            let step = &mut steps[index];
            step.latency.add(&record.latency_ns_hdr.histogram());
            step.outcomes.add(&record.outcomes);
            step.skipped += record.skipped;
        }
    }
    steps
}

/// Title of the table of steps.
pub(crate) const TITLE: &str = "Steps of the scenario, over the requests of all rounds";

impl Step {
    /// p50, p99 and maximum, in microseconds. `None` without a response. p99 is `None` if too few requests
    /// lie beyond it.
    pub(crate) fn quantiles_us(&self) -> [Option<f64>; 3] {
        let has_p99 = tail::has_enough(self.latency.len(), 0.99);
        [
            self.latency.quantile_ns(0.5),
            self.latency.quantile_ns(0.99).filter(|_| has_p99),
            self.latency.max_ns(),
        ]
        .map(|ns| ns.map(|ns| float(ns) / 1e3))
    }

    /// The outcomes in words: `passed 990, mismatched 10 (status 10), skipped 5`.
    pub(crate) fn outcomes(&self) -> String {
        let mut words = crate::words::named_outcomes(&self.outcomes);
        if self.skipped > 0 {
            words += &format!(", skipped {}", digits::count(self.skipped));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use analysis::summary::Summary;
    use recording::sample::SampleRun;
    use recording::{Hdr, Recording, StepRecord};

    use super::*;
    use crate::tables;
    use crate::terminal::Terminal;

    /// Two rounds with two steps each. The second step is skipped once per round.
    fn recording() -> Recording {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        for round in &mut recording.rounds {
            let step = |name: &str, ms: u64, skipped: u64| {
                let mut latency = Histogram::new();
                latency.record_ns(ms * 1_000_000);
                StepRecord {
                    name: name.to_owned(),
                    latency_ns_hdr: Hdr::of(&latency),
                    service_ns_hdr: Hdr::of(&latency),
                    outcomes: Outcomes {
                        passed: 1,
                        ..Outcomes::default()
                    },
                    skipped,
                }
            };
            round.steps = vec![step("log in", 3, 0), step("pay <now>", 7, 1)];
        }
        recording
    }

    #[test]
    fn a_step_is_pooled_over_the_rounds_of_its_variant() {
        let recording = recording();
        let rounds = recording.rounds_of("b").count();
        let rows = tables::steps::table(&recording, model::Unit::Milliseconds).rows;
        let cell = |row: usize, column: usize| rows[row][column].whole();
        let names: Vec<_> = (0..rows.len())
            .map(|row| (cell(row, 0), cell(row, 1)))
            .collect();
        assert_eq!(
            names,
            [
                ("a", "log in"),
                ("a", "pay <now>"),
                ("b", "log in"),
                ("b", "pay <now>")
            ]
        );
        assert_eq!(cell(3, 5), format!("passed {rounds}, skipped {rounds}"));
        assert!(cell(3, 2).starts_with('7'), "{}", cell(3, 2));
    }

    #[test]
    fn the_steps_are_in_every_report_for_readers() {
        let recording = recording();
        let summary = Summary::of(&recording);
        let text = crate::full_text(&recording, &summary, Terminal::plain(100));
        let markdown = crate::markdown(&recording, &summary);
        let html = crate::html(&recording, &summary);
        for (report, step) in [
            (text, "pay <now>"),
            (markdown, "pay &lt;now>"),
            (html, "pay &lt;now&gt;"),
        ] {
            assert!(report.contains(step), "{report}");
            assert!(report.to_lowercase().contains("steps of the scenario"));
        }
    }
}
