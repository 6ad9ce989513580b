//! When to read configuration, supergraph and scripts again: their files look different.
//!
//! Files are looked at every half second instead of being watched by the kernel: that also sees
//! what mounted configuration maps and network file systems do, and costs a few system calls.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Time between two looks.
pub(crate) const INTERVAL: Duration = Duration::from_millis(500);
/// Deepest folder of scripts that is looked into.
const DEPTH_MAX: usize = 8;

/// How files looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look(Vec<(PathBuf, Option<(SystemTime, u64)>)>);

impl Look {
    /// How the files, and those in the folders, look now.
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
        inside.sort();
        for path in inside {
            collect(&path, depth + 1, found);
        }
        return;
    }
    let look = metadata.and_then(|it| Some((it.modified().ok()?, it.len())));
    found.push((path.to_owned(), look));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_appears_or_goes_looks_different() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().to_owned()];
        let empty = Look::at(&paths);
        let file = folder.path().join("main.rhai");
        fs::write(&file, "1").unwrap();
        let one = Look::at(&paths);
        assert_ne!(empty, one);
        assert_eq!(one, Look::at(&paths));
        fs::write(&file, "1 + 1").unwrap();
        assert_ne!(one, Look::at(&paths));
        fs::remove_file(&file).unwrap();
        assert_eq!(empty, Look::at(&paths));
    }
}
