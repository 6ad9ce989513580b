//! The tests as CI runs them. A claim that fails is run once more by itself. A machine that is busy for a
//! moment fails a claim once, but a mistake in the program fails it twice. Both are reported at the very end,
//! because a reader of a long log looks there first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, bail};

use crate::repository::root;
use crate::timing::{self, ArrivedLine, Times};

/// Number of claims of a whole run that may fail once and pass alone. More failures indicate a mistake of
/// ours.
const UNSTEADY_ALLOWED: usize = 3;

/// Number of characters of a claim's message in the summary.
const MESSAGE_SHOWN: usize = 160;

/// Number of characters of a command in the log. The list of claims that run together is longer.
const COMMAND_SHOWN: usize = 200;

/// The tests that `cargo test` runs, and their settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    /// Name of the step in the list of times.
    pub(crate) name: &'a str,
    /// Arguments before `--`, such as packages.
    pub(crate) cargo: &'a [&'a str],
    /// Arguments that select claims, after `--`.
    pub(crate) claims: &'a [&'a str],
    /// Number of claims of a program that run at the same time. `None` leaves the number to libtest. Then the
    /// times of claims are unknown.
    pub(crate) threads: Option<usize>,
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

/// The accumulated results of all tests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Claims that failed once and passed alone: `target: name: message`.
    unsteady: Vec<String>,
    /// Claims that failed twice, and targets that ended without naming a claim.
    failed: Vec<String>,
    /// The times of steps and of claims.
    pub(crate) times: Times,
}

impl Tally {
    /// Runs a selection, and its failed claims once more.
    ///
    /// # Errors
    ///
    /// Only if cargo cannot be started. Failures are counted.
    pub(crate) fn run(&mut self, selection: Selection<'_>) -> anyhow::Result<()> {
        let run = || cargo_test(selection, selection.cargo, selection.claims);
        let Output {
            passed,
            text,
            progress,
        } = self.times.step(selection.name, run)?;
        self.times.add_programs(timing::programs(&text));
        if let Some(threads) = selection.threads {
            let claims = timing::claims(&progress, threads);
            self.times.add_claims(claims, threads);
        }
        if passed {
            return Ok(());
        }
        let failures = Failures::of(&text);
        if failures.targets.is_empty() {
            let what = selection.cargo.join(" ");
            self.failed.push(format!("cargo test {what}: no test ran"));
        }
        for target in &failures.targets {
            self.run_again(selection, target, &failures.messages)?;
        }
        Ok(())
    }

    /// Runs only the failed claims of one target, one at a time if their number was limited.
    fn run_again(
        &mut self,
        selection: Selection<'_>,
        target: &str,
        messages: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let cargo: Vec<_> = match target.strip_prefix("-p e2e ") {
            // With the features of the first run, so that nothing is compiled again.
            Some(program) => ["--workspace"]
                .into_iter()
                .chain(program.split_whitespace())
                .collect(),
            None => target.split_whitespace().collect(),
        };
        // The name of another target's claim matches no test here.
        let mut claims = vec!["--exact"];
        claims.extend(messages.keys().map(String::as_str));
        let alone = Selection {
            threads: selection.threads.and(Some(1)),
            ..selection
        };
        let Output { passed, text, .. } = cargo_test(alone, &cargo, &claims)?;
        let again = Failures::of(&text);
        let ran = names_that_passed(&text);
        if !passed || ran.is_empty() {
            let claims = again.messages.iter();
            let mut lines: Vec<_> = claims
                .map(|(name, message)| format!("{target}: {name}: {message}"))
                .collect();
            if lines.is_empty() {
                lines.push(format!("{target}: ended without naming a claim"));
            }
            self.failed.append(&mut lines);
        }
        let unsteady = ran.iter().filter_map(|name| {
            let message = messages.get(name)?;
            Some(format!("{target}: {name}: {message}"))
        });
        self.unsteady.extend(unsteady);
        Ok(())
    }

    /// Reports the times and the failures. Call it last, also after a step that failed.
    ///
    /// # Errors
    ///
    /// If a claim failed twice, or more than [`UNSTEADY_ALLOWED`] failed once.
    pub(crate) fn conclude(&self) -> anyhow::Result<()> {
        say(self.times.lines().into_iter());
        let unsteady = self.unsteady.iter();
        say(unsteady.map(|claim| format!("PASSED ONLY ALONE: {claim}")));
        say(self.failed.iter().map(|claim| format!("FAILED: {claim}")));
        if !self.failed.is_empty() {
            bail!("{} claims failed, also when run alone", self.failed.len());
        }
        if self.unsteady.len() > UNSTEADY_ALLOWED {
            bail!(
                "{} claims passed only when run alone, and {UNSTEADY_ALLOWED} may: find what disturbs them",
                self.unsteady.len()
            );
        }
        Ok(())
    }
}

#[expect(clippy::print_stderr, reason = "the only voice of a chore")]
fn say(lines: impl Iterator<Item = String>) {
    for line in lines {
        eprintln!("{line}");
    }
}

/// The failures in the output of cargo and the test programs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures {
    /// Arguments that select one target each, as cargo prints them: `-p lab --lib`.
    targets: BTreeSet<String>,
    /// Each failed claim with the beginning of its message.
    messages: BTreeMap<String, String>,
}

impl Failures {
    fn of(text: &str) -> Failures {
        let mut failures = Failures::default();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let target = line
                .strip_prefix("    `")
                .and_then(|it| it.strip_suffix('`'));
            if let Some(target) = target.filter(|it| it.starts_with("-p ")) {
                failures.targets.insert(target.to_owned());
            }
            let name = line.strip_prefix("---- ");
            let Some(name) = name.and_then(|it| it.strip_suffix(" stdout ----")) else {
                continue;
            };
            let mut message = String::new();
            while let Some(line) = lines.next_if(|it| is_of_a_message(it)) {
                // The text before it is the output of the test, and "thread … panicked at FILE:".
                let place = line.split_once(" panicked at ").map(|(_, place)| place);
                match place {
                    Some(place) => message = place.to_owned(),
                    None if message.is_empty() => {}
                    None => message = message + " " + line.trim(),
                }
            }
            let shown = message.chars().take(MESSAGE_SHOWN).collect();
            failures.messages.insert(name.to_owned(), shown);
        }
        failures
    }
}

fn is_of_a_message(line: &str) -> bool {
    !(line.starts_with("---- ") || line == "failures:" || line.starts_with("stack backtrace:"))
}

/// Names in lines such as `test a::b ... ok`, even if a claim printed text in between.
fn names_that_passed(text: &str) -> Vec<String> {
    let lines = text.lines();
    let passed = lines.filter_map(|line| {
        let (name, end) = timing::claim(line)?;
        end.ends_with("ok").then(|| name.to_owned())
    });
    passed.collect()
}

/// The output of `cargo test`.
#[derive(Debug)]
struct Output {
    /// True if all tests passed.
    passed: bool,
    text: String,
    /// The lines about the progress of test programs.
    progress: Vec<ArrivedLine>,
}

/// Runs `cargo test` and prints its output as it comes.
fn cargo_test(selection: Selection<'_>, cargo: &[&str], claims: &[&str]) -> anyhow::Result<Output> {
    let mut arguments = vec!["test", "--locked", "--no-fail-fast"];
    arguments.extend(cargo);
    let threads = selection.threads;
    let threads = threads.map(|number| format!("--test-threads={number}"));
    let programs = threads.as_deref().into_iter();
    let programs: Vec<&str> = programs.chain(claims.iter().copied()).collect();
    if !programs.is_empty() {
        arguments.push("--");
        arguments.extend(programs);
    }
    let command = arguments.join(" ");
    let shown = match command.char_indices().nth(COMMAND_SHOWN) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command,
    };
    say(std::iter::once(format!("xtask: cargo {shown}")));
    let mut child = Command::new(env!("CARGO"))
        .args(&arguments)
        .envs(selection.environment.iter().copied())
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("`cargo test` could not be started")?;
    let text = Arc::new(Mutex::new(String::new()));
    let output = child.stdout.take().context("its output is read")?;
    let complaints = child.stderr.take().context("its complaints are read")?;
    let output = pass_on(output, std::io::stdout(), Arc::clone(&text));
    let complaints = pass_on(complaints, std::io::stderr(), Arc::clone(&text));
    let status = child.wait().context("`cargo test` is waited for")?;
    // A reader that panicked has reported the reason. The text that it has read is judged.
    let progress = output.join().unwrap_or_default();
    drop(complaints.join());
    let text = std::mem::take(&mut *text.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Output {
        passed: status.success(),
        text,
        progress,
    })
}

/// Copies whole lines, so that the output of two streams stays readable, and keeps them. Returns the lines
/// about the progress of tests.
fn pass_on(
    from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    text: Arc<Mutex<String>>,
) -> thread::JoinHandle<Vec<ArrivedLine>> {
    thread::spawn(move || {
        let mut progress = Vec::new();
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            // The tests continue even if the terminal is gone.
            to.write_all(&line).and_then(|()| to.flush()).ok();
            let read = String::from_utf8_lossy(&line);
            progress.extend(ArrivedLine::of_progress(&read));
            let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(&read);
            drop(text);
            line.clear();
        }
        progress
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample output of cargo and libtest.
    const TEXT: &str = "\
running 3 tests
test a::first ... ok
test a::second ... weigh: something FAILED
test a::third ... FAILED

failures:

---- a::second stdout ----
a line that the test printed

thread 'a::second' (4242) panicked at tests/a.rs:7:9:
assertion `left == right` failed
  left: 1
 right: 2
note: run with `RUST_BACKTRACE=1`

---- a::third stdout ----
thread 'a::third' panicked at tests/a.rs:9:9:
no answer
stack backtrace:
   0: main

failures:
    a::second
    a::third

test result: FAILED. 1 passed; 2 failed; 0 ignored
error: test failed, to rerun pass `-p lab --test a`
error: 1 target failed:
    `-p lab --test a`
";

    #[test]
    fn failed_claims_and_their_targets_are_read_with_the_beginning_of_their_messages() {
        let failures = Failures::of(TEXT);
        assert_eq!(
            failures.targets.iter().collect::<Vec<_>>(),
            ["-p lab --test a"]
        );
        assert_eq!(failures.messages.len(), 2);
        let second = &failures.messages["a::second"];
        assert!(
            second.starts_with("tests/a.rs:7:9: assertion `left == right` failed left: 1 right: 2"),
            "{second}"
        );
        assert_eq!(failures.messages["a::third"], "tests/a.rs:9:9: no answer");
        assert_eq!(names_that_passed(TEXT), ["a::first"]);
    }

    #[test]
    fn a_claim_that_fails_twice_fails_the_run_and_few_may_fail_once() {
        let tally = |unsteady: usize, failed: usize| Tally {
            unsteady: vec!["-p a --lib: b: c".to_owned(); unsteady],
            failed: vec!["-p a --lib: b: c".to_owned(); failed],
            times: Times::default(),
        };
        assert!(tally(0, 0).conclude().is_ok());
        assert!(tally(UNSTEADY_ALLOWED, 0).conclude().is_ok());
        assert!(tally(UNSTEADY_ALLOWED + 1, 0).conclude().is_err());
        assert!(tally(0, 1).conclude().is_err());
    }
}
