//! A ladder of null servers with planted steps.
//!
//! The intervals of a ladder hold together. So the sentence above the table counts the runs with all intervals
//! right.

use std::fmt::Write as _;

use serde_json::Value;

use super::figures::{Difference, list};
use super::labs::Bench;
use super::truth::{self, Row};
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

pub(super) fn section(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let lab = lab(bench);
    let mut figures = FIGURES.map(|[name, _]| rows(name));
    for seed in 1..=repeat {
        let run = bench.lab("ladder", &lab, seed)?;
        let mut line = format!("{seed}/{repeat}:");
        for (rows, [_, key]) in figures.iter_mut().zip(FIGURES) {
            let steps = steps(&run.summary["ladder"], key)?;
            for (row, step) in rows.iter_mut().zip(steps) {
                let planted = row.planted_us;
                let mark = if step.contains(planted) {
                    ""
                } else {
                    " missed"
                };
                let (low, high) = (step.low, step.high);
                let _ = write!(line, " {planted}: {low:+.1} to {high:+.1}{mark},");
                row.found.push(step);
            }
        }
        bench::say(line.trim_end_matches(','));
    }
    let together = figures.each_ref().map(|rows| truth::right_together(rows));
    Ok(format!(
        "A ladder of four null servers, each later than the one before it. There are {repeat} runs of {}. All intervals of \
         a run were right in **{} of {repeat}** for the typical latency, and in **{} of {repeat}** for the \
         mean:\n\n{}",
        bench.setting(STEPS.len()),
        together[0],
        together[1],
        truth::table(
            "figure",
            &figures.into_iter().flatten().collect::<Vec<Row>>()
        ),
    ))
}

/// A row for each planted step of a figure, and one for their sum.
fn rows(figure: &str) -> Vec<Row> {
    let row = |planted: u32, subject: String| Row {
        planted_us: planted.into(),
        subject,
        found: Vec::new(),
    };
    let steps = STEPS.into_iter().map(|step| row(step, figure.to_owned()));
    let whole = row(STEPS.iter().sum(), format!("{figure}, all steps"));
    steps.chain([whole]).collect()
}

/// The steps of a ladder and the whole ladder.
fn steps(ladder: &Value, key: &str) -> anyhow::Result<Vec<Difference>> {
    let whole = std::iter::once(&ladder["whole"]);
    let steps = list(&ladder["steps"]).chain(whole);
    let found: Vec<Difference> = steps
        .map(|step| Difference::of(step, key))
        .collect::<anyhow::Result<_>>()?;
    let planted = STEPS.len() + 1;
    anyhow::ensure!(
        found.len() == planted,
        "a ladder of {} rows, planted {planted}",
        found.len()
    );
    Ok(found)
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
    fn a_ladder_is_read_with_its_whole() {
        let step = |value: f64| {
            let overhead = serde_json::json!(
                {"difference": value, "difference_low": value - 1.0, "difference_high": value + 1.0});
            serde_json::json!({"metrics": {"latency_us_mean": {"overhead": overhead}}})
        };
        let mut ladder = serde_json::json!(
            {"steps": STEPS.map(|it| step(it.into())), "whole": step(125.0)});
        let found = steps(&ladder, "latency_us_mean").unwrap();
        for (row, found) in rows("mean").iter().zip(&found) {
            assert!(found.contains(row.planted_us), "{}", row.subject);
        }
        assert_eq!(found.len(), rows("mean").len());
        ladder["steps"].as_array_mut().unwrap().pop();
        assert!(steps(&ladder, "latency_us_mean").is_err());
    }
}
