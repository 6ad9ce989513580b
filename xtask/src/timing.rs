//! The time of each step of CI, and of each end-to-end claim. The end of a run lists both, because the next
//! person who wants faster tests needs them first.

use std::time::{Duration, Instant};

use crate::clock::now;

/// Number of claims, and of test programs, that the list shows.
const SLOWEST: usize = 15;

/// A step or a claim with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) name: String,
    pub(crate) took: Duration,
}

/// The times of a run.
#[derive(Debug, Default)]
pub(crate) struct Times {
    steps: Vec<Timed>,
    /// Test programs, without the time to compile them.
    programs: Vec<Timed>,
    /// Claims that ran one at a time.
    alone: Vec<Timed>,
    /// Claims that ran at the same time as other claims. Their times include the wait for a core.
    together: Vec<Timed>,
}

impl Times {
    /// Runs a step and keeps its time, also if the step fails.
    pub(crate) fn step<T>(&mut self, name: &str, run: impl FnOnce() -> T) -> T {
        let began = now();
        let result = run();
        let (name, took) = (name.to_owned(), began.elapsed());
        self.steps.push(Timed { name, took });
        result
    }

    /// Adds test programs.
    pub(crate) fn add_programs(&mut self, programs: Vec<Timed>) {
        self.programs.extend(programs);
    }

    /// Adds claims of programs that ran this number of claims at the same time.
    pub(crate) fn add_claims(&mut self, claims: Vec<Timed>, threads: usize) {
        match threads {
            1 => self.alone.extend(claims),
            _ => self.together.extend(claims),
        }
    }

    /// The list of all steps with their sum, then of the slowest claims with their sum.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.steps.iter().map(|it| line("STEP", it)).collect();
        let all = sum(&self.steps).as_secs_f64();
        lines.push(format!("STEP: {all:.0} s in all"));
        for (all, what) in [
            (&self.programs, "test programs, without their compilation"),
            (&self.together, "claims that ran together"),
            (&self.alone, "claims that ran one at a time"),
        ] {
            lines.extend(slowest(all, what));
        }
        lines
    }
}

fn line(kind: &str, it: &Timed) -> String {
    format!("{kind}: {:.0} s {}", it.took.as_secs_f64(), it.name)
}

fn sum(all: &[Timed]) -> Duration {
    all.iter().map(|it| it.took).sum()
}

/// The slowest of these, and their share of the sum. Empty without any.
fn slowest(all: &[Timed], what: &str) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut ordered = all.to_vec();
    ordered.sort_by_key(|it| std::cmp::Reverse(it.took));
    ordered.truncate(SLOWEST);
    let mut lines: Vec<String> = ordered.iter().map(|it| line("SLOW", it)).collect();
    lines.push(format!(
        "SLOW: these take {:.0} of the {:.0} s of {} {what}",
        sum(&ordered).as_secs_f64(),
        sum(all).as_secs_f64(),
        all.len()
    ));
    lines
}

/// A line of libtest, with the time of its arrival.
#[derive(Debug)]
pub(crate) struct ArrivedLine {
    pub(crate) at: Instant,
    pub(crate) line: String,
}

impl ArrivedLine {
    /// The line if it reports the progress of a test program. `None` for all other output.
    pub(crate) fn of_progress(line: &str) -> Option<Self> {
        let is_progress = line.starts_with("running ") || claim(line).is_some();
        is_progress.then(|| Self {
            at: now(),
            line: line.trim_end().to_owned(),
        })
    }
}

/// The name and the rest of a line such as `test a::b ... ok`.
pub(crate) fn claim(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.split_once(" ... ")
}

/// The test programs in the output of `cargo test`, with the times that libtest reports. Documentation tests
/// come after them and are left out. Empty if a program ended without a report, because the times could then
/// belong to other programs.
pub(crate) fn programs(output: &str) -> Vec<Timed> {
    let before_documentation = output
        .lines()
        .take_while(|line| !line.starts_with("   Doc-tests "));
    let names: Vec<&str> = before_documentation
        .filter_map(|line| line.strip_prefix("     Running "))
        .collect();
    let times: Vec<Duration> = output.lines().filter_map(finished_in).collect();
    if times.len() < names.len() {
        return Vec::new();
    }
    let timed = names.into_iter().zip(times).map(|(name, took)| Timed {
        name: program(name),
        took,
    });
    timed.collect()
}

/// The time at the end of a line such as `test result: ok. 3 passed; …; finished in 0.27s`.
fn finished_in(line: &str) -> Option<Duration> {
    let (_, seconds) = line.strip_prefix("test result: ")?.rsplit_once(" in ")?;
    let seconds = seconds.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The name and the source in `tests/lab/main.rs (target/debug/deps/lab-0a1b)`.
fn program(line: &str) -> String {
    let Some((source, path)) = line.split_once(" (") else {
        return line.to_owned();
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.rsplit_once('-').map_or(name, |(name, _)| name);
    format!("{name}, {source}")
}

/// The times of claims in programs that ran this number of claims at the same time.
///
/// The line of a claim arrives at its end. libtest starts the claims in the order of their names, and each
/// after the end of an earlier claim. So the first ones began with the program, and each later one at the
/// next arrival. With one at a time, a claim lasts from the line before it to its own.
pub(crate) fn claims(lines: &[ArrivedLine], threads: usize) -> Vec<Timed> {
    let programs = lines.chunk_by(|_, next| claim(&next.line).is_some());
    let timed = programs.filter_map(|program| {
        let (running, ends) = program.split_first()?;
        let begins = std::iter::repeat_n(running.at, threads).chain(ends.iter().map(|it| it.at));
        let mut by_name: Vec<(&str, Instant)> = ends
            .iter()
            .filter_map(|end| Some((claim(&end.line)?.0, end.at)))
            .collect();
        by_name.sort_unstable();
        let timed = by_name
            .into_iter()
            .zip(begins)
            .map(|((name, end), begin)| Timed {
                name: name.to_owned(),
                took: end.saturating_duration_since(begin),
            });
        Some(timed.collect::<Vec<_>>())
    });
    timed.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with their seconds of arrival.
    fn arrived(lines: &[(&str, u64)]) -> Vec<ArrivedLine> {
        let began = now();
        let arrived = lines.iter().map(|(line, second)| ArrivedLine {
            at: began + Duration::from_secs(*second),
            line: (*line).to_owned(),
        });
        arrived.collect()
    }

    #[test]
    fn a_claim_lasts_from_the_line_before_it() {
        let lines = arrived(&[
            ("running 2 tests", 0),
            ("test a::first ... ok", 2),
            ("test a::second ... FAILED", 5),
        ]);
        let mut times = Times::default();
        times.step("build", || ());
        times.add_claims(claims(&lines, 1), 1);
        assert_eq!(
            times.lines(),
            [
                "STEP: 0 s build",
                "STEP: 0 s in all",
                "SLOW: 3 s a::second",
                "SLOW: 2 s a::first",
                "SLOW: these take 5 of the 5 s of 2 claims that ran one at a time",
            ]
        );
    }

    #[test]
    fn a_claim_that_ran_together_lasts_from_the_end_of_the_claim_before_it() {
        // `c` starts when `b` ends, and `d` when `a` ends. The second program starts again.
        let lines = arrived(&[
            ("running 4 tests", 10),
            ("test b ... ok", 12),
            ("test a ... ok", 15),
            ("test d ... ok", 16),
            ("test c ... ok", 19),
            ("running 1 test", 20),
            ("test e ... ok", 24),
        ]);
        let timed = claims(&lines, 2);
        let found: Vec<_> = timed
            .iter()
            .map(|it| (it.name.as_str(), it.took.as_secs()))
            .collect();
        assert_eq!(found, [("a", 5), ("b", 2), ("c", 7), ("d", 1), ("e", 4)]);
        let mut times = Times::default();
        times.add_claims(timed, 2);
        let last = times.lines().pop();
        assert_eq!(
            last.as_deref(),
            Some("SLOW: these take 19 of the 19 s of 5 claims that ran together")
        );
    }

    #[test]
    fn the_times_of_programs_are_read_from_their_reports() {
        let output = "    Finished `test` profile [unoptimized] target(s) in 1.00s
     Running unittests src/lib.rs (target/debug/deps/gateway_config-0a1b)
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.27s
     Running tests/lab/main.rs (target/debug/deps/lab-c0de)
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 61.50s
   Doc-tests gateway_config
";
        let end = "test result: ok. 0 passed; 0 failed; finished in 0.01s\n";
        let found = programs(&(output.to_owned() + end));
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.took.as_millis()))
            .collect();
        assert_eq!(
            found,
            [
                ("gateway_config, unittests src/lib.rs", 270),
                ("lab, tests/lab/main.rs", 61_500)
            ]
        );
        // A program that was killed has no report.
        let killed = output.replace("test result: FAILED", "killed");
        assert!(programs(&killed).is_empty());
    }

    #[test]
    fn only_lines_of_progress_count() {
        for (line, counts) in [
            ("running 31 tests", true),
            ("test a ... ok", true),
            ("test result: ok. 3 passed", false),
            ("cluster: up", false),
        ] {
            assert_eq!(ArrivedLine::of_progress(line).is_some(), counts, "{line}");
        }
    }
}
