//! The search for the highest rate that a candidate sustains. It runs in a turn of its own, or rate by rate
//! in turns with other candidates.

use std::fmt;
use std::time::Duration;

use load::{Job, Measurement};
use model::{Capacity, InvalidKind, Load, Phase, Rate};
use recording::{SearchRecord, SearchStep};
use schedule::Search;

use super::Experiment;
use super::in_turn::{Measuring, in_round};
use super::reading::Measured;
use super::round::Round;
use super::running::root_cause;
use super::running_variant::RunningVariant;
use crate::invalid::Invalid;
use crate::record;

/// Limit of repeated failures of one rate that are excused because other guests of the host had the
/// processors. Without it a search on a busy host would never end.
const DISTURBED_MAX: usize = 3;

/// Number of random orders for the passes of a round. A search with more passes repeats them.
const ORDERS: usize = 64;

/// The share of responses with a latency below the limit.
const SHARE: f64 = 0.99;

/// A search in progress.
struct Searching {
    capacity: Capacity,
    search: Search,
    /// The load of the first rate.
    first: Job,
    steps: Vec<SearchStep>,
    /// The measurement at the highest sustained rate.
    best: Option<Measured>,
    /// The reason for wrong responses at the lowest rate.
    wrong: Option<String>,
}

impl Searching {
    fn new(capacity: Capacity, first: Job) -> Searching {
        Searching {
            capacity,
            search: Search::new(capacity),
            first,
            steps: Vec::new(),
            best: None,
            wrong: None,
        }
    }

    /// The next rate with its load. `None` when the search has ended.
    fn next(&self) -> Option<(Rate, Job)> {
        let rate = self.search.rate()?;
        Some((rate, at_rate(&self.first, rate)))
    }

    /// Records the result of a rate. Returns the step as a line of text.
    fn tell(&mut self, rate: Rate, measured: Measured) -> String {
        let mut step = step(&measured.measurement, rate, self.capacity.p99_below());
        step.is_disturbed = !step.is_sustained && is_excused(&measured, &step, &self.steps);
        let shown = Shown(&step).to_string();
        // A disturbed rate gives no information about the target, so the search repeats it.
        if !step.is_disturbed {
            self.search.tell(step.is_sustained);
            if step.is_sustained {
                self.best = Some(measured);
            } else if self.best.is_none() {
                self.wrong = record::wrong_in(&measured.measurement);
            }
        }
        self.steps.push(step);
        shown
    }

    /// The measurement at the highest sustained rate, with the steps of the search.
    ///
    /// # Errors
    ///
    /// When no rate was sustained. A wrong response at a rate that is too high is overload, not a mistake of
    /// the variant. It is therefore judged only here.
    fn end(self) -> Result<(Measured, SearchRecord), Invalid> {
        let Some(measured) = self.best else {
            return Err(not_sustained(&self.steps, self.capacity, self.wrong));
        };
        let search = SearchRecord {
            steps: self.steps,
            is_at_top: self.search.is_at_top(),
        };
        Ok((measured, search))
    }
}

impl Measuring<'_> {
    /// Tries rates until the highest sustained rate is found. The measurement at that rate becomes the record
    /// of the round.
    pub(super) fn search(&mut self, capacity: Capacity) -> Result<(), Invalid> {
        let mut searching = Searching::new(capacity, self.ready()?);
        while let Some((rate, job)) = searching.next() {
            // Needs no warm-up, because the previous rate has warmed the systems.
            let measured = self.measure(&job)?;
            if measured.measurement.interrupted || self.run.session.stop.is_asked() {
                return Err(Invalid::interrupted());
            }
            // A target that ended fails every further rate. That is a crash and not a capacity.
            if let Some(ended) = self.running.ended(self.rig) {
                return Err(Invalid::new(InvalidKind::Crashed, ended));
            }
            let shown = searching.tell(rate, measured);
            let number = self.position.round + 1;
            let progress = &self.run.session.progress;
            progress.note(&format!("round {number}: {shown}"));
        }
        let (measured, search) = searching.end()?;
        let mut record = self.record(&measured);
        record.search = Some(search);
        self.keep(record);
        let unproven = measured.unproven;
        unproven.map_or(Ok(()), |invalid| {
            Err(in_round(invalid, self.position.round))
        })
    }
}

/// A running candidate with its search.
struct Seeker {
    up: RunningVariant,
    searching: Searching,
}

impl Experiment<'_> {
    /// Searches for the highest rates of all candidates side by side. One candidate at a time receives one
    /// rate, with the other candidates idle. Each pass has a new random order, so that slow phases of the
    /// machine affect all searches equally.
    pub(super) fn search_together(
        &mut self,
        round: &Round,
        up: Vec<RunningVariant>,
        jobs: Vec<Job>,
        capacity: Capacity,
    ) {
        let mut seekers: Vec<Option<Seeker>> = up
            .into_iter()
            .zip(jobs)
            .map(|(up, job)| {
                let searching = Searching::new(capacity, job);
                Some(Seeker { up, searching })
            })
            .collect();
        let orders = schedule::round_order(seekers.len(), ORDERS, round.arrival_seed);
        for order in orders.iter().cycle() {
            if seekers.iter().all(Option::is_none) {
                return;
            }
            for position in order {
                if let Some(seeker) = seekers[*position].take() {
                    seekers[*position] = self.advance(round, seeker);
                }
            }
        }
    }

    /// Tries the next rate of one search. Returns the search unless it has ended.
    fn advance(&mut self, round: &Round, mut seeker: Seeker) -> Option<Seeker> {
        let id = seeker.up.position.candidate;
        // The user stopped the run, or the candidate has no remaining comparison.
        if self.is_over() || self.candidates.is_needless(id) {
            seeker.up.running.stop(&mut self.rig);
            return None;
        }
        let Some((rate, job)) = seeker.searching.next() else {
            self.conclude(round, seeker);
            return None;
        };
        let run = self.run_of(round, &seeker.up);
        let measured = run.measure(&self.rig, &seeker.up.running, &job);
        let name = self.candidates.get(id).name();
        let ended = seeker.up.running.ended(&mut self.rig);
        let invalid = match (measured, ended) {
            (Ok(measured), None) => {
                // An interrupted measurement does not count. The next pass ends the search.
                if !measured.measurement.interrupted {
                    let shown = seeker.searching.tell(rate, measured);
                    let number = round.number + 1;
                    let progress = &self.session.progress;
                    progress.note(&format!("round {number}, {name}: {shown}"));
                }
                return Some(seeker);
            }
            (Ok(_), Some(ended)) => Invalid::new(InvalidKind::Crashed, ended),
            (Err(symptom), ended) => root_cause(ended, symptom),
        };
        seeker.up.running.stop(&mut self.rig);
        if invalid.kind != InvalidKind::Interrupted {
            self.reject(id, invalid);
        }
        None
    }

    /// Records the result of a search, and stops or keeps the systems.
    fn conclude(&mut self, round: &Round, seeker: Seeker) {
        let Seeker { up, searching } = seeker;
        let RunningVariant {
            position, running, ..
        } = up;
        let end = match searching.end() {
            Ok((measured, search)) => {
                let name = self.candidates.get(position.candidate).name();
                let mut record = measured.record(&self.session, name, position);
                record.search = Some(search);
                let line = record::line(&record, round.planned);
                self.session.progress.note(&line);
                self.records.push(record);
                measured
                    .unproven
                    .map(|invalid| in_round(invalid, position.round))
            }
            Err(invalid) => Some(invalid),
        };
        self.reused
            .keep_or_stop(&mut self.rig, position.candidate, running, end.is_none());
        if let Some(invalid) = end {
            self.reject(position.candidate, invalid);
        }
    }
}

/// True if a failed rate is repeated because other guests of the host had the processors. Their share must be
/// large enough to explain the slowest hundredth of the responses.
fn is_excused(measured: &Measured, step: &SearchStep, before: &[SearchStep]) -> bool {
    let machine = measured.machine;
    let is_stolen = machine.is_some_and(|machine| machine.stolen_share() > 1.0 - SHARE);
    // Compared for equality, because a repeated rate is exactly the same number.
    let excused = before
        .iter()
        .filter(|before| before.is_disturbed && before.rate_per_s == step.rate_per_s);
    is_stolen && excused.count() < DISTURBED_MAX
}

/// Returns the load with another rate.
fn at_rate(first: &Job, rate: Rate) -> Job {
    let mut job = first.clone();
    if let Load::Open { phases, .. } = &mut job.load {
        // A lab with a search has one phase, created for the search.
        for phase in phases {
            *phase = Phase::constant(phase.duration, rate);
        }
    }
    job
}

/// The result of one rate. It is sustained if all planned requests passed and the latency is below the limit.
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

/// A rate and its result, as a line of text.
struct Shown<'a>(&'a SearchStep);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(step) = self;
        let verdict = if step.is_sustained {
            "sustained"
        } else if step.is_disturbed {
            "again, because other programs used the processors"
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

/// The reason why a variant has no capacity. Wrong responses come first.
fn not_sustained(steps: &[SearchStep], capacity: Capacity, wrong: Option<String>) -> Invalid {
    if let Some(reason) = wrong {
        return Invalid::new(InvalidKind::Mismatched, reason);
    }
    let last = steps.last().expect("a search tries at least one rate");
    Invalid::new(
        InvalidKind::LoadFailed,
        format!(
            "the lowest rate of the search is not sustained with p99 below {:?}: {}. Lower \
             `capacity.from`",
            capacity.p99_below(),
            Shown(last)
        ),
    )
}
