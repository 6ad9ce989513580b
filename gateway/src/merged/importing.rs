//! The command `import`: a configuration from the metadata of Hasura 2.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use gateway_config::Mistakes;
use gateway_import::{Import, MetadataFile};

/// The reason why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error(
        "`{0}` is not a metadata folder of Hasura 2: expected a `version.yaml` in it, or the path of a `metadata.json`"
    )]
    NoMetadata(String),
    #[error("cannot read `{path}`: {reason}")]
    Unreadable { path: String, reason: String },
    #[error(
        "the configuration would permit requests that Hasura refuses, because these parts are missing:\n  {0}\n\
         `--without-restrictions` writes the configuration anyway"
    )]
    LostRestrictions(String),
    #[error(transparent)]
    Mistakes(Mistakes),
}

/// Prints an imported configuration. Results go to standard output, diagnostics to standard error.
pub(crate) fn import(path: &Path, without_restrictions: bool) -> Result<(), ImportError> {
    let import = if path.is_file() {
        of_file(path)?
    } else {
        of_folder(path)?
    };
    // If a stream is closed, there is no other place for the message.
    for note in &import.notes {
        let _ = writeln!(io::stderr(), "not carried over: {note}");
    }
    if !import.lost_restrictions.is_empty() {
        let lost = import.lost_restrictions.join("\n  ");
        if !without_restrictions {
            return Err(ImportError::LostRestrictions(lost));
        }
        let _ = writeln!(io::stderr(), "restrictions not carried over:\n  {lost}");
    }
    let _ = write!(io::stdout(), "{}", import.yaml);
    Ok(())
}

fn of_file(path: &Path) -> Result<Import, ImportError> {
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    let metadata = MetadataFile::read(&text).map_err(|reason| unreadable(path, reason))?;
    gateway_import::import(&|name| metadata.file(name)).map_err(ImportError::Mistakes)
}

fn of_folder(folder: &Path) -> Result<Import, ImportError> {
    let inner = folder.join("metadata");
    let folder = if inner.is_dir() { &inner } else { folder };
    // A file that cannot be read is not a missing file. Its content would be lost.
    let failure = RefCell::new(None);
    let read = |name: &str| {
        let path = folder.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                failure.borrow_mut().get_or_insert(unreadable(&path, error));
                None
            }
        }
    };
    if read("version.yaml").is_none() && failure.borrow().is_none() {
        return Err(ImportError::NoMetadata(folder.display().to_string()));
    }
    let import = gateway_import::import(&read).map_err(ImportError::Mistakes);
    match failure.take() {
        Some(error) => Err(error),
        None => import,
    }
}

fn unreadable(path: &Path, reason: impl ToString) -> ImportError {
    ImportError::Unreadable {
        path: path.display().to_string(),
        reason: reason.to_string(),
    }
}
