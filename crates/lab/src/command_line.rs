//! The parts that a command line shares with lab files: the notation of quantities, and the choice of labs in
//! a folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::Rate;

use crate::formats::{Format, Misspelling};
use crate::quantities::{Bytes, LongerThanZero, PositiveRate};
use crate::reading::Files;

/// Reads a duration above 0, written as in a lab file: `30s`, `1.5m`, `200ms`.
///
/// # Errors
/// The mistake, and the right notation.
pub fn duration(text: &str) -> Result<Duration, String> {
    LongerThanZero::read(text)
        .map(|LongerThanZero(duration)| duration)
        .map_err(sentence)
}

/// Reads a rate above 0, written as in a lab file: `100/s`.
///
/// # Errors
/// The mistake, and the right notation.
pub fn rate(text: &str) -> Result<Rate, String> {
    PositiveRate::read(text)
        .map(|PositiveRate(rate)| rate)
        .map_err(sentence)
}

/// Reads a size in bytes above 0, written as in a lab file: `4MiB`.
///
/// # Errors
/// The mistake, and the right notation.
pub fn size(text: &str) -> Result<u64, String> {
    Bytes::read(text)
        .map(|Bytes(bytes)| bytes)
        .map_err(sentence)
}

/// Returns the labs of a folder, in the order of their names: its `*.yaml` files with a `question`. Files
/// that labs include have no `question`.
///
/// # Errors
/// The reason that the folder or one of its files cannot be read.
pub fn find(folder: &Path, files: &dyn Files) -> Result<Vec<PathBuf>, String> {
    let mut labs = Vec::new();
    for path in files.list(folder)? {
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            // A folder of labs may contain any YAML file: included parts, configurations of systems.
            let text = files.read(&path)?;
            if asks_a_question(&String::from_utf8_lossy(&text)) {
                labs.push(path);
            }
        }
    }
    labs.sort();
    Ok(labs)
}

/// True if a line is a `question`. Lines count instead of YAML, because a lab with a syntax error is still a
/// lab, and should be reported.
fn asks_a_question(text: &str) -> bool {
    // The text and not the tree, because a lab that cannot be parsed must be reported, not skipped.
    text.lines().any(|line| line.starts_with("question:"))
}

fn sentence(misspelling: Misspelling) -> String {
    match misspelling.help {
        Some(help) => format!("{}; {help}", misspelling.message),
        None => misspelling.message,
    }
}
