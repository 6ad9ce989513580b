//! `weigh history`: the cost of variants over time.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use analysis::history::{self, Entry, EntryOrigin, Series};
use clap::ValueEnum;
use experiment::console::Console;
use experiment::digest::sha256;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::files;

use super::recording_file::{parse, read_text};

/// Show the cost of variants run by run, and the runs at which the cost changed.
///
/// The history is a file with one line for each run and variant. `weigh history add` adds lines. You can
/// keep the file on a branch, in a cache or as an artifact. It contains overheads, which compare a variant
/// with its baseline in one run. Runs with different machines, loads, methods or orders form separate
/// series.
///
/// A change is a new level that holds for at least three runs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// The file of the history.
    #[arg(long, value_name = "FILE", default_value = FILE, global = true)]
    file: PathBuf,
    /// Layout of the answer.
    #[arg(long, value_enum, default_value = "text")]
    format: Layout,
    /// Show only the series of this lab.
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

const FILE: &str = "weighbridge-history.jsonl";

const EXAMPLES: &str = "\
Examples:
  weigh history add recordings/api-*
  weigh history
  weigh history --format html > history.html";

#[derive(Debug, clap::Subcommand)]
enum Action {
    Add(Add),
}

/// Add recordings to the history. A recording that it already contains is skipped.
#[derive(Debug, clap::Args)]
struct Add {
    /// Folders of recordings, or the recording.json in them.
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// The measured commit, if the recordings do not contain it [default: the commit in CI].
    #[arg(long, value_name = "COMMIT")]
    commit: Option<String>,
    /// URL of the recordings. The history then contains this URL and the name of the folder instead of
    /// the path.
    #[arg(long, value_name = "URL")]
    link: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// A paragraph a series.
    Text,
    /// One page that works offline.
    Html,
    /// The lines themselves, as one array.
    Json,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<Exit, Failure> {
    match &args.action {
        Some(Action::Add(add)) => self::add(&args.file, add, console),
        None => show(args, console),
    }
}

fn show(args: &Args, console: Console) -> Result<Exit, Failure> {
    let mut entries = entries(&args.file)?.ok_or_else(|| {
        Failure::bad_input(format!(
            "expected the history `{}`, found no such file. Create it with `weigh history add RECORDING…`, or name another file with --file",
            args.file.display()
        ))
    })?;
    if let Some(lab) = &args.lab {
        let known: BTreeSet<String> = entries.iter().map(|entry| entry.lab.clone()).collect();
        if !known.contains(lab) {
            let known: Vec<String> = known.into_iter().collect();
            return Err(Failure::bad_input(format!(
                "expected a lab of the history, found `{lab}`. The labs are {}",
                known.join(", ")
            )));
        }
        entries.retain(|entry| entry.lab == *lab);
    }
    console.answer(&match args.format {
        Layout::Text => report::history::text(&Series::all(&entries)),
        Layout::Html => report::history_page(&Series::all(&entries)),
        Layout::Json => serde_json::to_string_pretty(&entries).expect("text and finite numbers"),
    });
    Ok(Exit::Done)
}

fn add(file: &Path, add: &Add, console: Console) -> Result<Exit, Failure> {
    let known = entries(file)?.unwrap_or_default();
    let mut known: BTreeSet<String> = known.into_iter().map(|entry| entry.sha256).collect();
    let of_ci =
        || environment::inherited("GITHUB_SHA").or_else(|| environment::inherited("CI_COMMIT_SHA"));
    let commit = add
        .commit
        .clone()
        .or_else(of_ci)
        .filter(|it| !it.is_empty());
    let mut lines = String::new();
    // All recordings are read before the first write, so that a mistake leaves the history unchanged.
    for path in &add.recordings {
        let text = read_text(path)?;
        let recording = parse(path, &text)?;
        let origin = EntryOrigin {
            commit: commit.clone(),
            recording: match &add.link {
                Some(link) => linked(link, path),
                None => path.display().to_string(),
            },
            sha256: sha256(text.as_bytes()),
        };
        let shown = path.display();
        if !known.insert(origin.sha256.clone()) {
            console.say(format_args!("weigh: `{shown}` is in the history already"));
            continue;
        }
        let entries = Entry::of(&recording, &origin);
        if entries.is_empty() {
            console.say(format_args!(
                "weigh: `{shown}` has no overhead with an interval and is not added"
            ));
        }
        lines.extend(entries.iter().map(|entry| entry.line() + "\n"));
    }
    let refused =
        |error| Failure::not_ready(format!("`{}` cannot be written: {error}", file.display()));
    let opened = fs::File::options().create(true).append(true).open(file);
    // Written at once, so that two jobs that add at the same time do not mix their lines.
    opened
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .map_err(refused)?;
    console.say(format_args!(
        "weigh: {} entries added to {}",
        lines.lines().count(),
        file.display()
    ));
    Ok(Exit::Done)
}

fn linked(link: &str, path: &Path) -> String {
    // Every recording has the file name `recording.json`, so the folder identifies it.
    let is_file = path.extension().is_some();
    let named = if is_file {
        path.parent().unwrap_or(path)
    } else {
        path
    };
    let name = named.file_name().unwrap_or_default().to_string_lossy();
    format!("{}/{name}", link.trim_end_matches('/'))
}

/// The entries of a history. `None` if the file does not exist.
///
/// # Errors
///
/// When it cannot be read, or is not a history.
pub(super) fn entries(file: &Path) -> Result<Option<Vec<Entry>>, Failure> {
    let shown = file.display();
    if !file.exists() {
        return Ok(None);
    }
    let refused = |error: String| Failure::bad_input(format!("`{shown}`: {error}"));
    let text = files::read_result_text(file).map_err(|error| refused(error.to_string()))?;
    history::read(&text)
        .map(Some)
        .map_err(|error| refused(error.to_string()))
}
