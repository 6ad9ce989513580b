//! A ladder of null servers with planted steps.
//!
//! The intervals of a ladder hold together. So the table counts the runs in which every interval contains its
//! planted step, next to the runs of each step.

use std::fmt::Write as _;

use serde_json::Value;

use super::figures::{Difference, list, median};
use super::labs::Bench;
use crate::bench;

/// The steps of the ladder, in microseconds.
const STEPS: [u32; 3] = [5, 20, 100];
/// Delay of the first server. A shorter delay is at the mercy of the timer.
const BASE_US: u32 = 200;

/// A figure of the ladder: its name and its key in a summary.
const FIGURES: [[&str; 2]; 2] = [
    ["typical", "latency_us_typical"],
    ["mean", "latency_us_mean"],
];

/// The steps found in the runs, for one figure.
struct Found {
    name: &'static str,
    key: &'static str,
    /// For each run the steps and then the whole ladder.
    runs: Vec<Vec<Difference>>,
}

pub(super) fn section(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let lab = lab(bench);
    let mut figures = FIGURES.map(|[name, key]| Found {
        name,
        key,
        runs: Vec::new(),
    });
    for seed in 1..=repeat {
        let run = bench.lab("ladder", &lab, seed)?;
        let mut line = format!("{seed}/{repeat}:");
        for figure in &mut figures {
            let steps = figure.steps(&run.summary["ladder"])?;
            for (step, planted) in steps.iter().zip(planted()) {
                let is_missed = !step.contains(f64::from(planted));
                let mark = if is_missed { " missed" } else { "" };
                let _ = write!(
                    line,
                    " {planted}: {:+.1} to {:+.1}{mark},",
                    step.low, step.high
                );
            }
            figure.runs.push(steps);
        }
        bench::say(line.trim_end_matches(','));
    }
    let rows: String = figures.iter().map(Found::rows).collect();
    Ok(format!(
        "A ladder of four null servers, each later than the one before it; {}, {repeat} runs:\n\n\
         | figure | planted | inside the interval in | typical result |\n|---|---|---|---|\n{rows}",
        bench.setting(STEPS.len()),
    ))
}

/// The planted steps, and their sum.
fn planted() -> impl Iterator<Item = u32> {
    STEPS.into_iter().chain([STEPS.iter().sum()])
}

impl Found {
    /// The steps of a ladder and the whole ladder.
    fn steps(&self, ladder: &Value) -> anyhow::Result<Vec<Difference>> {
        let whole = std::iter::once(&ladder["whole"]);
        let steps = list(&ladder["steps"]).chain(whole);
        steps.map(|step| Difference::of(step, self.key)).collect()
    }

    /// The lines of the table.
    fn rows(&self) -> String {
        let total = self.runs.len();
        let mut rows = String::new();
        for (index, planted) in planted().enumerate() {
            let found: Vec<Difference> = self.runs.iter().map(|run| run[index]).collect();
            let inside = found
                .iter()
                .filter(|it| it.contains(f64::from(planted)))
                .count();
            let median_of =
                |of: fn(&Difference) -> f64| median(&found.iter().map(of).collect::<Vec<_>>());
            let what = match index < STEPS.len() {
                true => format!("{planted} us"),
                false => format!("{planted} us, all steps"),
            };
            let _ = writeln!(
                rows,
                "| {} | {what} | {inside} of {total} | {:+.1} us ±{:.1} |",
                self.name,
                median_of(|it| it.value),
                median_of(|it| it.half_width()),
            );
        }
        let all = |run: &&Vec<Difference>| {
            let mut pairs = run.iter().zip(planted());
            pairs.all(|(step, planted)| step.contains(f64::from(planted)))
        };
        let together = self.runs.iter().filter(all).count();
        let _ = writeln!(
            rows,
            "| {} | all at once | {together} of {total} | |",
            self.name
        );
        rows
    }
}

fn lab(bench: &Bench) -> String {
    let mut delay = BASE_US;
    let mut variants = String::new();
    let mut names = vec!["plain".to_owned()];
    for step in STEPS {
        delay += step;
        let name = format!("+{step} us");
        let _ = writeln!(
            variants,
            "  - {{name: \"{name}\", with: {{server.flag: --delay={delay}us}}}}"
        );
        names.push(format!("\"{name}\""));
    }
    format!(
        "question: Is the cost of each step found?\n\
         load: {{rate: {}/s, duration: {}s, path: /}}\norder: side-by-side\nwarmup: 300ms\nrounds: {}\n\
         target: server\nsystems:\n  server:\n    settings: {{flag: --delay={BASE_US}us}}\n    \
         run: \"'{}' null-server --listen {{{{addr}}}} {{{{flag}}}}\"\n    limits: {{cpus: 1}}\n\
         expect: {{status: 200, same-as: baseline}}\nbaseline: {{name: plain}}\n\
         variants:\n{variants}ladder: [{}]\n",
        bench.rate.get(),
        bench.seconds,
        bench.rounds(STEPS.len()),
        bench.programs.weigh.display(),
        names.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_count_alone_and_together() {
        let step = |low: f64, high: f64| Difference {
            value: f64::midpoint(low, high),
            low,
            high,
        };
        let good = vec![
            step(4.0, 6.0),
            step(18.0, 21.0),
            step(99.0, 102.0),
            step(124.0, 127.0),
        ];
        let mut missed = good.clone();
        missed[1] = step(21.0, 24.0);
        let found = Found {
            name: "typical",
            key: "latency_us_typical",
            runs: vec![good, missed],
        };
        let rows = found.rows();
        assert!(rows.contains("| typical | 5 us | 2 of 2 |"), "{rows}");
        assert!(rows.contains("| typical | 20 us | 1 of 2 |"), "{rows}");
        assert!(
            rows.contains("| typical | 125 us, all steps | 2 of 2 |"),
            "{rows}"
        );
        assert!(
            rows.contains("| typical | all at once | 1 of 2 |"),
            "{rows}"
        );
    }
}
