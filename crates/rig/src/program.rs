//! Finding programs as a shell would.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where `name` would be run from: a name with a slash counts from `folder`,
/// any other is looked for in the folders of `path` (the value of `PATH`).
#[must_use]
pub fn find_program(_name: &str, _folder: &Path, _path: &OsStr) -> Option<PathBuf> {
    unimplemented!()
}
