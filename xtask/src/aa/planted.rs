//! A known amount on top of a gateway: what it asks before each answer is later, or burns more.
//!
//! The gateway asks a coprocessor once a request, which is a null server here. So the planted amount
//! comes through a real system, with all that varies from start to start.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

use super::figures::{Difference, Figure, Tally};
use super::labs::Bench;
use crate::bench;
use crate::repository::root;

/// The figures in which an amount is looked for, and what the null server of the baseline does.
struct Planted<'a> {
    what: &'a str,
    flag: &'a str,
    /// Further flags of the null server.
    more: &'a str,
    base_us: u32,
    figures: &'a [Figure],
}

/// What the coprocessor answers: go on, and change nothing.
const GO_ON: &str = r#"{\"version\":1,\"stage\":\"RouterRequest\",\"control\":\"continue\"}"#;

/// How a gateway is told to ask it.
const ASK: &str = "coprocessor:\n  url: ${env.COPROCESSOR}\n  timeout: 5s\n  \
                   router: {request: {headers: true}}\n";

pub(super) fn delay(bench: &Bench, amounts: &[u32], repeat: u64) -> anyhow::Result<String> {
    let planted = Planted {
        what: "later",
        flag: "--delay",
        more: "",
        base_us: 200,
        figures: &[Figure::Typical, Figure::Median, Figure::Mean],
    };
    section(bench, &planted, amounts, repeat)
}

pub(super) fn burn(bench: &Bench, amounts: &[u32], repeat: u64) -> anyhow::Result<String> {
    let in_program = burned(bench, "of processor time more", "", amounts, repeat)?;
    let what = "of processor time in the kernel more";
    let in_kernel = burned(bench, what, "--burn-in-kernel", amounts, repeat)?;
    Ok(format!("{in_program}\n{in_kernel}"))
}

fn burned(
    bench: &Bench,
    what: &str,
    more: &str,
    amounts: &[u32],
    repeat: u64,
) -> anyhow::Result<String> {
    let planted = Planted {
        what,
        flag: "--burn",
        more,
        // More than the null server needs by itself, so that all of it is burned.
        base_us: 200,
        figures: &[Figure::Cpu, Figure::Typical],
    };
    section(bench, &planted, amounts, repeat)
}

fn section(
    bench: &Bench,
    planted: &Planted<'_>,
    amounts: &[u32],
    repeat: u64,
) -> anyhow::Result<String> {
    let mut rows = String::new();
    for amount in amounts {
        let lab = lab(bench, planted, *amount)?;
        let truth = f64::from(*amount);
        let mut tallies = Tally::each(planted.figures);
        for seed in 1..=repeat {
            let run = bench.lab(&format!("planted-{amount}"), &lab, seed)?;
            let mut line = format!("{amount} us, {seed}/{repeat}:");
            for tally in &mut tallies {
                let figure = tally.figure.name();
                for Difference { low, high, .. } in tally.add(&run, &["planted"])? {
                    let _ = write!(line, " {figure} {low:+.1} to {high:+.1} us,");
                }
            }
            bench::say(line.trim_end_matches(','));
        }
        for tally in &tallies {
            let found = tally.count(|difference| difference.low > 0.0);
            let inside = tally.count(|difference| difference.contains(truth));
            let _ = writeln!(
                rows,
                "| {amount} us | {} | {found} of {repeat} | {inside} of {repeat} | {:+.1} us ±{:.1} |",
                tally.figure.name(),
                tally.value(),
                tally.half_width()
            );
        }
    }
    Ok(format!(
        "A gateway whose coprocessor is so much {}, against one whose coprocessor is not; {}, \
         {repeat} runs each:\n\n\
         | planted | figure | found in | inside the interval in | typical result |\n\
         |---|---|---|---|---|\n{rows}",
        planted.what,
        bench.setting(1)
    ))
}

/// Writes the configuration of a gateway that asks a coprocessor, and gives its place.
pub(super) fn configuration(bench: &Bench) -> anyhow::Result<PathBuf> {
    let plain = root().join("labs/router-extensibility/baseline/baseline.yaml");
    let configuration = bench.folder.join("with-coprocessor.yaml");
    fs::write(&configuration, fs::read_to_string(plain)? + ASK)
        .context("a configuration can be written")?;
    Ok(configuration)
}

/// A coprocessor in the lines of a lab, with this flag of a null server, which is a setting, and more flags.
pub(super) fn coprocessor(bench: &Bench, flag: &str, more: &str) -> String {
    format!(
        "  coprocessor:\n    settings: {{flag: {flag}}}\n    \
         run: \"'{}' null-server --listen {{{{addr}}}} --answer '{GO_ON}' {{{{flag}}}} {more}\"\n    \
         ready: {{path: /}}\n    limits: {{cpus: 1}}\n",
        bench.programs.weigh.display(),
    )
}

/// Where a gateway finds its coprocessor, in its environment.
pub(super) const COPROCESSOR: &str = "      COPROCESSOR: \"{{coprocessor.url}}\"\n";

fn lab(bench: &Bench, planted: &Planted<'_>, amount: u32) -> anyhow::Result<String> {
    let configuration = configuration(bench)?;
    let Planted {
        flag,
        more,
        base_us,
        ..
    } = planted;
    let command = format!("\"{}\"", bench.gateway_command(&configuration));
    let gateway = bench.gateway("", &command, COPROCESSOR);
    Ok(format!(
        "{}{}{gateway}\
         expect: {{status: 200, graphql: no-errors, same-as: baseline}}\n\
         baseline: {{name: plain}}\nvariants:\n  \
         - {{name: planted, with: {{coprocessor.flag: {flag}={}us}}}}\n",
        bench.side_by_side(1),
        coprocessor(bench, &format!("{flag}={base_us}us"), more),
        base_us + amount
    ))
}
