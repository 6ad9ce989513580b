//! What a command line has in common with lab files: how quantities are written, and which files of
//! a folder are labs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Rate;

use crate::formats::{Format, Misspelling};
use crate::quantities::{Bytes, LongerThanZero, PositiveRate};
use crate::reading::Files;

/// A duration above 0, written as in a lab file: `30s`, `1.5m`, `200ms`.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    LongerThanZero::read(text)
        .map(|LongerThanZero(duration)| duration)
        .map_err(sentence)
}

/// A rate above 0, written as in a lab file: `100/s`.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn rate(text: &str) -> Result<Rate, String> {
    PositiveRate::read(text)
        .map(|PositiveRate(rate)| rate)
        .map_err(sentence)
}

/// A size in bytes above 0, written as in a lab file: `4MiB`.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn size(text: &str) -> Result<u64, String> {
    Bytes::read(text)
        .map(|Bytes(bytes)| bytes)
        .map_err(sentence)
}

/// The labs of a folder, in the order of their names: its `*.yaml` files that ask a `question`.
/// Files that labs include do not.
///
/// # Errors
/// Why the folder or one of its files cannot be read.
pub fn find(folder: &Path, files: &dyn Files) -> Result<Vec<PathBuf>, String> {
    let mut labs = Vec::new();
    for path in files.list(folder)? {
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            // Any YAML file may lie in a folder of labs: included parts, configurations of systems.
            let text = files.read(&path)?;
            if asks_a_question(&String::from_utf8_lossy(&text)) {
                labs.push(path);
            }
        }
    }
    labs.sort();
    Ok(labs)
}

/// Looks at lines, not at YAML: a lab with a syntax error is still a lab, and should be reported.
fn asks_a_question(text: &str) -> bool {
    // By its text and not by its tree: a lab that cannot be parsed must be reported, not passed
    // over.
    text.lines().any(|line| line.starts_with("question:"))
}

fn sentence(misspelling: Misspelling) -> String {
    match misspelling.help {
        Some(help) => format!("{}; {help}", misspelling.message),
        None => misspelling.message,
    }
}
