//! Services of any latency. A planted share of it must lie inside the interval, and equal services must
//! rarely be claimed to differ.
//!
//! Two null servers are compared by `weigh ab`, as a user does it. All rows take hours. So each run is stored
//! in a file, and a later session continues at the end of the file.

mod found;
mod rows;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context as _, bail};
use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::figures::median;
use crate::bench;
use crate::repository::root;
use found::{Found, Said, Store};
use rows::Row;

/// Options of `--piece latency`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// File for the runs of `--piece latency`, with one line of JSON per run.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "docs/evidence/latency.jsonl"
    )]
    results: PathBuf,
    /// Include runs of other builds of `weigh` from this file in the table.
    #[arg(long)]
    any_build: bool,
    /// Maximum number of concurrent runs of `--piece latency`. Slow services mostly wait, so they
    /// can share the cores. A run that needs the cores, or microsecond precision, runs alone.
    #[arg(long, value_name = "N", default_value_t = 1)]
    at_once: usize,
    /// Number of runs per row of `--piece latency` without a planted difference. The default is the
    /// number of runs with a difference.
    #[arg(long, value_name = "N")]
    equal: Option<u64>,
}

/// A measurement of some rows.
pub(super) struct Plan<'a> {
    pub(super) weigh: &'a Path,
    /// Number of runs of each row with a planted difference.
    pub(super) repeat: u64,
    pub(super) rounds: u32,
    pub(super) is_busy: bool,
    /// Words of the names of rows. Empty for all rows.
    pub(super) only: &'a [String],
    pub(super) options: &'a Options,
}

/// Limit of the tries of a row, as a multiple of its runs, because the machine may spoil some tries.
const TRIES: u64 = 2;

/// Digits of the digest that name a build.
const BUILD_DIGITS: usize = 12;

/// Exit codes of `weigh` with JSON output: success, and a withheld verdict.
const WITH_ANSWER: [i32; 2] = [0, 7];

pub(super) fn section(plan: &Plan<'_>) -> anyhow::Result<String> {
    let is_wanted = |row: &Row| super::is_wanted(&row.to_string(), plan.only);
    let wanted: Vec<Row> = Row::all().into_iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        let names: Vec<String> = Row::all().iter().map(Row::to_string).collect();
        bail!(
            "no row has all words of `--only`; rows are:\n{}",
            names.join("\n")
        );
    }
    let build = build(plan.weigh)?;
    let session = Session {
        plan,
        store: Store::open(&root().join(&plan.options.results))?,
        underway: Vec::new(),
        has_failed: false,
        build,
    };
    session.announce(&wanted);
    let session = Shared {
        session: Mutex::new(session),
        has_ended: Condvar::new(),
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.options.at_once.max(1))
            .map(|_| scope.spawn(|| session.work(&wanted)))
            .collect();
        let ends = workers.into_iter().map(|worker| {
            let end = worker.join();
            end.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread of the runs panicked")))
        });
        // Every thread ends before the first error is returned.
        ends.collect::<Vec<anyhow::Result<()>>>()
            .into_iter()
            .collect::<anyhow::Result<()>>()
    })?;
    Ok(session.lock().table())
}

/// The build of a program: the first digits of its digest.
fn build(program: &Path) -> anyhow::Result<String> {
    let bytes =
        fs::read(program).with_context(|| format!("`{}` can be read", program.display()))?;
    let mut digits = HEXLOWER.encode(&Sha256::digest(bytes));
    digits.truncate(BUILD_DIGITS);
    Ok(digits)
}

impl Plan<'_> {
    /// Runs of each row, with a planted difference or without.
    fn repeat_of(&self, is_planted: bool) -> u64 {
        match self.options.equal {
            Some(equal) if !is_planted => equal,
            _ => self.repeat,
        }
    }

    /// Compares two servers in one run.
    fn run(&self, task: Task) -> anyhow::Result<Said> {
        let Task {
            row,
            is_planted,
            seed,
        } = task;
        // Different seeds, because two servers that draw the same delays would be equal request by request.
        let own_seed = 4 * seed + 2 * u64::from(is_planted);
        let first = NullServer::start(self.weigh, row, false, own_seed)?;
        let second = NullServer::start(self.weigh, row, is_planted, own_seed + 1)?;
        let out = tempfile::tempdir().context("a temporary folder")?;
        let rate = |rate: u32| vec!["--rate".to_owned(), format!("{rate}/s")];
        let load = match row.load {
            rows::Load::Open(per_second) => rate(per_second),
            rows::Load::Random(per_second) => {
                let mut flags = rate(per_second);
                flags.push("--arrival=poisson".to_owned());
                flags
            }
            rows::Load::Closed(many) => vec!["--connections".to_owned(), many.to_string()],
        };
        let rounds = self.rounds;
        let milliseconds = row.round_s() * 1e3 * f64::from(rounds);
        let output = Command::new(self.weigh)
            .args(["ab", &first.url, &second.url, "--format", "json"])
            .args(load)
            .args(["--duration", &format!("{milliseconds:.0}ms")])
            .args(["--rounds", &rounds.to_string()])
            .args(["--seed", &seed.to_string(), "--out"])
            .arg(out.path())
            .current_dir(out.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .context("weigh starts")?;
        let talk = String::from_utf8_lossy(&output.stderr);
        let Some(code) = output
            .status
            .code()
            .filter(|code| WITH_ANSWER.contains(code))
        else {
            bail!("weigh ended with {} and said:\n{talk}", output.status);
        };
        let answer: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("weigh ended with {code} and said:\n{talk}"))?;
        let truth = |baseline| row.truth(is_planted, baseline);
        Said::of(&answer["summary"], row.headline(), truth).with_context(|| row.to_string())
    }
}

/// A run of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Task {
    row: Row,
    is_planted: bool,
    seed: u64,
}

/// A session that several threads run.
struct Shared<'a> {
    session: Mutex<Session<'a>>,
    /// Wakes the threads that wait for room.
    has_ended: Condvar,
}

impl<'a> Shared<'a> {
    fn lock(&self) -> MutexGuard<'_, Session<'a>> {
        // A thread that panicked leaves complete runs behind, because each is added in one step.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Performs missing runs until all rows are complete or a run has failed.
    fn work(&self, wanted: &[Row]) -> anyhow::Result<()> {
        let plan = self.lock().plan;
        loop {
            let task = {
                let mut session = self.lock();
                loop {
                    match session.next(wanted) {
                        Next::Task(task) => break task,
                        Next::Nothing => return Ok(()),
                        Next::Later => {
                            session = self
                                .has_ended
                                .wait(session)
                                .unwrap_or_else(PoisonError::into_inner);
                        }
                    }
                }
            };
            let said = plan.run(task);
            let mut session = self.lock();
            session.underway.retain(|other| *other != task);
            let kept = said.and_then(|said| session.keep(task, said));
            session.has_failed |= kept.is_err();
            self.has_ended.notify_all();
            kept?;
        }
    }
}

/// The next step of a thread.
#[derive(Debug, PartialEq)]
enum Next {
    Task(Task),
    /// A run is missing, and the runs in progress leave no room for it.
    Later,
    Nothing,
}

struct Session<'a> {
    plan: &'a Plan<'a>,
    store: Store,
    underway: Vec<Task>,
    has_failed: bool,
    build: String,
}

impl Session<'_> {
    /// Stored runs that count here.
    fn runs(&self) -> impl Iterator<Item = &Found> {
        self.store.runs.iter().filter(|run| {
            let is_build = self.plan.options.any_build || run.build == self.build;
            is_build && run.is_busy == self.plan.is_busy
        })
    }

    fn runs_of(&self, row: Row, is_planted: bool) -> Vec<&Found> {
        let name = row.to_string();
        let own = self.runs().filter(|run| run.row == name);
        own.filter(|run| run.is_planted == is_planted).collect()
    }

    /// Runs that are evidence, and runs that the machine spoiled.
    fn counts(&self, row: Row, is_planted: bool) -> (u64, u64) {
        let runs = self.runs_of(row, is_planted);
        let evidence = runs.iter().filter(|run| run.said.is_evidence()).count();
        (evidence as u64, (runs.len() - evidence) as u64)
    }

    /// Prints the number of missing runs and their duration.
    fn announce(&self, wanted: &[Row]) {
        let mut missing = 0;
        let mut seconds = 0.0;
        for row in wanted {
            for is_planted in [true, false] {
                let (evidence, _) = self.counts(*row, is_planted);
                let left = self.plan.repeat_of(is_planted).saturating_sub(evidence);
                missing += left;
                seconds += left as f64 * row.run_s(self.plan.rounds);
            }
        }
        bench::say(&format!(
            "{missing} runs are missing in {} rows: some {:.0} minutes one after the other",
            wanted.len(),
            seconds / 60.0
        ));
    }

    /// The first missing run that fits next to the runs in progress.
    fn next(&mut self, wanted: &[Row]) -> Next {
        if self.has_failed {
            return Next::Nothing;
        }
        let taken: f64 = self.underway.iter().map(|task| task.row.share()).sum();
        let mut is_missing = false;
        for row in wanted {
            for is_planted in [true, false] {
                let Some(seed) = self.missing(*row, is_planted) else {
                    continue;
                };
                is_missing = true;
                if self.underway.is_empty() || taken + row.share() <= 1.0 + 1e-9 {
                    let task = Task {
                        row: *row,
                        is_planted,
                        seed,
                    };
                    self.underway.push(task);
                    return Next::Task(task);
                }
            }
        }
        // A run in progress may still be spoiled, and then another run is missing.
        if is_missing || !self.underway.is_empty() {
            Next::Later
        } else {
            Next::Nothing
        }
    }

    /// The seed of the next run of a row, if one is missing.
    fn missing(&self, row: Row, is_planted: bool) -> Option<u64> {
        let repeat = self.plan.repeat_of(is_planted);
        let (evidence, spoiled) = self.counts(row, is_planted);
        let own = |task: &&Task| task.row == row && task.is_planted == is_planted;
        let underway = self.underway.iter().filter(own);
        let many = underway.clone().count() as u64;
        if evidence + many >= repeat || evidence + spoiled + many >= TRIES * repeat {
            return None;
        }
        // Never the seed of a stored run, because another session may have stored it.
        let stored = self.runs_of(row, is_planted);
        let seeds = stored.into_iter().map(|run| run.seed);
        let seeds = seeds.chain(underway.map(|task| task.seed));
        Some(seeds.max().unwrap_or(0) + 1)
    }

    /// Prints and stores the result of a run.
    fn keep(&mut self, task: Task, said: Said) -> anyhow::Result<()> {
        let Task {
            row,
            is_planted,
            seed,
        } = task;
        let kind = if is_planted { "+2 %" } else { "equal" };
        let (evidence, _) = self.counts(row, is_planted);
        bench::say(&format!(
            "{row}, {kind}, {}/{}: {}",
            evidence + 1,
            self.plan.repeat_of(is_planted),
            said_in_words(row, &said)
        ));
        self.store.add(Found {
            build: self.build.clone(),
            row: row.to_string(),
            is_busy: self.plan.is_busy,
            is_planted,
            seed,
            said,
        })
    }

    /// The table of all stored runs.
    fn table(&self) -> String {
        let mut lines = String::new();
        let mut total = Total::default();
        for row in Row::all() {
            let planted = self.runs_of(row, true);
            let equal = self.runs_of(row, false);
            if planted.is_empty() && equal.is_empty() {
                continue;
            }
            total.add(&planted, &equal);
            let _ = writeln!(lines, "{}", line(row, &planted, &equal));
        }
        let others = self.store.runs.len() - self.runs().count();
        let beside = match others {
            0 => String::new(),
            many => format!("\n{many} runs of other builds or circumstances are in no row.\n"),
        };
        format!(
            "Two null servers, compared by `weigh ab` with {} rounds of 0.5 s and more, in {} of {} rows:\n\n\
             | load | planted | inside the interval | equal pairs claimed to differ | without a verdict | \
             typical result of the planted runs |\n|---|---|---|---|---|---|\n{lines}\n{}{beside}",
            self.plan.rounds,
            total.rows,
            Row::all().len(),
            total.in_words(),
        )
    }
}

/// One row of the table.
fn line(row: Row, planted: &[&Found], equal: &[&Found]) -> String {
    let evidence = |runs: &[&Found]| runs.iter().filter(|run| run.said.is_evidence()).count();
    let (inside, claimed) = (
        planted.iter().filter(|run| run.said.is_inside()).count(),
        equal.iter().filter(|run| run.said.claims()).count(),
    );
    let all = planted.iter().chain(equal).copied();
    let of = |pick: fn(&Said) -> Option<f64>| {
        let picked: Vec<f64> = planted.iter().filter_map(|run| pick(&run.said)).collect();
        (!picked.is_empty()).then(|| median(&picked))
    };
    let truth = of(|said| match said {
        Said::Verdict { truth, .. } => Some(*truth),
        Said::Nothing(_) => None,
    });
    let value = of(|said| match said {
        Said::Verdict { difference, .. } => Some(*difference),
        Said::Nothing(_) => None,
    });
    let half_width = of(|said| match said {
        Said::Verdict { low, high, .. } => Some((high - low) / 2.0),
        Said::Nothing(_) => None,
    });
    let shown = |value: Option<f64>| value.map_or("–".to_owned(), |it| row.in_words(it));
    let result = half_width.map_or("–".to_owned(), |half| {
        let half = row.in_words(half);
        format!("{} ±{}", shown(value), half.trim_start_matches('+'))
    });
    format!(
        "| {row} | {} | {inside} of {} | {claimed} of {} | {} | {result} |",
        shown(truth),
        evidence(planted),
        equal.iter().filter(|run| run.said.has_verdict()).count(),
        causes(all),
    )
}

/// The causes with their counts, such as `left-out 3, steal 1`, or 0.
fn causes<'a>(runs: impl Iterator<Item = &'a Found>) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for run in runs {
        if let Said::Nothing(causes) = &run.said {
            *counts.entry(causes.join(" and ")).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return "0".to_owned();
    }
    let named = counts
        .iter()
        .map(|(cause, count)| format!("{cause} {count}"));
    named.collect::<Vec<_>>().join(", ")
}

/// The sum of all rows.
#[derive(Default)]
struct Total {
    rows: usize,
    equal: usize,
    claimed: usize,
    /// Share of planted runs with the truth in their interval, in the worst row.
    least: Option<f64>,
}

impl Total {
    fn add(&mut self, planted: &[&Found], equal: &[&Found]) {
        self.rows += 1;
        self.equal += equal.iter().filter(|run| run.said.has_verdict()).count();
        self.claimed += equal.iter().filter(|run| run.said.claims()).count();
        let evidence = planted.iter().filter(|run| run.said.is_evidence()).count();
        let inside = planted.iter().filter(|run| run.said.is_inside()).count();
        if evidence > 0 {
            let share = inside as f64 / evidence as f64;
            self.least = Some(self.least.map_or(share, |least| least.min(share)));
        }
    }

    fn in_words(&self) -> String {
        let share = self.claimed as f64 / self.equal.max(1) as f64 * 100.0;
        let least = self.least.map_or_else(String::new, |least| {
            format!(
                "In the worst row the planted difference is inside the interval in {:.0} % of the runs.\n",
                least * 100.0
            )
        });
        format!(
            "Over all rows, {} of {} equal pairs are claimed to differ ({share:.1} %).\n{least}",
            self.claimed, self.equal
        )
    }
}

fn said_in_words(row: Row, said: &Said) -> String {
    match said {
        Said::Nothing(causes) => format!("no verdict: {}", causes.join(", ")),
        Said::Verdict {
            difference,
            low,
            high,
            truth,
            ..
        } => {
            let [value, low, high, truth] =
                [difference, low, high, truth].map(|it| row.in_words(*it));
            let place = if said.is_inside() {
                "inside"
            } else {
                "outside"
            };
            format!("{value} ({low} to {high}), the true {truth} is {place}")
        }
    }
}

/// A null server. Dropping it ends the process.
struct NullServer {
    child: Child,
    url: String,
}

impl NullServer {
    fn start(weigh: &Path, row: Row, is_planted: bool, seed: u64) -> anyhow::Result<NullServer> {
        let mut child = Command::new(weigh)
            .args(["null-server", "--delay", &row.delay(is_planted)])
            .args(["--jitter", &row.jitter(), "--seed", &seed.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("weigh starts")?;
        let stdout = child.stdout.take().context("its output is read")?;
        let mut server = NullServer {
            child,
            url: String::new(),
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        line.trim().clone_into(&mut server.url);
        if server.url.is_empty() {
            bail!("a null server does not start");
        }
        Ok(server)
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(is_planted: bool, said: Said) -> Found {
        Found {
            build: "abc".to_owned(),
            row: "open 12ms 100/s even".to_owned(),
            is_busy: false,
            is_planted,
            seed: 1,
            said,
        }
    }

    fn verdict(low: f64, high: f64, truth: f64) -> Said {
        Said::Verdict {
            claims: low > 0.0 || high < 0.0,
            difference: f64::midpoint(low, high),
            low,
            high,
            truth,
        }
    }

    fn withheld(cause: &str) -> Said {
        Said::Nothing(vec![cause.to_owned()])
    }

    #[test]
    fn slow_services_are_measured_at_once_and_fast_ones_alone() {
        let share = |name: &str| {
            let row = Row::all().into_iter().find(|row| row.to_string() == name);
            row.unwrap_or_else(|| panic!("no row `{name}`")).share()
        };
        assert!((share("open 0.1ms 20/s even") - 1.0).abs() < 1e-9);
        assert!((share("open 1ms 100/s even") - 0.5).abs() < 1e-9);
        assert!((share("closed 400ms c=1 jitter") - 0.025).abs() < 1e-9);
        // 5,289 requests/s keep 0.26 cores busy, and all runs together may use 0.7.
        assert!((share("closed 12ms c=64 even") - 0.378).abs() < 1e-3);
    }

    #[test]
    fn a_row_counts_runs_withheld_for_reasons_of_ours_and_names_the_causes() {
        let planted = [
            run(true, verdict(200.0, 260.0, 240.0)),
            run(true, verdict(250.0, 270.0, 240.0)),
            run(true, withheld("left-out")),
            run(true, withheld("steal")),
        ];
        let equal = [
            run(false, verdict(-10.0, 20.0, 0.0)),
            run(false, verdict(5.0, 20.0, 0.0)),
        ];
        let [planted, equal] = [&planted[..], &equal[..]].map(|it| it.iter().collect::<Vec<_>>());
        let row = Row::all()
            .into_iter()
            .find(|row| row.to_string() == "open 12ms 100/s even")
            .unwrap();
        assert_eq!(
            line(row, &planted, &equal),
            "| open 12ms 100/s even | +240 us | 1 of 3 | 1 of 2 | left-out 1, steal 1 | +245 us ±20.0 us |"
        );
        let mut total = Total::default();
        total.add(&planted, &equal);
        let words = total.in_words();
        assert!(words.contains("1 of 2 equal pairs"), "{words}");
        assert!(words.contains("33 % of the runs"), "{words}");
    }

    #[test]
    fn a_row_without_a_single_verdict_has_dashes() {
        let planted = [run(true, withheld("left-out"))];
        let planted: Vec<&Found> = planted.iter().collect();
        assert_eq!(
            line(Row::all()[0], &planted, &[]),
            "| open 0.1ms 20/s even | – | 0 of 1 | 0 of 0 | left-out 1 | – |"
        );
    }
}
