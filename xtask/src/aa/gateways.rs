//! The same gateway several times, side by side. The truth is that there is no difference.

use std::fmt::Write as _;

use super::effects::Effects;
use super::figures::{Figure, Tally};
use super::labs::Bench;
use crate::bench;
use crate::repository::root;

pub(super) fn section(bench: &Bench, gateways: usize, repeat: u64) -> anyhow::Result<String> {
    let names: Vec<String> = (2..=gateways)
        .map(|number| format!("again-{number}"))
        .collect();
    let lab = lab(bench, &names);
    let mut effects = Effects::default();
    let mut tallies = Tally::each(&Figure::ALL);
    for seed in 1..=repeat {
        let run = bench.lab(&format!("gateways-{gateways}"), &lab, seed)?;
        effects.add(&run)?;
        let mut line = format!("{seed}/{repeat}:");
        for tally in &mut tallies {
            let found = tally.add(&run, &names)?;
            let is_claimed = found.iter().any(|found| found.is_claimed());
            let mark = if is_claimed { " claimed" } else { "" };
            let (name, typical) = (tally.figure.name(), tally.half_width());
            let _ = write!(line, " {name}{mark} ±{typical:.1},");
        }
        bench::say(line.trim_end_matches(','));
    }
    let rows: String = tallies
        .iter()
        .map(|tally| {
            format!(
                "| {} | {} of {repeat} | ±{:.1} us |\n",
                tally.figure.name(),
                tally.claims(),
                tally.half_width()
            )
        })
        .collect();
    Ok(format!(
        "The same gateway {gateways} times, {}, {repeat} runs:\n\n\
         | figure | runs that claim a difference | typical interval |\n|---|---|---|\n{rows}\n\
         From the system that was started first to the one that was started last: {}.\n",
        bench.setting(names.len()),
        effects.in_words()
    ))
}

pub(super) fn lab(bench: &Bench, names: &[String]) -> String {
    let configuration = root().join("labs/router-extensibility/baseline/baseline.yaml");
    let command = format!("\"{}\"", bench.gateway_command(&configuration));
    let variants: String = names
        .iter()
        .map(|name| format!("  - {{name: {name}}}\n"))
        .collect();
    bench.side_by_side(names.len())
        + &bench.gateway("", &command, "")
        + "expect: {status: 200, graphql: no-errors, same-as: baseline}\n\
           baseline: {name: plain}\nvariants:\n"
        + &variants
}
