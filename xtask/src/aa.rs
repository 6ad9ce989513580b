//! `cargo xtask aa`: checks the instrument against known differences, on real processes.
//!
//! Main idea: we know the truth because we plant it. The task compares a server with itself, with
//! itself plus a planted delay, and next to neighbors with a known cost. The results of `weigh lab`
//! go into METHODOLOGY.md. Each piece runs alone, and prints its expected duration before it
//! begins.

mod burners;
mod choices;
mod effects;
mod factors;
mod figures;
mod gateways;
mod in_turn;
mod labs;
mod ladder;
mod latency;
mod neighbors;
mod orders;
mod planted;
mod streams;
mod truth;

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::bench;
use crate::repository::root;
use burners::Burners;
use labs::{Bench, Programs};

/// Planted differences, and the number of runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pieces to run, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    piece: Vec<Piece>,
    /// Number of runs per lab, instead of the piece's own number.
    #[arg(long, visible_alias = "runs")]
    repeat: Option<u64>,
    /// Length of the load in a round side by side, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// Number of rounds per run side by side. With more than two variants, a run has at least the
    /// rounds that an interval requires.
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Requests per second to each system side by side, instead of the piece's own number.
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<u32>,
    /// Planted amounts, in microseconds.
    #[arg(
        long,
        value_name = "US",
        value_delimiter = ',',
        default_value = "5,20,200"
    )]
    amount: Vec<u32>,
    /// Labs for `--piece orders`.
    #[arg(
        long,
        value_name = "LAB",
        value_delimiter = ',',
        default_value = "router-extensibility/static-subgraph"
    )]
    lab: Vec<String>,
    /// Variants of these labs to compare. Each lab must have all of them. The default is all variants.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    variants: Vec<String>,
    /// Keep every core busy during the runs, with processes of the lowest priority (`nice -n 19`).
    #[arg(long)]
    busy: bool,
    /// Use `weigh`, `gateway` and `planets` from this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Folder for the recordings. Without it, the recordings are deleted.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Rows of `--piece latency` and `--piece neighbors` to run, by words of their names. Examples
    /// are 'open 12ms', 'closed c=64 jitter' and 'at once'.
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    only: Vec<String>,
    #[command(flatten)]
    latency: latency::Options,
    /// Write the results into METHODOLOGY.md.
    #[arg(long)]
    write: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Piece {
    /// In turn: the null server twice. The true difference is zero.
    Same,
    /// In turn: two null servers, one of them 200 us slower.
    Delay,
    /// In turn: null servers that burn 0.1, 1 and 5 ms of processor time per request.
    Cpu,
    /// Side by side: the same gateway twice. A run takes about 30 s.
    Twice,
    /// Side by side: the same gateway twice. Each system has its own core, or the scheduler places
    /// it.
    Placement,
    /// Side by side: the same gateway twice. Systems and generator have priority over other
    /// programs, or the same priority.
    Precedence,
    /// Side by side: the same gateway three times.
    Thrice,
    /// Side by side: the same gateway nine times.
    Nine,
    /// Side by side: the origin of one gateway responds some microseconds later.
    PlantedDelay,
    /// Side by side: the origin of one gateway uses some microseconds more CPU time.
    PlantedBurn,
    /// Side by side: a ladder of null servers, each some microseconds later.
    Ladder,
    /// Side by side: eight null servers with three planted factors.
    Factors,
    /// Side by side: null servers with planted times of streams.
    Streams,
    /// Side by side: null servers that deliver events over WebSocket later.
    Delivery,
    /// Side by side: null servers that answer calls of gRPC later.
    Calls,
    /// Side by side: the same gateway twice, next to a null server that disturbs it.
    Neighbors,
    /// Labs in both orders of variants, to check whether their intervals overlap.
    Orders,
    /// Side by side: services with 0.1 to 400 ms latency, and services that are 2 % slower, by
    /// `weigh ab`. This takes hours in all and can be resumed (see `--only` and `--results`).
    Latency,
}

impl Piece {
    /// Requests per second to each system side by side.
    fn rate(self) -> u32 {
        match self {
            // Within a round of 2 s the requests differ more than the starts do. With 200 requests an
            // interval is twice as wide as with 500.
            Piece::PlantedDelay
            | Piece::PlantedBurn
            | Piece::Ladder
            | Piece::Factors
            | Piece::Calls => 250,
            // A stream takes 100 ms, and its events keep the machine busy.
            Piece::Streams | Piece::Delivery => 40,
            _ => 100,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (latency, others): (Vec<Piece>, Vec<Piece>) = args
        .piece
        .iter()
        .partition(|piece| **piece == Piece::Latency);
    if !latency.is_empty() {
        finish(Piece::Latency, &of_latency(args)?, args)?;
    }
    if others.is_empty() {
        return Ok(());
    }
    let programs = match &args.programs {
        Some(folder) => Programs::of(folder)?,
        None => Programs::built()?,
    };
    let temporary = tempfile::tempdir().context("a temporary folder")?;
    let folder = match &args.keep {
        Some(folder) => {
            fs::create_dir_all(folder).context("`--keep` can be made")?;
            fs::canonicalize(folder).context("`--keep` is a folder")?
        }
        None => temporary.path().to_owned(),
    };
    let bench = Bench {
        programs,
        folder,
        seconds: args.seconds,
        rounds: args.rounds,
        rate: Cell::new(0),
        withheld: Cell::new(0),
        runs: Cell::new(0),
    };
    // The processes end with this function, and in any case with this process.
    let _burners = args.busy.then(Burners::start).transpose()?;
    for piece in others {
        bench.rate.set(args.rate.unwrap_or(piece.rate()));
        let section = section(&bench, piece, args)? + &bench.withheld();
        finish(piece, &section, args)?;
    }
    Ok(())
}

/// Prints a section, and writes it into the document with `--write`.
fn finish(piece: Piece, section: &str, args: &Args) -> anyhow::Result<()> {
    bench::say(section);
    if args.write {
        write(&command(piece, args.busy), section)?;
    }
    Ok(())
}

/// The section about services of any latency. It needs only the program `weigh`.
fn of_latency(args: &Args) -> anyhow::Result<String> {
    let folder = match &args.programs {
        Some(folder) => folder.clone(),
        None => bench::programs("release", &["weigh"])?,
    };
    let weigh = fs::canonicalize(folder.join("weigh"))
        .with_context(|| format!("`{}` has no `weigh`", folder.display()))?;
    let _burners = args.busy.then(Burners::start).transpose()?;
    latency::section(&latency::Plan {
        weigh: &weigh,
        repeat: args.repeat.unwrap_or(30),
        rounds: args.rounds,
        is_busy: args.busy,
        only: &args.only,
        options: &args.latency,
    })
}

fn section(bench: &Bench, piece: Piece, args: &Args) -> anyhow::Result<String> {
    let repeat = |usual| args.repeat.unwrap_or(usual);
    match piece {
        Piece::Same => in_turn::same(bench, repeat(10)),
        Piece::Delay => in_turn::delay(bench),
        Piece::Cpu => in_turn::cpu(bench),
        Piece::Twice => gateways::section(bench, 2, repeat(60)),
        Piece::Placement => choices::section(bench, &choices::PLACEMENT, repeat(8)),
        Piece::Precedence => choices::section(bench, &choices::PRECEDENCE, repeat(8)),
        Piece::Thrice => gateways::section(bench, 3, repeat(20)),
        Piece::Nine => gateways::section(bench, 9, repeat(20)),
        Piece::PlantedDelay => planted::delay(bench, &args.amount, repeat(30)),
        Piece::PlantedBurn => planted::burn(bench, &args.amount, repeat(30)),
        Piece::Ladder => ladder::section(bench, repeat(30)),
        Piece::Factors => factors::section(bench, repeat(30)),
        Piece::Streams => streams::section(bench, &streams::EVENTS_OVER_HTTP, repeat(30)),
        Piece::Delivery => streams::section(bench, &streams::DELIVERY, repeat(30)),
        Piece::Calls => streams::section(bench, &streams::CALLS, repeat(30)),
        Piece::Neighbors if args.write && !args.only.is_empty() => {
            bail!("a part of the neighbors is no table; leave out `--write` or `--only`")
        }
        Piece::Neighbors => neighbors::section(bench, &args.only, repeat(5)),
        Piece::Orders => orders::section(bench, &args.lab, &args.variants),
        Piece::Latency => of_latency(args),
    }
}

/// True if one of the filters has only words of that name. Without a filter every row matches.
fn is_wanted(name: &str, filters: &[String]) -> bool {
    let words: Vec<&str> = name.split(' ').collect();
    let is_named = |filter: &String| filter.split_whitespace().all(|word| words.contains(&word));
    filters.is_empty() || filters.iter().any(is_named)
}

/// The document with the results.
const DOCUMENT: &str = "METHODOLOGY.md";

/// The command that writes a table. The markers around the table contain it.
fn command(piece: Piece, busy: bool) -> String {
    use clap::ValueEnum as _;
    let value = piece.to_possible_value();
    let name = value.as_ref().map_or("", |value| value.get_name());
    let busy = if busy { " --busy" } else { "" };
    format!("cargo xtask aa --piece {name}{busy} --write")
}

fn write(command: &str, section: &str) -> anyhow::Result<()> {
    let path = root().join(DOCUMENT);
    let page = fs::read_to_string(&path).with_context(|| format!("{DOCUMENT} cannot be read"))?;
    let begin = format!("<!-- written by {command}: begin -->");
    let end = format!("<!-- written by {command}: end -->");
    let Some((before, rest)) = page.split_once(&begin) else {
        bail!("{DOCUMENT} has no line `{begin}`");
    };
    let Some((_, after)) = rest.split_once(&end) else {
        bail!("{DOCUMENT} has no line `{end}`");
    };
    fs::write(
        &path,
        format!("{before}{begin}\n\n{}\n\n{end}{after}", section.trim_end()),
    )
    .with_context(|| format!("{DOCUMENT} cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_every_piece() {
        use clap::ValueEnum as _;
        let page = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        for piece in Piece::value_variants() {
            let command = command(*piece, false);
            for end in ["begin", "end"] {
                let line = format!("<!-- written by {command}: {end} -->");
                assert_eq!(page.matches(&line).count(), 1, "{line}");
            }
        }
    }
}
