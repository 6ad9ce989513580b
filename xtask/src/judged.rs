//! The claims that the tests could judge on this machine, from the notes of the crate `judged`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::repository::root;

/// The environment variable with the path of the notes.
pub(crate) const VARIABLE: &str = "WEIGHBRIDGE_JUDGED";

/// CI allows one claim in this number that was not judged. 5 means a fifth.
const ALLOWED_ONE_IN: usize = 5;

/// The file that the tests of one CI run append to.
#[derive(Debug)]
pub(crate) struct Notes(PathBuf);

impl Notes {
    /// Creates an empty file in the target folder.
    pub(crate) fn begin() -> anyhow::Result<Notes> {
        let path = root().join("target/judged.txt");
        let folder = path.parent().expect("the file lies in a folder");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, ""))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Notes(path))
    }

    /// Path of the file, for [`VARIABLE`].
    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("the checkout has a UTF-8 path")
    }

    /// Prints the claims that were not judged. Returns an error if they are more than a fifth.
    pub(crate) fn conclude(&self) -> anyhow::Result<()> {
        let text = fs::read_to_string(&self.0)
            .with_context(|| format!("{} cannot be read", self.0.display()))?;
        let claims = Claims::of(&text, &|file| fs::read_to_string(root().join(file)).ok());
        #[expect(clippy::print_stderr, reason = "the only voice of a chore")]
        {
            eprint!("{}", claims.report());
        }
        claims.verdict()
    }
}

/// The result of a test that may be unable to judge its claim.
#[derive(Debug)]
enum State {
    Ran,
    /// Not judged, for this reason.
    NotRun(String),
    /// An optional part of the setup is missing. It does not depend on the machine or its load.
    Absent(String),
}

/// Each test that may be unable to judge its claim.
#[derive(Debug)]
struct Claims(BTreeMap<String, State>);

impl Claims {
    /// Reads the claims from the notes. The sources supply the name of the test at a line.
    fn of(notes: &str, source: &dyn Fn(&str) -> Option<String>) -> Claims {
        let mut claims = BTreeMap::new();
        for line in notes.lines() {
            let mut fields = line.split('\t');
            let (Some(state), Some(place)) = (fields.next(), fields.next()) else {
                continue;
            };
            let reason = fields.collect::<Vec<_>>().join(" ");
            let entry = claims.entry(test_at(place, source)).or_insert(State::Ran);
            // If a test judged one part and not another, its claim was not judged.
            match state {
                "not-run" => *entry = State::NotRun(reason),
                "absent" => *entry = State::Absent(reason),
                _ => {}
            }
        }
        Claims(claims)
    }

    fn not_run(&self) -> usize {
        let states = self.0.values();
        states.filter(|it| matches!(it, State::NotRun(_))).count()
    }

    fn absent(&self) -> usize {
        let states = self.0.values();
        states.filter(|it| matches!(it, State::Absent(_))).count()
    }

    /// Number of tests with all optional parts present.
    fn of_this_machine(&self) -> usize {
        self.0.len() - self.absent()
    }

    fn report(&self) -> String {
        let lines = self.0.iter().filter_map(|(test, state)| match state {
            State::Ran => None,
            State::NotRun(reason) | State::Absent(reason) => {
                Some(format!("NOT RUN: {test}: {reason}\n"))
            }
        });
        lines.collect::<String>()
            + &format!(
                "xtask: {} of {} claims that depend on the machine were not run, and {} that need a container engine or a cluster\n",
                self.not_run(),
                self.of_this_machine(),
                self.absent()
            )
    }

    fn verdict(&self) -> anyhow::Result<()> {
        let (not_run, count) = (self.not_run(), self.of_this_machine());
        if not_run * ALLOWED_ONE_IN > count {
            bail!(
                "{not_run} of {count} claims that depend on the machine were not run, and a fifth may be: install what is missing (`./setup test`), or run the tests while nothing else uses the processors"
            );
        }
        Ok(())
    }
}

/// The name of the test function that contains the line, after its module: `cost::a_limit_is_…`.
fn test_at(place: &str, source: &dyn Fn(&str) -> Option<String>) -> String {
    let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
    // A note without a line number has no test, and is shown by its place.
    let line: usize = line.parse().unwrap_or(0);
    // A source that was removed since gives no name.
    let text = source(file).unwrap_or_default();
    // Tests start at the left margin or one indentation in.
    let names = text.lines().take(line).filter_map(|line| {
        let is_outer = line.len() - line.trim_start().len() <= 4;
        let name = line.trim_start().strip_prefix("fn ")?.split('(').next()?;
        is_outer.then(|| name.to_owned())
    });
    let path = Path::new(file).with_extension("");
    match names.last() {
        Some(name) => format!("{}::{name}", path.display()),
        None => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "#[test]\nfn first() {\n    x();\n}\n\n#[test]\nfn second() {\n    x();\n}\n";

    fn claims(notes: &str) -> Claims {
        Claims::of(notes, &|_| Some(SOURCE.to_owned()))
    }

    #[test]
    fn a_test_is_named_and_one_part_that_was_not_judged_is_enough() {
        let claims = claims(
            "ran\ta/b.rs:3\t\nnot-run\ta/b.rs:8\tcurl is not installed\nran\ta/b.rs:8\t\nran\ta/b.rs:3\t\n",
        );
        assert_eq!(
            claims.report(),
            "NOT RUN: a/b::second: curl is not installed\n\
             xtask: 1 of 2 claims that depend on the machine were not run, and 0 that need a container engine or a cluster\n"
        );
    }

    #[test]
    fn a_part_that_is_not_installed_is_said_and_is_no_fault_of_the_machine() {
        let claims =
            claims("absent\ta.rs:3\tno engine\nabsent\tb.rs:3\tno engine\nran\tc.rs:3\t\n");
        assert_eq!(
            claims.report(),
            "NOT RUN: a::first: no engine\nNOT RUN: b::first: no engine\n\
             xtask: 0 of 1 claims that depend on the machine were not run, and 2 that need a container engine or a cluster\n"
        );
        assert!(claims.verdict().is_ok());
    }

    #[test]
    fn a_fifth_is_allowed_and_no_more() {
        let ran = |count: usize| -> String {
            (0..count)
                .map(|file| format!("ran\t{file}.rs:3\t\n"))
                .collect()
        };
        let missing = "not-run\tx.rs:3\tbusy\n";
        assert!(claims(&(ran(4) + missing)).verdict().is_ok());
        assert!(claims(&(ran(3) + missing)).verdict().is_err());
        assert!(claims("").verdict().is_ok());
    }
}
