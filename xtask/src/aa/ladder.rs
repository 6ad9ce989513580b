//! A ladder of null servers with planted steps.
//!
//! The intervals of a ladder hold together. So the sentence above the table counts the runs with all intervals
//! right. A server sends more slowly after a longer wait. Each server measures this time, and it belongs to the
//! true difference of the typical latency. The mean has requests that are late by milliseconds, which hide it.

use std::fmt::Write as _;

use serde_json::Value;

use super::figures::{Difference, Run, list};
use super::labs::Bench;
use super::truth::{self, Row};
use crate::bench;

/// The steps of the ladder, in microseconds.
const STEPS: [u32; 3] = [5, 20, 100];
/// Delay of the first server. A shorter delay is at the mercy of the timer.
const BASE_US: u32 = 200;
/// The name of the first server.
const FIRST: &str = "plain";

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
        for (row, added_us) in figures[0].iter_mut().zip(added_us(&run)?) {
            row.added_us.push(added_us);
        }
        for (rows, [_, key]) in figures.iter_mut().zip(FIGURES) {
            let steps = steps(&run.summary["ladder"], key)?;
            for (row, step) in rows.iter_mut().zip(steps) {
                let planted = row.planted_us;
                let (low, high) = (step.low, step.high);
                let _ = write!(line, " {planted}: {low:+.1} to {high:+.1},");
                row.found.push(step);
            }
        }
        bench::say(line.trim_end_matches(','));
    }
    let together = figures.each_ref().map(|rows| truth::right_together(rows));
    Ok(format!(
        "A ladder of four null servers, each later than the one before it. There are {repeat} runs of {}. All intervals of \
         a run were right in **{} of {repeat}** for the typical latency, and in **{} of {repeat}** for the \
         mean. The second number of a planted amount is the time that the later server needs more for its \
         sends. The servers measured it:\n\n{}",
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
        added_us: Vec::new(),
    };
    let steps = STEPS.into_iter().map(|step| row(step, figure.to_owned()));
    let whole = row(STEPS.iter().sum(), format!("{figure}, all steps"));
    steps.chain([whole]).collect()
}

/// The time that the servers of each step, and of the whole ladder, added to the planted amounts.
fn added_us(run: &Run) -> anyhow::Result<Vec<f64>> {
    let later = STEPS.into_iter().map(name);
    let sent_us: Vec<f64> = std::iter::once(FIRST.to_owned())
        .chain(later)
        .map(|name| run.sent_us(&name))
        .collect::<anyhow::Result<_>>()?;
    let steps = sent_us.windows(2).map(|pair| pair[1] - pair[0]);
    let whole = sent_us[STEPS.len()] - sent_us[0];
    Ok(steps.chain([whole]).collect())
}

/// The name of the variant with this step.
fn name(step: u32) -> String {
    format!("+{step} us")
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
    let mut names = vec![FIRST.to_owned()];
    for step in STEPS {
        delay += step;
        let name = name(step);
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
         expect: {{status: 200, same-as: baseline}}\nbaseline: {{name: {FIRST}}}\n\
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
