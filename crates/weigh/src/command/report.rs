//! `weigh report`: renders a recording again.

use std::path::{Path, PathBuf};

use analysis::Summary;
use experiment::console::Console;
use experiment::exit::{Exit, Failure};

use super::lab::curve_in;
use super::recording_file::{FOLDER, newest, read};
use crate::format::{Format, Page};
use crate::gates::{self, GateArgs};

/// Print the report of a recording again.
///
/// The report also has the gates of the run. The exit code depends on the gates of this command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of a recording, the `recording.json` in it, or a file of `weigh load --record` [default: the
    /// newest recording in `recordings`].
    #[arg(value_name = "RECORDING")]
    recording: Option<PathBuf>,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Print all tables on the terminal, like --format full.
    #[arg(long, conflicts_with = "format")]
    full: bool,
    /// The variant in a layout of another tool [default: the baseline].
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Compare all variants with this one instead of the baseline.
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    #[command(flatten)]
    gates: GateArgs,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let format = match args.full {
        true => Format::Page(Page::Full),
        false => args.format,
    };
    if let (Some(_), Format::Page(_)) = (&args.variant, format) {
        return Err(Failure::bad_input(
            "`--variant` is only for the layouts of other tools. This layout shows all variants",
        ));
    }
    let path = match &args.recording {
        Some(given) => given.clone(),
        None => {
            let found = newest(Path::new(FOLDER))?;
            console.say(format!(
                "weigh: the newest recording is {}",
                found.display()
            ));
            found
        }
    };
    if let Format::Page(page) = format
        && args.against.is_none()
        && let Some(curve) = curve_in(&path, &args.gates)?
    {
        console.answer(&page.render_curve(&curve, console.terminal()));
        let levels = curve.levels().iter();
        let gates = levels.map(|level| args.gates.exit_of_own(&level.summary.gates));
        return Ok(gates.max().unwrap_or(Exit::Done));
    }
    let mut recording = read(&path)?;
    if let Some(name) = &args.against {
        recording.compare_with(name).map_err(Failure::bad_input)?;
    }
    let names = recording.variants.iter().map(|variant| &*variant.name);
    args.gates.check(&names.collect::<Vec<_>>())?;
    let all = args.gates.with_those_of_run(&recording)?;
    let summary = all.judge(Summary::of(&recording));
    let answer = match format {
        Format::Page(page) => page.render(&recording, &summary, console.terminal()),
        Format::Theirs(layout) => layout
            .render(&recording, args.variant.as_deref())
            .map_err(|error| Failure::bad_input(error.to_string()))?,
    };
    console.answer(&answer);
    if let Format::Theirs(_) = format {
        gates::say(&summary.gates, console);
    }
    Ok(args.gates.exit_of_own(&summary.gates))
}
