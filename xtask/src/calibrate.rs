//! `cargo xtask calibrate`: the benches of the engine that need no other program, and the document with their
//! figures.

use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::page;
use crate::repository::root;

/// Parts to calibrate, and their turns.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Parts to repeat. The default is all parts.
    #[arg(value_name = "PART", value_parser = clap::builder::PossibleValuesParser::new(PARTS))]
    parts: Vec<String>,
    /// Number of turns per row of `open`, `spin` and `carriers`.
    #[arg(long, default_value_t = 3)]
    turns: u32,
    /// Length of a turn, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    seconds: u32,
    /// Limit of the CPU time that other programs may use per second, in milliseconds. A turn above
    /// it is repeated, up to `--tries` times.
    #[arg(long, value_name = "MS", default_value_t = 50)]
    others: u32,
    /// Limit of the CPU time that other guests of the host may take per second, in milliseconds. A
    /// turn above it is repeated too.
    #[arg(long, value_name = "MS", default_value_t = 5)]
    steal: u32,
    /// Maximum number of tries until a turn is undisturbed. Otherwise the least disturbed turn
    /// counts.
    #[arg(long, default_value_t = 10)]
    tries: u32,
    /// Write the tables into docs/calibration.md. Tables of other parts stay unchanged.
    #[arg(long)]
    write: bool,
}

/// The parts. Each has a table of its own in the document.
const PARTS: [&str; 6] = ["stall", "open", "spin", "closed", "carriers", "recorder"];

const DOCUMENT: &str = "docs/calibration.md";

pub(crate) fn calibrate(args: &Args) -> anyhow::Result<()> {
    for part in PARTS {
        if !args.parts.is_empty() && !args.parts.iter().any(|wanted| wanted == part) {
            continue;
        }
        let words = match part {
            "recorder" => vec!["recorder".to_owned()],
            _ => vec![
                "calibration".to_owned(),
                "--".to_owned(),
                part.to_owned(),
                format!("turns={}", args.turns),
                format!("seconds={}", args.seconds),
                format!("others={}", args.others),
                format!("steal={}", args.steal),
                format!("tries={}", args.tries),
            ],
        };
        let found = bench(&words)?;
        say(&found);
        if args.write {
            page::write(DOCUMENT, part, &found)?;
        }
    }
    Ok(())
}

/// The output of a bench of the engine.
fn bench(words: &[String]) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "bench",
            "--locked",
            "--quiet",
            "--package",
            "load",
            "--bench",
        ])
        .args(words)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo starts")?;
    if !output.status.success() {
        bail!(
            "`cargo bench --bench {}` ended with {}",
            words.join(" "),
            output.status
        );
    }
    String::from_utf8(output.stdout).context("a bench writes UTF-8")
}

#[expect(clippy::print_stdout, reason = "the answer of a chore")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_document_has_a_place_for_every_part() {
        page::assert_places(DOCUMENT, &PARTS);
    }
}
