//! The time of each step of CI, and of each claim that runs alone. The end of a run lists both, because the
//! next person who wants faster tests needs them first.

use std::time::{Duration, Instant};

use crate::clock::now;

/// Number of claims that the list shows.
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
    claims: Vec<Timed>,
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

    /// Adds claims that ran one at a time.
    pub(crate) fn add_claims(&mut self, claims: Vec<Timed>) {
        self.claims.extend(claims);
    }

    /// The list of all steps, then of the slowest claims with their sum.
    pub(crate) fn lines(&self) -> Vec<String> {
        let seconds = |took: Duration| took.as_secs_f64();
        let line =
            |kind: &str, it: &Timed| format!("{kind}: {:.0} s {}", seconds(it.took), it.name);
        let mut lines: Vec<String> = self.steps.iter().map(|it| line("STEP", it)).collect();
        let mut claims = self.claims.clone();
        claims.sort_by_key(|it| std::cmp::Reverse(it.took));
        let all: Duration = claims.iter().map(|it| it.took).sum();
        let shown = claims.iter().take(SLOWEST);
        let listed: Duration = shown.clone().map(|it| it.took).sum();
        lines.extend(shown.map(|it| line("SLOW", it)));
        if !claims.is_empty() {
            lines.push(format!(
                "SLOW: these take {:.0} of the {:.0} s of {} claims that ran one at a time",
                seconds(listed),
                seconds(all),
                claims.len()
            ));
        }
        lines
    }
}

/// A line of libtest, with the time of its arrival.
#[derive(Debug)]
pub(crate) struct ArrivedLine {
    pub(crate) at: Instant,
    pub(crate) line: String,
}

impl ArrivedLine {
    /// The line if it tells the progress of a test program. `None` for all other output.
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

/// The times of claims that ran one at a time. The line of a claim arrives at its end, so a claim lasts from
/// the line before it to its own.
pub(crate) fn claims(lines: &[ArrivedLine]) -> Vec<Timed> {
    let pairs = lines.windows(2);
    let timed = pairs.filter_map(|pair| {
        let [before, this] = pair else { return None };
        Some(Timed {
            name: claim(&this.line)?.0.to_owned(),
            took: this.at.saturating_duration_since(before.at),
        })
    });
    timed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_lasts_from_the_line_before_it() {
        let began = now();
        let texts = [
            "running 2 tests",
            "test a::first ... ok",
            "test a::second ... FAILED",
        ];
        let lines = texts
            .iter()
            .zip([0, 2, 5])
            .map(|(line, second)| ArrivedLine {
                at: began + Duration::from_secs(second),
                line: (*line).to_owned(),
            });
        let timed = claims(&lines.collect::<Vec<_>>());
        let mut times = Times::default();
        times.step("build", || ());
        times.add_claims(timed);
        assert_eq!(
            times.lines(),
            [
                "STEP: 0 s build",
                "SLOW: 3 s a::second",
                "SLOW: 2 s a::first",
                "SLOW: these take 5 of the 5 s of 2 claims that ran one at a time",
            ]
        );
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
