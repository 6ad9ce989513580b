//! Records which tests could check their claim on this machine, and which could not.
//!
//! Some claims need a program, a right or an undisturbed machine. A test that lacks it must not fail, and
//! must not pass unnoticed either. It calls [`not_run`], and otherwise [`ran`]. A test that needs an optional
//! part of the setup, a container engine or a cluster, calls [`absent`].
//!
//! If `WEIGHBRIDGE_JUDGED` contains the path of a file, each call appends one line to it. `cargo xtask ci`
//! reads it to list the claims of all test binaries. The format is
//! `ran|not-run|absent TAB FILE:LINE TAB REASON`.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The environment variable with the path of the file to append to.
const VARIABLE: &str = "WEIGHBRIDGE_JUDGED";
/// `cargo xtask ci` sets this variable if it runs several end-to-end claims at the same time.
const TOGETHER: &str = "WEIGHBRIDGE_TOGETHER";

/// Records that the calling test could judge its claim.
///
/// # Panics
///
/// If the note cannot be written.
#[track_caller]
pub fn ran() {
    note("ran", "", Location::caller());
}

/// Records and prints that the calling test could not judge its claim. The test returns after this.
///
/// # Panics
///
/// If the note cannot be written.
#[track_caller]
pub fn not_run(reason: impl Display) {
    say("not-run", &reason, Location::caller());
}

/// Records and prints that the calling test needs an optional part of the setup that `make test` does not
/// install, such as a container engine or a cluster. The test returns after this, or continues with the
/// checks that do not need the part.
///
/// # Panics
///
/// If the note cannot be written.
#[track_caller]
pub fn absent(reason: impl Display) {
    say("absent", &reason, Location::caller());
}

/// True if the program can be started. Records the result for the calling test, which returns if it is false.
///
/// # Panics
///
/// If the note cannot be written.
#[track_caller]
#[must_use]
pub fn is_installed(program: &str) -> bool {
    // A program that rejects the flag has nevertheless been started.
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    let is_installed = command.output().is_ok();
    if is_installed {
        ran();
    } else {
        not_run(format_args!("{program} is not installed"));
    }
    is_installed
}

/// True if this package of npm can be used. Installs it into `node_modules` of the folder, in the version of
/// the lock file there, so that all machines use the same version. Records the result for the calling test.
///
/// # Panics
///
/// If npm exists and cannot install it, or the folder has no lock file of npm.
#[track_caller]
#[must_use]
pub fn has_package(folder: &Path, package: &str) -> bool {
    for program in ["node", "npm"] {
        if !is_installed(program) {
            return false;
        }
    }
    let installed = folder
        .join("node_modules")
        .join(package)
        .join("package.json");
    // `npm ci` begins by removing the folder, so tests that run together install one after the other.
    let lock_file = folder.join("package-lock.json");
    let lock = File::open(&lock_file).and_then(|file| file.lock().map(|()| file));
    let _lock = lock.unwrap_or_else(|error| panic!("{}: {error}", lock_file.display()));
    if !installed.exists() {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        let status = install.current_dir(folder).status();
        let is_done = status.is_ok_and(|status| status.success());
        assert!(is_done, "`npm ci` in {} failed", folder.display());
    }
    true
}

/// Builds the Go program in a folder. `name` is its name in the reason of a failure.
///
/// # Errors
///
/// The reason that it cannot be built here: there is no `go`, or its modules cannot be had.
///
/// # Panics
///
/// If the build fails although everything for it is there.
pub fn build_go(folder: &Path, program: &Path, name: &str) -> Result<(), String> {
    let go = |words: &[&str]| {
        // The build has a low priority, because other tests run now and measure time.
        let mut nice = Command::new("nice");
        nice.args(["-n", "19", "go"]).args(words);
        let output = nice.current_dir(folder).output();
        let output = output.expect("nice is installed");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    if !go(&["version"]).0 {
        return Err("go is not installed".to_owned());
    }
    // Only the modules of this build. Other modules in go.mod are for other systems.
    let (is_there, error) = go(&["list", "-deps", "."]);
    if !is_there {
        return Err(format!("the modules of the {name} cannot be had: {error}"));
    }
    let path = program.display().to_string();
    let (is_built, error) = go(&["build", "-ldflags", "-s -w", "-o", &path, "."]);
    assert!(is_built, "{error}");
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "cargo shows it beside the name of the test"
)]
fn say(state: &str, reason: &dyn Display, place: &Location<'_>) {
    println!("NOT RUN: {reason}");
    // One claim is one line.
    let reason = reason.to_string().replace(['\n', '\t'], " ");
    note(state, &reason, place);
}

/// Fails a claim that measures if it runs together with other claims, which would disturb it.
///
/// # Panics
///
/// If it does.
#[track_caller]
pub fn expect_alone() {
    assert_alone(variable(TOGETHER).is_some());
}

#[track_caller]
fn assert_alone(is_together: bool) {
    assert!(
        !is_together,
        "expected a claim that measures to run alone, found {TOGETHER}: remove the claim from tests/e2e/together.txt"
    );
}

fn note(state: &str, reason: &str, place: &Location<'_>) {
    let Some(path) = notes() else { return };
    let line = format!("{state}\t{}:{}\t{reason}\n", place.file(), place.line());
    // One write in append mode, so that lines of several processes do not mix.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{VARIABLE}={}: {error}", path.display()));
}

fn notes() -> Option<PathBuf> {
    variable(VARIABLE).map(PathBuf::from)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place in tests that reads how they are run"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_claim_that_measures_runs_alone() {
        super::assert_alone(false);
        assert!(std::panic::catch_unwind(|| super::assert_alone(true)).is_err());
    }
}
