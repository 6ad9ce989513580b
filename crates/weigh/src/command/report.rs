//! `weigh report`: renders a recording again.

use std::fs;
use std::path::{Path, PathBuf};

use report::recording::Kind;
use report::{Recording, Summary};

use crate::cli::Failure;
use crate::console::Console;
use crate::exit::Exit;

/// Render a recording again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A recording folder, or the `recording.json` in it.
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// How an answer is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table for a terminal.
    Text,
    /// Markdown, to paste into a pull request.
    Md,
    /// One page that works offline.
    Html,
    /// Every figure, with its unit in its name.
    Json,
    /// One line a figure.
    Csv,
}

impl Format {
    /// Renders a lab's recording.
    pub(crate) fn render(self, recording: &Recording, summary: &Summary, width: usize) -> String {
        match self {
            Format::Text => report::text(recording, summary, width),
            Format::Md => report::markdown(recording, summary),
            Format::Html => report::html(recording, summary),
            Format::Json => report::json(recording, summary),
            Format::Csv => report::csv(recording, summary),
        }
    }
}

pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    let recording = read(&args.recording)?;
    if recording.kind == Kind::Load && matches!(args.format, Format::Text | Format::Json) {
        console.answer(&match args.format {
            Format::Json => report::load_json(&recording),
            _ => report::load_text(&recording),
        });
        return Ok(Exit::Done);
    }
    let summary = Summary::of(&recording);
    console.answer(&args.format.render(&recording, &summary, console.width));
    Ok(Exit::Done)
}

fn read(given: &Path) -> Result<Recording, Failure> {
    let path = if given.is_dir() {
        given.join("recording.json")
    } else {
        given.to_path_buf()
    };
    let shown = path.display();
    let text = fs::read_to_string(&path).map_err(|error| {
        Failure::bad_input(format!(
            "`{shown}` cannot be read: {error}; expected a recording folder or a recording.json"
        ))
    })?;
    Recording::from_json(&text).map_err(|error| Failure::bad_input(format!("`{shown}`: {error}")))
}
