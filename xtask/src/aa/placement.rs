//! The same gateway twice, with each system on one core and wherever the scheduler puts it: how much of
//! an interval is the scheduler's doing?

use std::fmt::Write as _;

use super::figures::{Figure, median};
use super::gateways;
use super::labs::Bench;
use crate::bench;

const CHOICES: [&str; 2] = ["one-core", "free"];

pub(super) fn section(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let lab = gateways::lab(bench, &["again".to_owned()]);
    let mut half_widths = [(); 2].map(|()| Figure::ALL.map(|_| Vec::new()));
    let mut claims = [[0_u64; Figure::ALL.len()]; 2];
    for seed in 1..=repeat {
        // One after the other with the same seed, so that the machine's hour is in both.
        for (choice, name) in CHOICES.into_iter().enumerate() {
            let lab = format!("placement: {name}\n{lab}");
            let run = bench.lab(&format!("placement-{name}"), &lab, seed)?;
            let mut line = format!("{name} {seed}/{repeat}:");
            for (index, figure) in Figure::ALL.into_iter().enumerate() {
                let found = run.difference("again", figure)?;
                half_widths[choice][index].push(found.half_width());
                claims[choice][index] += u64::from(found.is_claimed());
                let _ = write!(line, " {} ±{:.1},", figure.name(), found.half_width());
            }
            bench::say(line.trim_end_matches(','));
        }
    }
    let mut rows = String::new();
    for (index, figure) in Figure::ALL.into_iter().enumerate() {
        let [one_core, free] = [0, 1].map(|choice| median(&half_widths[choice][index]));
        let [placed_claims, free_claims] = [0, 1].map(|choice| claims[choice][index]);
        let _ = writeln!(
            rows,
            "| {} | ±{one_core:.1} us | {placed_claims} of {repeat} | ±{free:.1} us | {free_claims} of \
             {repeat} | {:.1} |",
            figure.name(),
            free / one_core
        );
    }
    Ok(format!(
        "The same gateway twice, {}, {repeat} runs of each kind in turn:\n\n\
         | figure | one core each: typical interval | claims | placed by the scheduler: typical interval | \
         claims | ratio |\n|---|---|---|---|---|---|\n{rows}",
        bench.setting(1)
    ))
}
