//! Reads the versions of the measured libraries from the lock file, so that `--version` prints the built
//! versions.

use std::path::PathBuf;
use std::{env, fs, process};

/// Packages in the lock file, with the variables that pass their versions to the crate.
const LIBRARIES: [(&str, &str); 4] = [
    ("juniper", "JUNIPER_VERSION"),
    ("ntex", "NTEX_VERSION"),
    ("async-graphql", "ASYNC_GRAPHQL_VERSION"),
    ("actix-web", "ACTIX_WEB_VERSION"),
];

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the build script reads what cargo tells it"
)]
fn main() {
    // The folder of this package, because several clones may share a target folder.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let Some(lock_path) = here
        .ancestors()
        .map(|folder| folder.join("Cargo.lock"))
        .find(|path| path.exists())
    else {
        fail("no Cargo.lock above this package; build it inside its workspace");
    };
    println!("cargo:rerun-if-changed={}", lock_path.display());
    let Ok(lock) = fs::read_to_string(&lock_path) else {
        fail(&format!("cannot read {}", lock_path.display()));
    };
    for (package, variable) in LIBRARIES {
        let Some(version) = version_of(&lock, package) else {
            fail(&format!("Cargo.lock has no package `{package}`"));
        };
        println!("cargo:rustc-env={variable}={version}");
    }
}

/// The version of `package` in the lock file: the line after its name.
fn version_of<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines();
    lines.find(|line| *line == name)?;
    lines
        .next()?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

fn fail(message: &str) -> ! {
    println!("cargo:warning={message}");
    process::exit(1);
}
