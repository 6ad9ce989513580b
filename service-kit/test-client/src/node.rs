//! Test scripts that run on node, with packages from npm.

use std::path::Path;
use std::process::Command;

/// Runs a script in this folder, and returns its complete output. If node is not installed, returns `None`
/// and prints a line NOT RUN. The `package-lock.json` of the folder determines the installed packages.
///
/// # Panics
/// Panics if the packages cannot be installed, or the script cannot be started.
#[must_use]
pub fn run(folder: &Path, package: &str, words: &[&str]) -> Option<String> {
    if !judged::has_package(folder, package) {
        return None;
    }
    let mut script = Command::new("node");
    let output = script.args(words).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{script:?}: {error}"));
    let said = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&said).into_owned())
}
