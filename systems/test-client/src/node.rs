//! Scripts of tests that run on node, with packages from npm.

use std::path::Path;
use std::process::Command;

/// What a script in this folder printed, to its end; `None`, and a line NOT RUN, where node is not
/// installed. The folder has a `package-lock.json`, by which `package` and the others are installed.
///
/// # Panics
/// When the packages cannot be installed, or the script cannot be started.
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
