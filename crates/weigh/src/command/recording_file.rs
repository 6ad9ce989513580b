//! Recordings in files and folders.

use std::path::{Path, PathBuf};

use experiment::exit::Failure;
use experiment::files;
use recording::Recording;

/// Reads the recording of a file or of a folder.
///
/// # Errors
/// When the file cannot be read or is not a recording.
pub(super) fn read(given: &Path) -> Result<Recording, Failure> {
    parse(given, &read_text(given)?)
}

/// Reads the text of a recording, of a file or of a folder.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read_text(given: &Path) -> Result<String, Failure> {
    let path = file_of(given);
    let shown = path.display();
    files::read_result_text(&path).map_err(|error| {
        Failure::bad_input(format!(
            "`{shown}` cannot be read: {error}. Give a recording folder or a recording.json"
        ))
    })
}

/// Parses the text from [`read_text`].
///
/// # Errors
/// When it is not a recording.
pub(super) fn parse(given: &Path, text: &str) -> Result<Recording, Failure> {
    Recording::from_json(text)
        .map_err(|error| Failure::bad_input(format!("`{}`: {error}", file_of(given).display())))
}

fn file_of(given: &Path) -> PathBuf {
    if given.is_dir() {
        given.join("recording.json")
    } else {
        given.to_path_buf()
    }
}
