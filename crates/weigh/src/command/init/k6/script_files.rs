//! The files that a script may read: those below one folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use k6_script::{FileSource, Unreadable};

/// Maximum length of a file that a script reads, in bytes.
const LENGTH_MAX: u64 = 64 << 20;

/// The files below a folder.
pub(super) struct FolderFiles {
    /// The folder, without symbolic links.
    pub(super) root: PathBuf,
}

impl FileSource for FolderFiles {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        let refused = |why: String| Unreadable::Refused(why);
        let outside = || {
            refused(format!(
                "it is outside of `{}`. A script reads only files below one folder. Give a folder that \
                 contains both with `--root FOLDER`",
                self.root.display()
            ))
        };
        if !path.starts_with(&self.root) {
            return Err(outside());
        }
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(Unreadable::Absent);
            }
            Err(error) => return Err(refused(error.to_string())),
        };
        if !real.starts_with(&self.root) {
            return Err(outside());
        }
        let about = fs::metadata(&real).map_err(|error| refused(error.to_string()))?;
        if !about.is_file() {
            return Err(Unreadable::Absent);
        }
        if about.len() > LENGTH_MAX {
            return Err(refused(format!(
                "it is longer than {} MiB",
                LENGTH_MAX >> 20
            )));
        }
        fs::read(&real).map_err(|error| refused(error.to_string()))
    }
}

/// The folder that a script may read: the nearest folder around it that is a Git repository or the current
/// folder, otherwise its own folder.
pub(super) fn root(entry: &Path, current: Option<&Path>) -> PathBuf {
    let own = entry.parent().unwrap_or(Path::new("/"));
    let current = current.and_then(|folder| folder.canonicalize().ok());
    let is_root =
        |folder: &&Path| folder.join(".git").exists() || Some(*folder) == current.as_deref();
    own.ancestors().find(is_root).unwrap_or(own).to_owned()
}
