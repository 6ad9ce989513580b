//! The same gateway several times, side by side: no difference is the truth.

use std::fmt::Write as _;

use super::effects::Effects;
use super::figures::{Figure, median};
use super::labs::Bench;
use crate::bench;
use crate::chores::root;

pub(super) fn section(bench: &Bench, gateways: usize, repeat: u64) -> anyhow::Result<String> {
    let names: Vec<String> = (2..=gateways)
        .map(|number| format!("again-{number}"))
        .collect();
    let lab = lab(bench, &names);
    let mut effects = Effects::default();
    let mut rows = Figure::ALL.map(|figure| (figure, 0_u64, Vec::new()));
    for seed in 1..=repeat {
        let run = bench.lab(&format!("gateways-{gateways}"), &lab, seed)?;
        effects.add(&run)?;
        let mut line = format!("{seed}/{repeat}:");
        for (figure, claimed, half_widths) in &mut rows {
            let mut is_claimed = false;
            for name in &names {
                let found = run.difference(name, *figure)?;
                is_claimed |= found.is_claimed();
                half_widths.push(found.half_width());
            }
            *claimed += u64::from(is_claimed);
            let mark = if is_claimed { " claimed" } else { "" };
            let typical = median(half_widths);
            let _ = write!(line, " {}{mark} ±{typical:.1},", figure.name());
        }
        bench::say(line.trim_end_matches(','));
    }
    let rows: String = rows
        .iter()
        .map(|(figure, claimed, half_widths)| {
            format!(
                "| {} | {claimed} of {repeat} | ±{:.1} us |\n",
                figure.name(),
                median(half_widths)
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
