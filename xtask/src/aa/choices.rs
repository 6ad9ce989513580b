//! The same gateway twice, with a switch of the lab in each of its two positions. It shows the effect of that
//! switch on an interval.

use std::fmt::Write as _;

use super::figures::{Figure, Tally};
use super::gateways;
use super::labs::Bench;
use crate::bench;

/// The second of two equal variants.
const AGAIN: &str = "again";

/// A switch of a lab with two positions.
pub(super) struct Choice {
    /// The key in a lab. Names of runs contain it.
    key: &'static str,
    /// The two values of the key, as written in a lab and as shown to people.
    positions: [(&'static str, &'static str); 2],
    /// Writes the key with one of the values into a lab.
    write: fn(&str, &str) -> String,
}

/// Each system on one core, or on any core that the scheduler chooses.
pub(super) const PLACEMENT: Choice = Choice {
    key: "placement",
    positions: [
        ("one-core", "one core each"),
        ("free", "placed by the scheduler"),
    ],
    write: |position, lab| format!("placement: {position}\n{lab}"),
};

/// Systems and generator with precedence over other programs, or without.
pub(super) const PRECEDENCE: Choice = Choice {
    key: "precedence",
    positions: [
        ("on", "before other programs"),
        ("off", "as important as others"),
    ],
    write: |position, lab| lab.replacen("load: {", &format!("load: {{precedence: {position}, "), 1),
};

pub(super) fn section(bench: &Bench, choice: &Choice, repeat: u64) -> anyhow::Result<String> {
    let lab = gateways::lab(bench, &[AGAIN.to_owned()]);
    let mut by_position = [(); 2].map(|()| Tally::each(&Figure::ALL));
    for seed in 1..=repeat {
        // One after the other with the same seed, so that both include the current state of the machine.
        for ((position, _), tallies) in choice.positions.iter().zip(&mut by_position) {
            let lab = (choice.write)(position, &lab);
            let run = bench.lab(&format!("{}-{position}", choice.key), &lab, seed)?;
            let mut line = format!("{position} {seed}/{repeat}:");
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
    let [first, second] = &by_position;
    for (first, second) in first.iter().zip(second) {
        let _ = writeln!(
            rows,
            "| {} | ±{:.1} us | {} of {repeat} | ±{:.1} us | {} of {repeat} | {:.1} |",
            first.figure.name(),
            first.half_width(),
            first.claims(),
            second.half_width(),
            second.claims(),
            second.half_width() / first.half_width()
        );
    }
    let [(_, first), (_, second)] = choice.positions;
    Ok(format!(
        "The same gateway twice, {}, {repeat} runs of each kind in turn:\n\n\
         | figure | {first}: typical interval | claims | {second}: typical interval | \
         claims | ratio |\n|---|---|---|---|---|---|\n{rows}",
        bench.setting(1)
    ))
}
