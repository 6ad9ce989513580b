//! The file system, as far as lab files may see it.

use std::fs;
use std::path::{Path, PathBuf};

/// Reads lab files and what they name from the disk.
pub(crate) struct Disk;

impl lab::Files for Disk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        fs::read(path).map_err(|error| error.to_string())
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        let mut paths = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        // A folder is listed in any order, and labs are measured in the order of their names.
        paths.sort();
        Ok(paths)
    }
}
