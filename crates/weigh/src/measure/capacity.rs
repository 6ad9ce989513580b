//! A turn in which the highest rate is looked for that a candidate sustains.

use std::fmt;
use std::time::Duration;

use load::{Job, Measurement};
use model::{Capacity, InvalidKind, Load, Phase, Rate};
use report::recording::{SearchRecord, SearchStep};
use schedule::Search;

use super::in_turn::{Measuring, in_round};
use super::reading::Measured;
use crate::record;
use crate::systems::Invalid;

/// How often a rate may fail while other guests of the host have the processors, before a failure
/// counts all the same: else a search on a busy host would have no end.
const DISTURBED_MAX: usize = 3;

/// The share of answers whose latency must stay below the limit.
const SHARE: f64 = 0.99;

impl Measuring<'_> {
    /// Tries rates until the highest is found that is sustained; what was measured at it becomes the
    /// record of the round.
    pub(super) fn search(&mut self, capacity: Capacity) -> Result<(), Invalid> {
        let first = self.ready()?;
        let mut search = Search::new(capacity);
        let mut steps: Vec<SearchStep> = Vec::new();
        let mut best: Option<Measured> = None;
        let mut wrong = None;
        while let Some(rate) = search.rate() {
            // Without another warm-up: the rate before has warmed the systems.
            let measured = self.measure(&at_rate(&first, rate))?;
            if measured.measurement.interrupted || self.turn.session.stop.is_asked() {
                return Err(Invalid::interrupted());
            }
            // A target that ended fails every further rate. That is a crash and no capacity.
            if let Some(ended) = self.running.ended(self.rig) {
                return Err(Invalid::new(InvalidKind::Crashed, ended));
            }
            let mut step = step(&measured.measurement, rate, capacity.p99_below());
            step.is_disturbed = !step.is_sustained && is_excused(&measured, &step, &steps);
            let shown = Shown(&step);
            let number = self.seat.round + 1;
            let progress = &self.turn.session.progress;
            progress.note(&format!("round {number}: {shown}"));
            // A disturbed rate says nothing of the target, so the search tries it again.
            if !step.is_disturbed {
                search.tell(step.is_sustained);
                if step.is_sustained {
                    best = Some(measured);
                } else if best.is_none() {
                    wrong = record::wrong_in(&measured.measurement);
                }
            }
            steps.push(step);
        }
        // Judged only at the end: a wrong answer at a rate that is too high is overload, not a
        // mistake of the variant.
        let Some(measured) = best else {
            return Err(not_sustained(&steps, capacity, wrong));
        };
        let mut record = self.record(&measured);
        record.search = Some(SearchRecord {
            steps,
            is_at_top: search.is_at_top(),
        });
        self.keep(record);
        let unproven = measured.unproven;
        unproven.map_or(Ok(()), |invalid| Err(in_round(invalid, self.seat.round)))
    }
}

/// Whether a rate that was not sustained is tried again, because others had the processors: of the
/// slowest hundredth, all may be theirs.
fn is_excused(measured: &Measured, step: &SearchStep, before: &[SearchStep]) -> bool {
    let machine = measured.machine;
    let is_stolen = machine.is_some_and(|machine| machine.stolen_share() > 1.0 - SHARE);
    let excused = before
        .iter()
        .filter(|before| before.is_disturbed && before.rate_per_s == step.rate_per_s);
    is_stolen && excused.count() < DISTURBED_MAX
}

/// The same load at another rate.
fn at_rate(first: &Job, rate: Rate) -> Job {
    let mut job = first.clone();
    if let Load::Open { phases, .. } = &mut job.load {
        // A lab that searches has one phase, which is made for this.
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

/// A rate and what became of it, for people.
struct Shown<'a>(&'a SearchStep);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(step) = self;
        let verdict = if step.is_sustained {
            "sustained"
        } else if step.is_disturbed {
            "again, as others had the processors"
        } else {
            "not sustained"
        };
        write!(out, "{:.0}/s {verdict}: ", step.rate_per_s)?;
        match step.latency_us_p99 {
            Some(us) => write!(out, "p99 {:.3} ms", us / 1e3)?,
            None => write!(out, "no answer")?,
        }
        match step.not_passed {
            0 => Ok(()),
            wrong => write!(out, ", {wrong} not passed"),
        }
    }
}

/// Why a variant has no capacity: wrong answers, where that is the reason.
fn not_sustained(steps: &[SearchStep], capacity: Capacity, wrong: Option<String>) -> Invalid {
    if let Some(reason) = wrong {
        return Invalid::new(InvalidKind::Mismatched, reason);
    }
    let last = steps.last().expect("a search tries at least one rate");
    Invalid::new(
        InvalidKind::LoadFailed,
        format!(
            "the lowest rate of the search is not sustained with p99 below {:?}: {}; \
             lower `capacity.from`",
            capacity.p99_below(),
            Shown(last)
        ),
    )
}
