//! Labs side by side and in turn. Are their results the same?

use std::fmt::Write as _;

use super::figures::{Difference, Figure, Run, list, text};
use super::labs::Bench;
use crate::bench;
use crate::clock::now;

const COMPARED: [Figure; 3] = [Figure::Typical, Figure::Mean, Figure::Cpu];

pub(super) fn section(
    bench: &Bench,
    labs: &[String],
    variants: &[String],
) -> anyhow::Result<String> {
    let mut rows = String::new();
    let mut took = String::new();
    for lab in labs {
        let (beside, beside_s) = run(bench, lab, "side-by-side", variants)?;
        let (in_turn, in_turn_s) = run(bench, lab, "in-turn", variants)?;
        let _ = write!(took, " {lab} took {beside_s:.0} s and {in_turn_s:.0} s.");
        for row in list(&beside.summary["variants"]) {
            let name = text(row, "name");
            for figure in COMPARED {
                // Without both intervals there is no comparison.
                let (Ok(one), Ok(other)) = (
                    beside.difference(name, figure),
                    in_turn.difference(name, figure),
                ) else {
                    continue;
                };
                let _ = writeln!(
                    rows,
                    "| {lab} | {name} | {} | {} | {} | {} |",
                    figure.name(),
                    in_words(one),
                    in_words(other),
                    judgement(one, other)
                );
            }
        }
    }
    Ok(format!(
        "Differences from the baseline in us, in both orders:{took}\n\n\
         | lab | variant | figure | side by side | in turn | intervals |\n|---|---|---|---|---|---|\n\
         {rows}"
    ))
}

fn run(bench: &Bench, lab: &str, order: &str, variants: &[String]) -> anyhow::Result<(Run, f64)> {
    let variants = variants.join(",");
    let mut arguments = vec![lab, "--order", order];
    if !variants.is_empty() {
        arguments.extend(["--variants", &variants]);
    }
    let began = now();
    let run = bench.weigh(&arguments)?;
    let took = began.elapsed().as_secs_f64();
    bench::say(&format!("{lab}, {order}: {took:.0} s"));
    Ok((run, took))
}

fn in_words(difference: Difference) -> String {
    let Difference { value, low, high } = difference;
    format!("{value:+.1} ({low:+.1} to {high:+.1})")
}

/// Intervals of 95 % each that do not overlap are stronger evidence than 95 %. With equal truths it happens
/// to some 0.6 % of the pairs.
fn judgement(one: Difference, other: Difference) -> &'static str {
    if one.low <= other.high && other.low <= one.high {
        "overlap"
    } else {
        "apart"
    }
}
