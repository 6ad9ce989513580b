//! `weigh compare`: two recordings, two variants of one, or result files of other tools.

mod operand;

use analysis::Comparison;
use analysis::compare::Row;
use clap::ValueEnum;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};

use crate::gates::{self, GateArgs};

/// Compare two recordings, or result files of other tools.
///
/// RESULT is the folder or file of a recording, a result file of another tool, or a folder of such files,
/// one for each run of one system. `RESULT#NAME` is one variant of a recording, or one command of a
/// hyperfine file by name or number. `weigh` pairs two variants of one recording by round. It compares
/// other results without pairs, and the report contains this fact. Overhead is B minus A.
///
/// `weigh` reads results of k6 (text, --summary-export, handleSummary, --new-machine-readable-summary,
/// --out json or csv), vegeta (report as text, JSON or hdrplot, and encode as JSON or CSV), wrk, wrk2,
/// HdrHistogram tables, oha (text, JSON, CSV), bombardier (text, JSON), ab (text, -e, -g), hey (text, -o
/// csv), autocannon --json, Artillery --output, hyperfine --export-json, JMeter (JTL as CSV or XML,
/// statistics.json, aggregate report), Locust (stats.csv, stats_history.csv), Gatling (stats.json,
/// global_stats.json, simulation.log as text), ghz (text, JSON, CSV), Fortio -json, Nighthawk's JSON,
/// Hyperfoil's run, h2load and siege. A file may be compressed with gzip. `weigh` recognizes files by
/// their content. The report explains how each tool defines its figures.
///
/// Several reports in one file are several runs. If both files name their requests (labels of JMeter,
/// names of Locust, k6 or Gatling), each common name is a row.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The baseline: a recording or a result of another tool.
    #[arg(value_name = "A")]
    a: String,
    /// The result to compare with the baseline.
    #[arg(value_name = "B")]
    b: String,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Page,
    /// Give a verdict even if load or machine differ, or if requests failed.
    #[arg(long)]
    despite_differences: bool,
    /// Unit of latencies in files that do not name it, such as a table of HdrHistogram.
    #[arg(long, value_enum)]
    unit: Option<LatencyUnit>,
    #[command(flatten)]
    gates: GateArgs,
}

/// A unit of latencies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LatencyUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl LatencyUnit {
    /// The unit in microseconds.
    fn us(self) -> f64 {
        match self {
            Self::Ns => 1e-3,
            Self::Us => 1.0,
            Self::Ms => 1e3,
            Self::S => 1e6,
        }
    }
}

/// A layout of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Page {
    /// Tables for a terminal.
    Text,
    /// Markdown, to paste into a pull request.
    Md,
    /// Every figure, with its unit in its name.
    Json,
    /// JUnit's XML, for CI.
    Junit,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let unit_us = args.unit.map(LatencyUnit::us);
    let (a, b) = operand::both(&args.a, &args.b, unit_us)?;
    if args.unit.is_some() && !a.source.is_unit_open() && !b.source.is_unit_open() {
        return Err(Failure::bad_input(
            "`--unit` is for files that do not name the unit of their latencies. Both files name it. Leave `--unit` out",
        ));
    }
    let comparison = Comparison::of(&a, &b, args.despite_differences)
        .map_err(|error| Failure::bad_input(error.to_string()))?;
    let names = comparison.rows.iter().map(|row| &*row.name);
    args.gates.check(&names.collect::<Vec<_>>())?;
    let comparison = args.gates.judge_comparison(comparison);
    console.answer(&match args.format {
        Page::Text => report::comparison_text(&comparison, console.width),
        Page::Md => report::comparison_markdown(&comparison),
        Page::Json => report::comparison_json(&comparison),
        Page::Junit => report::comparison_junit(&comparison),
    });
    Ok(exit_of(&comparison))
}

/// The most serious result, as an exit code.
fn exit_of(comparison: &Comparison) -> Exit {
    let of_row = |row: &Row| {
        row.no_number
            .as_ref()
            .map_or(Exit::Done, |none| Exit::from(none.kind()))
    };
    let withheld = if comparison.obstacles.is_empty() {
        Exit::Done
    } else {
        Exit::Withheld
    };
    let gates = gates::exit_of(&comparison.gates);
    let rows = comparison.rows.iter().map(of_row);
    rows.chain([withheld, gates]).max().unwrap_or(Exit::Done)
}
