//! `weigh merge`: the shards of one load, merged into one recording.

use std::fs;
use std::path::PathBuf;

use analysis::Summary;
use analysis::summary::CheckState;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};
use recording::Recording;

use super::load;
use super::recording_file::read;
use crate::format::Format;

/// Merge the shards of one load.
///
/// Each recording is one shard of a load with several generators (`weigh load --shard 2/4 --record
/// FILE`). Counts add up, and histograms merge without loss. `weigh` checks each shard separately. If one
/// generator was late or paused, the report names it, and the exit code is 7.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The recordings of all shards, in any order.
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Also write the recording of the whole load to this file, for `weigh report`.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let mut shards = Vec::with_capacity(args.recordings.len());
    let mut is_doubtful = false;
    for path in &args.recordings {
        let recording = read(path)?;
        is_doubtful |= report_troubles(&recording, &format!("`{}`", path.display()), console);
        shards.push((path.display().to_string(), recording));
    }
    let whole = recording::merge(shards).map_err(|error| Failure::bad_input(error.to_string()))?;
    if let Some(path) = &args.record {
        fs::write(path, whole.to_json()).map_err(|error| {
            Failure::not_ready(format!("`{}` cannot be written: {error}", path.display()))
        })?;
    }
    match args
        .format
        .render(&whole, &Summary::of(&whole), None, console.terminal())
    {
        Ok(answer) => console.answer(&answer),
        Err(error) => console.no_answer(error),
    }
    Ok(exit_of(&whole, is_doubtful))
}

/// Prints the problems of one shard. `place` names its file or its pod. True if a check failed.
pub(super) fn report_troubles(shard: &Recording, place: &str, console: Console) -> bool {
    let troubles = troubles(shard);
    for trouble in &troubles {
        console.error(format_args!(
            "shard {} ({place}): {}",
            shard.load.shard, trouble.text
        ));
    }
    troubles.iter().any(|trouble| trouble.is_failed)
}

/// A failed or weak check of one generator.
struct Trouble {
    is_failed: bool,
    text: String,
}

/// The problems of one shard. Its wrong responses appear in the whole load.
fn troubles(recording: &Recording) -> Vec<Trouble> {
    let summary = Summary::of(recording);
    let checks = summary.variants.iter().flat_map(|row| &row.checks);
    let wrong = checks.filter(|check| check.state != CheckState::Ok);
    wrong
        .map(|check| Trouble {
            is_failed: check.state == CheckState::Failed,
            text: format!(
                "{} {}: {}",
                check.state,
                check.name,
                report::check_text(check)
            ),
        })
        .collect()
}

/// The exit code of a single load, or of the checks of the shards if it is higher.
fn exit_of(whole: &Recording, is_doubtful: bool) -> Exit {
    let own = match is_doubtful {
        true => Exit::Withheld,
        false => Exit::Done,
    };
    let exits = whole.rounds.iter();
    exits
        .map(|round| load::exit_of(whole.interrupted, &round.outcomes))
        .fold(own, Exit::max)
}
