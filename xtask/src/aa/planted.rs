//! A known amount on top of a gateway. The service that it calls before each response is later, or burns
//! more.
//!
//! The gateway calls a coprocessor once a request, and the coprocessor is a null server here. So the planted
//! amount comes through a real system, with all its variation from start to start.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;

use super::figures::{Difference, Figure};
use super::labs::Bench;
use super::truth::{self, Row};
use crate::bench;
use crate::repository::root;

/// The figures that should show an amount, and the behavior of the baseline's null server.
struct Planted<'a> {
    what: &'a str,
    flag: &'a str,
    /// Further flags of the null server.
    more: &'a str,
    base_us: u32,
    figures: &'a [Figure],
}

/// The coprocessor's response: continue, and change no part of the request.
const GO_ON: &str = r#"{\"version\":1,\"stage\":\"RouterRequest\",\"control\":\"continue\"}"#;

/// The gateway's configuration that makes it call the coprocessor.
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
        // More than the null server needs by itself, so that it burns the full amount.
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
    let mut rows = Vec::new();
    for amount in amounts {
        let lab = lab(bench, planted, *amount)?;
        let mut found = vec![Vec::new(); planted.figures.len()];
        for seed in 1..=repeat {
            let run = bench.lab(&format!("planted-{amount}"), &lab, seed)?;
            let mut line = format!("{amount} us, {seed}/{repeat}:");
            for (found, figure) in found.iter_mut().zip(planted.figures) {
                let difference = run.difference("planted", *figure)?;
                let Difference { low, high, .. } = difference;
                let _ = write!(line, " {} {low:+.1} to {high:+.1} us,", figure.name());
                found.push(difference);
            }
            bench::say(line.trim_end_matches(','));
        }
        let row = |(found, figure): (Vec<Difference>, &Figure)| Row {
            planted_us: f64::from(*amount),
            subject: figure.name().to_owned(),
            found,
            added_us: Vec::new(),
        };
        rows.extend(found.into_iter().zip(planted.figures).map(row));
    }
    Ok(format!(
        "A gateway whose coprocessor is so much {}, against one whose coprocessor is not; {}, \
         {repeat} runs each:\n\n{}",
        planted.what,
        bench.setting(1),
        truth::table("figure", &rows),
    ))
}

/// Writes the configuration of a gateway that calls a coprocessor, and returns its path.
pub(super) fn configuration(bench: &Bench) -> anyhow::Result<PathBuf> {
    let plain = root().join("labs/router-extensibility/baseline/baseline.yaml");
    let configuration = bench.folder.join("with-coprocessor.yaml");
    fs::write(&configuration, fs::read_to_string(plain)? + ASK)
        .context("a configuration can be written")?;
    Ok(configuration)
}

/// A coprocessor in the syntax of a lab. This flag of the null server is a setting, and `more` adds further
/// flags.
pub(super) fn coprocessor(bench: &Bench, flag: &str, more: &str) -> String {
    format!(
        "  coprocessor:\n    settings: {{flag: {flag}}}\n    \
         run: \"'{}' null-server --listen {{{{addr}}}} --answer '{GO_ON}' {{{{flag}}}} {more}\"\n    \
         ready: {{path: /}}\n    limits: {{cpus: 1}}\n",
        bench.programs.weigh.display(),
    )
}

/// The address of the coprocessor, in the gateway's environment.
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
