//! `cargo xtask slices`: finds the best length of the slices of a closed loop side by side.
//!
//! Main idea: equal servers and equal time, and only the length of a slice differs. The narrowest interval
//! wins, if it claims no difference between equal servers. The result must be better than the row "in turn",
//! in the same time. A second table shows the number of requests sent by the age of a slice. It shows the
//! part of the beginning of a slice that must not count.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::bench;
use crate::repository::root;

/// Slice lengths, and the runs of each.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Slice lengths, in milliseconds.
    #[arg(long, value_delimiter = ',', default_value = "50,100,200,300,500,1000")]
    slices: Vec<u32>,
    /// Length per variant and round, in seconds, independent of the slices. It includes the time
    /// that does not count.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Number of rounds per lab. An interval requires at least 6.
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Number of labs per length, each with its own seed.
    #[arg(long, default_value_t = 3)]
    repeat: u64,
    /// Number of connections.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Compare the plain and the tuned build of labs/graphql-server instead of two equal null
    /// servers.
    #[arg(long)]
    graphql: bool,
    /// Use this `weigh` instead of building one.
    #[arg(long, value_name = "PROGRAM")]
    weigh: Option<PathBuf>,
}

/// Time that `weigh` does not count in each slice, in milliseconds (see `schedule::SlicePlan`).
const UNCOUNTED_MS: f64 = 30.0;
/// Shortest time between two slices, in milliseconds.
const GAP_MS: f64 = 10.0;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let weigh = match &args.weigh {
        Some(program) => fs::canonicalize(program).context("`--weigh` is a program")?,
        None => bench::built()?,
    };
    let folder = tempfile::tempdir().context("a temporary folder")?;
    let trial = Trial {
        args,
        weigh: &weigh,
        folder: folder.path(),
    };
    let mut rows = String::new();
    let mut ages = String::new();
    for slice_ms in args.slices.iter().map(|ms| Some(*ms)).chain([None]) {
        let name = slice_ms.map_or("in turn".to_owned(), |ms| format!("{ms} ms"));
        for seed in 1..=args.repeat {
            let run = trial.lab(slice_ms, seed)?;
            let row = format!("| {name} | {seed} | {} |\n", cells(&run.summary)?);
            bench::say(row.trim_end());
            rows += &row;
            if seed == 1 && !run.sent_by_age.is_empty() {
                let _ = writeln!(ages, "| {name} | {} |", shares(&run.sent_by_age));
            }
        }
    }
    bench::say(&format!(
        "\n{} s a variant and round, {} rounds, {} connections, {}:\n\n\
         | slice | seed | difference of requests/s | half-width | processor time per request, \
         difference (us) | half-width (us) | claimed |\n|---|---|---|---|---|---|---|\n{rows}\n\
         Requests sent by age of a slice, in steps of 10 ms, as a share of those of its later half:\n\n\
         | slice | 0 to 10 ms, 10 to 20 ms, … |\n|---|---|\n{ages}",
        args.seconds,
        args.rounds,
        args.connections,
        if args.graphql {
            "labs/graphql-server"
        } else {
            "equal null servers"
        },
    ));
    Ok(())
}

struct Trial<'a> {
    args: &'a Args,
    weigh: &'a Path,
    folder: &'a Path,
}

/// The result of one lab.
struct Run {
    summary: Value,
    /// Requests sent in each 10 ms of a slice, over all slices.
    sent_by_age: Vec<u64>,
}

impl Trial<'_> {
    /// Runs one lab: side by side in slices of this length, or in turn.
    fn lab(&self, slice_ms: Option<u32>, seed: u64) -> anyhow::Result<Run> {
        let path = self.folder.join("slices.yaml");
        fs::write(&path, self.text(slice_ms)).context("a lab can be written")?;
        let output = Command::new(self.weigh)
            .args(["lab", "--format", "json", "--seed", &seed.to_string()])
            .arg("--out")
            .arg(self.folder.join("recordings"))
            .arg(&path)
            .env("WEIGH_LOG", "weigh=debug")
            .stderr(Stdio::piped())
            .output()
            .context("weigh starts")?;
        let talk = String::from_utf8_lossy(&output.stderr);
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("weigh ended with {} and said:\n{talk}", output.status))?;
        Ok(Run {
            summary: answer["summary"].clone(),
            sent_by_age: sent_by_age(&talk),
        })
    }

    fn text(&self, slice_ms: Option<u32>) -> String {
        let seconds = self.args.seconds;
        let (order, slice, counted_s) = match slice_ms {
            None => ("in-turn", String::new(), seconds),
            Some(ms) => {
                let length_ms = f64::from(ms);
                let counted_ms = length_ms - UNCOUNTED_MS.min(length_ms / 3.0);
                let share = counted_ms / (length_ms + GAP_MS);
                ("side-by-side", format!(", slice: {ms}ms"), seconds * share)
            }
        };
        let load = format!(
            "connections: {}, duration: {:.0}ms{slice}",
            self.args.connections,
            counted_s * 1e3
        );
        let head = format!(
            "question: How long should a slice be?\nwarmup: 300ms\norder: {order}\nrounds: {}\n",
            self.args.rounds
        );
        if self.args.graphql {
            let systems = root().join("labs/graphql-server/systems.yaml");
            return format!(
                "{head}include: {}\nload: {{{load}}}\nbaseline: {{name: plain}}\nvariants:\n  \
                 - name: tuned\n    with: {{server.profile: tuned, \
                 server.rustflags: -C target-cpu=native, server.into: target/native}}\n",
                systems.display()
            );
        }
        format!(
            "{head}load: {{{load}}}\ntarget: server\nsystems:\n  server:\n    \
             run: \"'{}' null-server --listen {{{{addr}}}}\"\n\
             baseline: {{name: one}}\nvariants:\n  - {{name: other}}\n",
            self.weigh.display()
        )
    }
}

/// The sums of the counts that the log contains for each round.
fn sent_by_age(log: &str) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for line in log.lines() {
        let Some((_, rest)) = line.split_once("counts=[") else {
            continue;
        };
        let counts = rest.split(']').next().unwrap_or_default().split(',');
        for (index, count) in counts
            .filter_map(|one| one.trim().parse::<u64>().ok())
            .enumerate()
        {
            match sums.get_mut(index) {
                Some(sum) => *sum += count,
                None => sums.push(count),
            }
        }
    }
    sums
}

/// The first ten counts as percentages of the mean of the later half.
fn shares(counts: &[u64]) -> String {
    let later = &counts[counts.len() / 2..];
    let mean = number(later.iter().sum()) / number(later.len() as u64);
    let percent = |count: &u64| format!("{:.0} %", number(*count) / mean * 100.0);
    let first: Vec<String> = counts.iter().take(10).map(percent).collect();
    first.join(", ")
}

/// One row of the table: rate and processor time.
fn cells(summary: &Value) -> anyhow::Result<String> {
    let variants = summary["variants"].as_array();
    let Some(other) = variants.and_then(|variants| variants.get(1)) else {
        bail!("the summary has no second variant");
    };
    let (rate, cpu) = (
        &other["metrics"]["requests_per_s"],
        &other["metrics"]["cpu_us_per_request"],
    );
    if rate["value"].is_null() {
        return Ok(format!("no number: {} | | | | ", other["verdict_text"]));
    }
    let half = |one: &Value, low: &str, high: &str| -> Option<f64> {
        let overhead = &one["overhead"];
        Some((overhead[high].as_f64()? - overhead[low].as_f64()?) / 2.0)
    };
    let percent =
        |share: Option<f64>| share.map_or("none".to_owned(), |it| format!("{:.1} %", it * 100.0));
    let us = |us: Option<f64>| us.map_or("none".to_owned(), |it| format!("{it:.2}"));
    let ratio = rate["overhead"]["ratio"].as_f64();
    let claim = rate["overhead"]["claim"].as_str().unwrap_or("nothing");
    Ok(format!(
        "{} | {} | {} | {} | {claim}",
        percent(ratio.map(|ratio| ratio - 1.0)),
        percent(half(rate, "ratio_low", "ratio_high")),
        us(cpu["overhead"]["difference"].as_f64()),
        us(half(cpu, "difference_low", "difference_high")),
    ))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of one trial stay far below 2^53"
)]
fn number(count: u64) -> f64 {
    count as f64
}
