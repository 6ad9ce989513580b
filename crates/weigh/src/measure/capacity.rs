//! One variant's turn in a round in which the highest rate is looked for that it sustains.

use std::time::Duration;

use load::{Job, Measurement};
use model::{Capacity, InvalidKind, Load, Phase, Rate};
use report::recording::{SearchRecord, SearchStep};
use schedule::Search;

use super::Experiment;
use super::turn::Turn;
use crate::record;
use crate::stack::{Invalid, Stack};

/// How often a rate may fail while other guests of the host have the processors, before a failure
/// counts all the same: else a search on a busy host would have no end.
const DISTURBED_MAX: usize = 3;

/// The share of answers whose latency must stay below the limit.
const SHARE: f64 = 0.99;

impl Experiment<'_> {
    /// Tries rates until the highest is found that is sustained; what was measured at it becomes the
    /// record of the round.
    pub(super) fn search(
        &mut self,
        stack: &Stack,
        capacity: Capacity,
        (round, position, index): (usize, usize, usize),
    ) -> Result<(), Invalid> {
        let first = self.ready(stack, round, index)?;
        let mut search = Search::new(capacity);
        let mut steps = Vec::new();
        let mut best: Option<Turn> = None;
        let mut wrong = None;
        while let Some(rate) = search.rate() {
            let turn = self.load(stack, &at_rate(&first, rate), round, index)?;
            if turn.measurement.interrupted || self.stop.is_asked() {
                return Err(Invalid::interrupted());
            }
            if let Some(ended) = stack.ended(&mut self.rig) {
                return Err(Invalid::new(InvalidKind::Crashed, ended));
            }
            let mut step = step(&turn.measurement, rate, capacity.p99_below());
            // Of the slowest hundredth, all may be theirs.
            let is_stolen = (turn.machine).is_some_and(|it| it.stolen_share() > 1.0 - SHARE);
            let disturbed = steps.iter().filter(|before: &&SearchStep| {
                before.is_disturbed && before.rate_per_s == step.rate_per_s
            });
            let is_excused = is_stolen && disturbed.count() < DISTURBED_MAX;
            step.is_disturbed = !step.is_sustained && is_excused;
            self.progress.note(&line(&step, round));
            if !step.is_disturbed {
                search.tell(step.is_sustained);
                if step.is_sustained {
                    best = Some(turn);
                } else if best.is_none() {
                    wrong = record::wrong_in(&turn.measurement);
                }
            }
            steps.push(step);
        }
        let Some(turn) = best else {
            return Err(not_sustained(&steps, capacity, wrong));
        };
        let name = &self.candidates[index].variant.name;
        let mut record = turn.record(round, position, name, self.started);
        record.search = Some(SearchRecord {
            steps,
            is_at_top: search.is_at_top(),
        });
        self.progress
            .note(&record::line(&record, self.rounds_planned()));
        self.rounds.push(record);
        turn.unproven.map_or(Ok(()), |invalid| {
            let reason = format!("{} (round {})", invalid.reason, round + 1);
            Err(Invalid::new(invalid.kind, reason))
        })
    }
}

/// The same load at another rate.
fn at_rate(first: &Job, rate: Rate) -> Job {
    let mut job = first.clone();
    if let Load::Open { phases, .. } = &mut job.load {
        for phase in phases {
            *phase = Phase::constant(phase.duration, rate);
        }
    }
    job
}

/// What became of one rate. All that was planned must be answered as expected, and in time.
fn step(seen: &Measurement, rate: Rate, p99_below: Duration) -> SearchStep {
    let p99 = seen.latency.quantile_ns(SHARE).map(Duration::from_nanos);
    let not_passed = seen.outcomes.total() - seen.outcomes.passed;
    SearchStep {
        rate_per_s: rate.per_second(),
        latency_us_p99: p99.map(|p99| p99.as_secs_f64() * 1e6),
        not_passed,
        is_sustained: not_passed == 0 && p99.is_some_and(|p99| p99 < p99_below),
        is_disturbed: false,
    }
}

fn line(step: &SearchStep, round: usize) -> String {
    let p99 = step.latency_us_p99.map_or_else(
        || "no answer".to_owned(),
        |us| format!("p99 {:.3} ms", us / 1e3),
    );
    let wrong = match step.not_passed {
        0 => String::new(),
        wrong => format!(", {wrong} not passed"),
    };
    let word = match step {
        SearchStep {
            is_sustained: true, ..
        } => "sustained",
        SearchStep {
            is_disturbed: true, ..
        } => "again, as others had the processors",
        _ => "not sustained",
    };
    format!(
        "round {}: {:.0}/s {word}: {p99}{wrong}",
        round + 1,
        step.rate_per_s
    )
}

/// Why a variant has no capacity: wrong answers, where that is the reason.
fn not_sustained(steps: &[SearchStep], capacity: Capacity, wrong: Option<String>) -> Invalid {
    if let Some(reason) = wrong {
        return Invalid::new(InvalidKind::Mismatched, reason);
    }
    let last = steps.last().map_or_else(String::new, |step| line(step, 0));
    let seen = last.split_once(": ").map_or("", |(_, seen)| seen);
    Invalid::new(
        InvalidKind::LoadFailed,
        format!(
            "the lowest rate of the search is not sustained with p99 below {:?}: {seen}; \
             lower `capacity.from`",
            capacity.p99_below()
        ),
    )
}
