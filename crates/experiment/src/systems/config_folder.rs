//! The folder of a system's configuration files. Each start writes them again.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lab::Setup;
use model::InvalidKind;

use crate::invalid::Invalid;

/// The folder within a container. Pods have the same folder.
pub(super) const IN_CONTAINER: &str = cluster::workload::FILES_FOLDER;

/// A folder of configuration files. It stays next to the logs, so that a reader of a recording finds the files
/// of the last start.
pub(super) struct ConfigFolder(PathBuf);

impl ConfigFolder {
    /// Creates an empty folder for a process. `None` for a system without files.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn of(setup: &Setup, name: &str, logs: &Path) -> Result<Option<Self>, Invalid> {
        if setup.files.is_empty() {
            return Ok(None);
        }
        let folder = logs.join(format!("{name}.files"));
        // The process runs in another folder, so a path relative to `weigh` would be wrong.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        // A program may have written files of its own into the folder of an earlier start.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(unwritable(&folder, &error));
            }
            _ => {}
        }
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        Ok(Some(Self(folder)))
    }

    /// The absolute path on this machine.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file. Its name is a relative path without `..`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Invalid> {
        let file = self.0.join(name);
        let folder = file.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| unwritable(&file, &error))
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Invalid {
    let reason = format!("`{}` cannot be written: {error}", path.display());
    Invalid::new(InvalidKind::NotReady, reason)
}
