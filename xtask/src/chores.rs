//! The commands of each task. All of them are ordinary cargo commands, so that a person can run any step
//! alone.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::judged::{self, Notes};
use crate::repository::root;
use crate::test_run::{Selection, Tally};
use crate::together::{self, Groups};

/// The seed of property tests in CI, so that a commit has one verdict. A plain `cargo test` draws new cases
/// every time, and `PROPTEST_CASES` sets their number.
const PROPERTIES_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261122");

/// The test programs of the crates.
const CRATES: &[&str] = &["--workspace", "--exclude", "xtask", "--exclude", "e2e"];

/// The end-to-end test programs. They are selected from the whole workspace and not by their package, because
/// cargo unites the features of the selected packages. With the features of one package, it would build tokio
/// and some 50 other crates once more.
const E2E: &[&str] = &[
    "--workspace",
    "--test=lab",
    "--test=load",
    "--test=report",
    "--test=systems",
];

/// Runs all steps of CI, cheapest first.
pub(crate) fn ci() -> anyhow::Result<()> {
    let mut tally = Tally::default();
    let passed = steps(&mut tally);
    // The times come last, also after a step that failed.
    let judged = tally.conclude();
    passed.and(judged)
}

fn steps(tally: &mut Tally) -> anyhow::Result<()> {
    let times = &mut tally.times;
    times.step("format", || cargo(&["fmt", "--all", "--check"], &[]))?;
    times.step("rules of the repository", tidy)?;
    times.step("lints", lints)?;
    times.step("lints of the coprocessor", coprocessor_lints)?;
    // The end-to-end tests start the binaries. One build before them prevents that parallel tests wait for
    // each other's build lock.
    let build = ["build", "--locked", "--workspace", "--bins"];
    times.step("build of the programs", || cargo(&build, &[]))?;
    for programs in [CRATES, E2E] {
        let build = [&["test", "--locked", "--no-run"], programs].concat();
        times.step("build of the tests", || cargo(&build, &[]))?;
    }
    let notes = Notes::begin()?;
    let ran = tests(&notes, tally);
    // Reports the claims that were not run, even if other tests failed.
    ran.and(notes.conclude())
}

pub(crate) fn lints() -> anyhow::Result<()> {
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

/// Runs all tests. Tests that measure the whole system run one at a time.
fn tests(notes: &Notes, tally: &mut Tally) -> anyhow::Result<()> {
    let noted = (judged::VARIABLE, notes.path());
    tally.run(Selection {
        name: "tests of the crates",
        cargo: CRATES,
        claims: &[],
        threads: None,
        environment: &[PROPERTIES_SEED, noted],
    })?;
    let groups = Groups::read();
    tally.run(Selection {
        name: "end-to-end tests, together",
        cargo: E2E,
        claims: &groups.together,
        threads: Some(together::THREADS),
        environment: &[noted, together::VARIABLE],
    })?;
    tally.run(Selection {
        name: "end-to-end tests, alone",
        cargo: E2E,
        claims: &groups.alone,
        threads: Some(1),
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
    // Of the whole workspace, so that cargo chooses the features of all other builds (see `E2E`).
    let rules = [
        "test",
        "--locked",
        "--quiet",
        "--workspace",
        "--bin",
        "xtask",
    ];
    cargo(&rules, &[])
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
            "recording",
            "--package",
            "analysis",
            "--package",
            "weigh",
            "--package",
            "gateway-config",
            "--package",
            "ratelimiter",
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
            "run", "--locked", "--quiet", "--bin", "book", "--", "--out", out,
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
