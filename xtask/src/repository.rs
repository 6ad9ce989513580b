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
    let names = git(&[
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        path,
    ])?;
    let names = names.lines().filter(|file| root().join(file).is_file());
    Ok(names.map(str::to_owned).collect())
}

/// Returns the output of a git command in the repository.
///
/// # Errors
/// Fails if git does not start or fails, or if its output is not UTF-8.
pub(crate) fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    let output = command.args(arguments).current_dir(root()).output();
    let output = output.context("git does not start")?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("`git {}` fails: {}", arguments.join(" "), reason.trim());
    }
    String::from_utf8(output.stdout).context("the output of git is UTF-8")
}
