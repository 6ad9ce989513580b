//! `cargo xtask quick`: checks the current change in a few minutes. CI checks everything.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::chores;
use crate::repository::{git, root};

/// Options of a quick check.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Commit to compare with. Uncommitted and new files always count.
    #[arg(long, value_name = "COMMIT", default_value = "HEAD~1")]
    since: String,
}

/// A crate of the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    /// Its folder, relative to the root, with a slash at the end.
    folder: String,
    /// The crates of the workspace that it uses, also in tests.
    uses: Vec<String>,
}

/// The tests to run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Crates with a changed file. All their tests run.
    changed: BTreeSet<String>,
    /// Crates that use a changed crate. They are only linted.
    users: BTreeSet<String>,
    /// Changed end-to-end tests: the test program, and the module.
    end_to_end: BTreeSet<(String, String)>,
}

/// Checks format, rules, lints and tests of the changed crates.
///
/// # Errors
///
/// Fails at the first check that fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let files = changed_files(&args.since)?;
    if files.is_empty() {
        bail!(
            "no file differs from {}. Name another commit with --since",
            args.since
        );
    }
    let plan = plan(&files, &packages()?);
    chores::cargo(&["fmt", "--all", "--check"], &[])?;
    chores::tidy()?;
    // All crates, although only some changed. With the features of some crates, cargo would check their
    // dependencies once more, and the other crates are up to date after the first time.
    chores::lints()?;
    // One by one, because cargo would build the dependencies for each new set of crates.
    for changed in &plan.changed {
        chores::cargo(&["test", "--locked", "--package", changed], &[])?;
    }
    if !plan.end_to_end.is_empty() {
        chores::cargo(&["build", "--locked", "--workspace", "--bins"], &[])?;
    }
    for (program, module) in &plan.end_to_end {
        let only = format!("{module}::");
        let words = [
            "test",
            "--locked",
            "--workspace",
            "--test",
            program,
            "--",
            "--test-threads=1",
            &only,
        ];
        chores::cargo(&words, &[])?;
    }
    say(&plan.left_out());
    Ok(())
}

impl Plan {
    /// The checks that only CI makes for this change.
    fn left_out(&self) -> String {
        let users: Vec<&str> = self.users.iter().map(String::as_str).collect();
        let users = match users.as_slice() {
            [] => String::new(),
            users => format!(
                " the tests of {}, which use the changed crates, and",
                users.join(", ")
            ),
        };
        format!(
            "passed. Not run:{users} the other end-to-end tests. `cargo xtask ci` runs everything"
        )
    }
}

/// Finds the crates and the end-to-end tests of changed files.
fn plan(files: &[String], packages: &[Package]) -> Plan {
    let mut plan = Plan::default();
    for file in files {
        if let Some(test) = end_to_end_test(file) {
            plan.end_to_end.insert(test);
            continue;
        }
        // The longest folder, because some crates lie in the folder of another.
        let owners = packages.iter().filter(|it| file.starts_with(&it.folder));
        let owner = owners.max_by_key(|it| it.folder.len());
        // The rules of the repository are tests of `xtask`, which always run. End-to-end tests run by module.
        let owner = owner.filter(|it| it.name != "xtask" && it.name != "e2e");
        plan.changed.extend(owner.map(|it| it.name.clone()));
    }
    let mut reached = plan.changed.clone();
    loop {
        let uses = |it: &&Package| it.uses.iter().any(|used| reached.contains(used));
        let users = packages.iter().filter(uses).map(|it| it.name.clone());
        let before = reached.len();
        let users: Vec<String> = users.collect();
        reached.extend(users);
        if reached.len() == before {
            break;
        }
    }
    plan.users = reached.difference(&plan.changed).cloned().collect();
    plan
}

/// The test program and the module of `tests/e2e/tests/PROGRAM/MODULE.rs`.
fn end_to_end_test(file: &str) -> Option<(String, String)> {
    let (program, module) = file.strip_prefix("tests/e2e/tests/")?.split_once('/')?;
    let module = module.strip_suffix(".rs")?.split('/').next()?;
    (module != "main").then(|| (program.to_owned(), module.to_owned()))
}

fn changed_files(since: &str) -> anyhow::Result<Vec<String>> {
    let changed = git(&["diff", "--name-only", since])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: BTreeSet<&str> = changed.lines().chain(new.lines()).collect();
    Ok(files.into_iter().map(str::to_owned).collect())
}

fn packages() -> anyhow::Result<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .context("cargo does not start")?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` prints JSON")?;
    let root = format!("{}/", root().display());
    let packages = metadata["packages"].as_array().into_iter().flatten();
    Ok(packages.filter_map(|it| package(it, &root)).collect())
}

fn package(it: &Value, root: &str) -> Option<Package> {
    let manifest = it["manifest_path"].as_str()?.strip_prefix(root)?;
    let uses = it["dependencies"].as_array()?.iter();
    Some(Package {
        name: it["name"].as_str()?.to_owned(),
        folder: manifest.strip_suffix("Cargo.toml")?.to_owned(),
        uses: uses
            .filter_map(|used| used["name"].as_str().map(str::to_owned))
            .collect(),
    })
}

#[expect(clippy::print_stdout, reason = "the end of the task")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, folder: &str, uses: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            folder: folder.to_owned(),
            uses: uses.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    fn names(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_change_reaches_the_users_of_its_crate() {
        let packages = [
            package("stats", "crates/stats/", &[]),
            package("report", "crates/report/", &["stats"]),
            package("weigh", "crates/weigh/", &["report"]),
            package("gateway", "gateway/", &["gateway-config"]),
            package("gateway-config", "gateway/config/", &[]),
        ];
        let files = ["crates/stats/src/lib.rs", "docs/start.md"].map(str::to_owned);
        let found = plan(&files, &packages);
        assert_eq!(names(&found.changed), ["stats"]);
        assert_eq!(names(&found.users), ["report", "weigh"]);
        assert!(
            found.left_out().contains("report, weigh"),
            "{}",
            found.left_out()
        );
        let files = ["gateway/config/src/lib.rs"].map(str::to_owned);
        let found = plan(&files, &packages);
        assert_eq!(names(&found.changed), ["gateway-config"]);
        assert_eq!(names(&found.users), ["gateway"]);
    }

    #[test]
    fn a_changed_end_to_end_test_runs_alone() {
        let packages = [package("e2e", "tests/e2e/", &[])];
        let files = [
            "tests/e2e/tests/load/urls.rs",
            "tests/e2e/tests/lab/overlap/pairs.rs",
            "tests/e2e/tests/lab/main.rs",
        ];
        let found = plan(&files.map(str::to_owned), &packages);
        let tests: Vec<_> = found.end_to_end.iter().collect();
        assert_eq!(tests.len(), 2, "{tests:?}");
        assert_eq!(
            found.end_to_end.first().map(|it| it.1.as_str()),
            Some("overlap")
        );
        assert!(found.changed.is_empty());
    }

    #[test]
    fn every_crate_of_the_workspace_is_found() {
        let packages = packages().unwrap();
        let weigh = packages.iter().find(|it| it.name == "weigh").unwrap();
        assert_eq!(weigh.folder, "crates/weigh/");
        assert!(weigh.uses.iter().any(|used| used == "report"));
    }
}
