//! The files that a script may read.

use std::path::Path;

/// The reason why a file has no content for a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is no such file.
    #[error("it does not exist")]
    Absent,
    /// The file exists, and the script may not read it.
    #[error("{0}")]
    Refused(String),
}

/// The files that a script may read, by absolute paths.
pub trait FileSource: Send + Sync {
    /// Returns the content of a file.
    ///
    /// # Errors
    /// The reason why there is no content.
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable>;
}
