//! Decides when to read configuration, supergraph and scripts again: when their files have changed.
//!
//! Files are checked every half second. The gateway does not use the kernel's file notifications. So it also
//! detects changes of mounted configuration maps and network file systems, and costs a few system calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time between two checks of the files.
pub(crate) const INTERVAL: Duration = Duration::from_millis(500);
/// Maximum depth of script folders. Metadata follows links, so this also ends a loop of links.
const DEPTH_MAX: usize = 8;

/// Modification times and lengths of files at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileStates(Vec<(PathBuf, Option<(SystemTime, u64)>)>);

impl FileStates {
    /// The current state of the files, including files in the folders.
    pub(crate) fn at(paths: &[PathBuf]) -> Self {
        let mut found = Vec::new();
        for path in paths {
            collect(path, 0, &mut found);
        }
        Self(found)
    }
}

fn collect(path: &Path, depth: usize, found: &mut Vec<(PathBuf, Option<(SystemTime, u64)>)>) {
    let metadata = fs::metadata(path).ok();
    if metadata.as_ref().is_some_and(fs::Metadata::is_dir) && depth < DEPTH_MAX {
        let mut inside: Vec<PathBuf> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        // The file system may list a folder in another order each time, which would look like a change.
        inside.sort();
        for path in inside {
            collect(&path, depth + 1, found);
        }
        return;
    }
    let state = metadata.and_then(|it| Some((it.modified().ok()?, it.len())));
    // A file that cannot be read is an entry too, because its removal or return is a change.
    found.push((path.to_owned(), state));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_appears_or_goes_looks_different() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().to_owned()];
        let empty = FileStates::at(&paths);
        let file = folder.path().join("main.rhai");
        fs::write(&file, "1").unwrap();
        let one = FileStates::at(&paths);
        assert_ne!(empty, one);
        assert_eq!(one, FileStates::at(&paths));
        fs::write(&file, "1 + 1").unwrap();
        assert_ne!(one, FileStates::at(&paths));
        fs::remove_file(&file).unwrap();
        assert_eq!(empty, FileStates::at(&paths));
    }
}
