//! The files of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies one folder below the root")
        .to_path_buf()
}

/// Returns the files at or below `path` that git tracks or would track, relative to the root.
///
/// # Errors
/// Fails if git does not start or cannot list the files.
pub(crate) fn tracked(path: &str) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new("git");
    command.args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
    ]);
    let output = command.arg(path).current_dir(root()).output();
    let output = output.context("git does not start")?;
    if !output.status.success() {
        bail!("git cannot list {path}");
    }
    let names = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    let names = names.lines().filter(|file| root().join(file).is_file());
    Ok(names.map(str::to_owned).collect())
}
