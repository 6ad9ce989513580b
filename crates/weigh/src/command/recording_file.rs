//! Recordings in files and folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use experiment::exit::Failure;
use experiment::files;
use recording::Recording;

/// The folder of the recordings, if the user names no other.
pub(super) const FOLDER: &str = "recordings";

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
    Recording::from_json(text).map_err(|error| {
        let shown = file_of(given).display().to_string();
        // A file of another tool has no rounds, but two of them can be compared.
        let message = match recording::import::read(text) {
            Ok(runs) => format!(
                "expected a recording of `weigh`, found {} in `{shown}`. Compare two such files with `weigh compare {shown} OTHER`",
                runs.first().map_or("a result of another tool", |run| run.shape)
            ),
            Err(_) => format!("`{shown}`: {error}"),
        };
        Failure::bad_input(message)
    })
}

/// Returns the folder in `folder` with the newest recording. The folder of several loads counts with its newest
/// load.
///
/// # Errors
/// When the folder cannot be read or has no recording.
pub(super) fn newest(folder: &Path) -> Result<PathBuf, Failure> {
    let none = |found: &str| {
        Failure::bad_input(format!(
            "expected a recording in `{}`, found {found}. Name one: `weigh report FOLDER`. `weigh lab` and `weigh ab` make recordings",
            folder.display()
        ))
    };
    let entries = fs::read_dir(folder).map_err(|error| none(&format!("no folder: {error}")))?;
    let folders = entries.flatten().map(|entry| entry.path());
    let dated = folders.filter_map(|path| Some((written(&path)?, path)));
    dated
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| none("none"))
}

/// The time of the newest recording of a run. `None` if the folder belongs to no run.
fn written(run: &Path) -> Option<SystemTime> {
    let time = |folder: &Path| {
        let metadata = fs::metadata(folder.join("recording.json")).ok()?;
        metadata.modified().ok()
    };
    let loads = fs::read_dir(run).into_iter().flatten().flatten();
    let of_loads = loads.filter_map(|entry| time(&entry.path()));
    of_loads.chain(time(run)).max()
}

fn file_of(given: &Path) -> PathBuf {
    if given.is_dir() {
        given.join("recording.json")
    } else {
        given.to_path_buf()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Writes a recording of this age.
    fn record(folder: &Path, age_s: u64) {
        fs::create_dir_all(folder).unwrap();
        let file = fs::File::create(folder.join("recording.json")).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 - age_s);
        file.set_modified(time).unwrap();
    }

    #[test]
    fn the_newest_recording_is_found_by_its_time() {
        let here = tempfile::tempdir().unwrap();
        let missing = newest(&here.path().join("recordings")).unwrap_err().message;
        assert!(missing.contains("found no folder"), "{missing}");
        let empty = newest(here.path()).unwrap_err().message;
        assert!(empty.contains("found none"), "{empty}");
        // A run that has not ended has no recording yet.
        fs::create_dir_all(here.path().join("unfinished/logs")).unwrap();
        record(&here.path().join("b"), 20);
        record(&here.path().join("a"), 10);
        assert_eq!(newest(here.path()).unwrap(), here.path().join("a"));
        record(&here.path().join("loads/at-100"), 30);
        record(&here.path().join("loads/at-200"), 5);
        assert_eq!(newest(here.path()).unwrap(), here.path().join("loads"));
    }
}
