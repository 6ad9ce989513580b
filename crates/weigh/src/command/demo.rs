//! `weigh demo`: the measurement of a planted difference on this machine.

mod text;

use std::path::{Path, PathBuf};

use experiment::build_cache::BuildCache;
use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::files::Unwritten;
use experiment::record;
use experiment::stop::StopSignal;

use super::lab::Run;
use super::recording_file;
use crate::consent::ConsentArgs;
use crate::format::Page;
use crate::gates::GateArgs;
use text::Found;

/// Measure a planted delay of 200 us on this machine, in about 12 s.
///
/// `weigh` contains two servers that wait, one of them 200 us longer. It starts, proves and loads them
/// side by side, like the systems of any lab. The answer is the difference with its interval. You need to
/// install nothing else.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the recording.
    #[arg(long, value_name = "DIR", default_value = recording_file::FOLDER)]
    out: PathBuf,
}

/// The name of the lab file.
const FILE: &str = "demo.yaml";

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let program = environment::own_path()
        .map_err(|error| Failure::bug(format!("weigh cannot find its own program: {error}")))?;
    let lab_text = text::lab(&program.to_string_lossy());
    let files = Unwritten(vec![(PathBuf::from(FILE), lab_text.clone().into_bytes())]);
    let lab = lab::parse(Path::new(FILE), &files).map_err(|found| {
        console.say(found.render(console.color));
        Failure::bug("the lab of `weigh demo` has mistakes. Nothing was started")
    })?;
    let running = Run {
        cluster: None,
        unwritten: None,
        max_time: None,
        out: &args.out,
        consent: &ConsentArgs::default(),
        flamegraph: false,
        why: false,
        quick: false,
        format: Page::Text,
        gates: &GateArgs::default(),
        revisions: None,
        account: None,
        board: None,
    };
    console.say("weigh: measuring two servers side by side, for some 12 s");
    let run = running.recorded(&lab, &mut BuildCache::default(), console, stop)?;
    let saved = record::write(&run.folder, FILE, &lab_text);
    let found = Found::of(&run.summary);
    console.answer(&text::answer(
        &found,
        run.summary.rounds_measured,
        &run.folder,
    ));
    run.check_saved()?;
    saved?;
    Ok(run.exit())
}
