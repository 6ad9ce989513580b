//! The commands of each task. All of them are ordinary cargo commands, so that a person can run any step
//! alone.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::judged::{self, Notes};
use crate::repository::root;
use crate::test_run::{ONE_AT_A_TIME, Selection, Tally};

/// The seed of property tests in CI, so that a commit has one verdict. A plain `cargo test` draws new cases
/// every time, and `PROPTEST_CASES` sets their number.
const PROPERTIES_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261122");

/// Runs all steps of CI, cheapest first.
pub(crate) fn ci() -> anyhow::Result<()> {
    let mut tally = Tally::default();
    let times = &mut tally.times;
    times.step("format", || cargo(&["fmt", "--all", "--check"], &[]))?;
    times.step("rules of the repository", tidy)?;
    times.step("lints", lints)?;
    times.step("lints of the coprocessor", coprocessor_lints)?;
    // The end-to-end tests start the binaries. One build before them prevents that parallel tests wait for
    // each other's build lock.
    let build = ["build", "--locked", "--workspace", "--bins"];
    times.step("build of the programs", || cargo(&build, &[]))?;
    let notes = Notes::begin()?;
    tests(&notes, &mut tally)?;
    // Reports the claims that were not run, even if other tests failed.
    let judged = notes.conclude();
    tally.conclude().and(judged)
}

fn lints() -> anyhow::Result<()> {
    cargo(
        &[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )
}

/// Runs all tests. Tests of the whole system run one at a time.
fn tests(notes: &Notes, tally: &mut Tally) -> anyhow::Result<()> {
    let noted = (judged::VARIABLE, notes.path());
    tally.run(Selection {
        name: "tests of the crates",
        cargo: &["--workspace", "--exclude", "xtask", "--exclude", "e2e"],
        programs: &[],
        environment: &[PROPERTIES_SEED, noted],
    })?;
    // One at a time, because each of them loads a server, and two would disturb each other.
    tally.run(Selection {
        name: "end-to-end tests",
        cargo: &["--package", "e2e"],
        programs: &[ONE_AT_A_TIME],
        environment: &[noted],
    })
}

/// The coprocessor in Rust is a workspace of its own, like the other languages, and not a member of this one.
fn coprocessor_lints() -> anyhow::Result<()> {
    let manifest = ["--manifest-path", "services/coprocessors/rust/Cargo.toml"];
    cargo(&["fmt", manifest[0], manifest[1], "--check"], &[])?;
    cargo(
        &[
            "clippy",
            manifest[0],
            manifest[1],
            "--target-dir",
            "services/coprocessors/rust/build",
            "--locked",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )
}

/// Runs the rules of the repository, which are tests of this crate.
pub(crate) fn tidy() -> anyhow::Result<()> {
    cargo(&["test", "--locked", "--quiet", "--package", "xtask"], &[])
}

/// Tests of the owning crate compare generated files. With this variable set, the same tests write them
/// instead.
pub(crate) fn schema() -> anyhow::Result<()> {
    cargo(
        &[
            "test",
            "--package",
            "lab",
            "--package",
            "report",
            "--package",
            "weigh",
            "--package",
            "gateway-config",
        ],
        &[("UPDATE_SCHEMAS", "1")],
    )
}

/// Builds the book into the folder `out`.
///
/// # Errors
///
/// Fails if a page is missing or a link of it leads nowhere.
pub(crate) fn book(out: &Path) -> anyhow::Result<()> {
    let out = out
        .to_str()
        .context("the folder of the book is not UTF-8")?;
    cargo(
        &[
            "run",
            "--locked",
            "--quiet",
            "--package",
            "book",
            "--",
            "--out",
            out,
        ],
        &[],
    )
}

pub(crate) fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> anyhow::Result<()> {
    let shown = format!("cargo {}", arguments.join(" "));
    #[expect(clippy::print_stderr, reason = "the only voice of a chore")]
    {
        eprintln!("xtask: {shown}");
    }
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("`{shown}` could not be started"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}
