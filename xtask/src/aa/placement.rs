//! The same gateway twice, with each system on one core and wherever the scheduler puts it: how much of
//! an interval is the scheduler's doing?

use std::fmt::Write as _;

use super::figures::{Figure, Tally};
use super::gateways;
use super::labs::Bench;
use crate::bench;

const CHOICES: [&str; 2] = ["one-core", "free"];
/// The second of two equal variants.
const AGAIN: &str = "again";

pub(super) fn section(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let lab = gateways::lab(bench, &[AGAIN.to_owned()]);
    let mut by_choice = CHOICES.map(|_| Tally::each(&Figure::ALL));
    for seed in 1..=repeat {
        // One after the other with the same seed, so that the machine's hour is in both.
        for (name, tallies) in CHOICES.into_iter().zip(&mut by_choice) {
            let lab = format!("placement: {name}\n{lab}");
            let run = bench.lab(&format!("placement-{name}"), &lab, seed)?;
            let mut line = format!("{name} {seed}/{repeat}:");
            for tally in tallies {
                let figure = tally.figure.name();
                for found in tally.add(&run, &[AGAIN])? {
                    let _ = write!(line, " {figure} ±{:.1},", found.half_width());
                }
            }
            bench::say(line.trim_end_matches(','));
        }
    }
    let mut rows = String::new();
    let [one_core, free] = &by_choice;
    for (one_core, free) in one_core.iter().zip(free) {
        let _ = writeln!(
            rows,
            "| {} | ±{:.1} us | {} of {repeat} | ±{:.1} us | {} of {repeat} | {:.1} |",
            one_core.figure.name(),
            one_core.half_width(),
            one_core.claims(),
            free.half_width(),
            free.claims(),
            free.half_width() / one_core.half_width()
        );
    }
    Ok(format!(
        "The same gateway twice, {}, {repeat} runs of each kind in turn:\n\n\
         | figure | one core each: typical interval | claims | placed by the scheduler: typical interval | \
         claims | ratio |\n|---|---|---|---|---|---|\n{rows}",
        bench.setting(1)
    ))
}
