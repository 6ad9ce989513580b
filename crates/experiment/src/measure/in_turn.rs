//! A round in turn: each candidate starts, proves, warms up, is measured and stops before the next one
//! starts. No other candidate disturbs it.

use load::Job;
use model::InvalidKind;
use recording::RoundRecord;
use rig::Rig;

use super::Experiment;
use super::reading::Measured;
use super::round::{Position, Round};
use super::running::{Running, root_cause};
use super::variant_run::VariantRun;
use crate::invalid::Invalid;
use crate::record;

/// Maximum number of attempts at a measurement. The last attempt counts even if it was disturbed.
pub const ATTEMPTS: u32 = 3;

/// The result of a variant run.
pub(super) struct VariantRunResult {
    /// The measurements. Disturbed measurements and measurements with wrong responses are included as
    /// evidence.
    pub(super) records: Vec<RoundRecord>,
    /// The reason if the candidate is rejected.
    pub(super) end: Result<(), Invalid>,
}

/// The measured part of a variant run.
pub(super) struct Measuring<'t> {
    pub(super) run: VariantRun<'t>,
    pub(super) position: Position,
    /// Total number of rounds as currently expected, for the progress lines.
    rounds_planned: usize,
    pub(super) rig: &'t mut Rig,
    pub(super) running: &'t Running,
    records: Vec<RoundRecord>,
}

impl Experiment<'_> {
    /// Measures every remaining candidate, in this round's order.
    pub(super) fn in_turn(&mut self, round: &Round) {
        for position in round.positions() {
            // Checked for each candidate, because a failed variant run may leave no comparison.
            if self.is_over() {
                return;
            }
            if !self.candidates.is_needless(position.candidate) {
                let VariantRunResult { records, end } = self.run_variant(round, position);
                let mut all = records.iter();
                let pushed_back = all.find_map(|it| self.pushed_back(position.candidate, it));
                let end = pushed_back.map_or(end, Err);
                self.records.extend(records);
                if let Err(invalid) = end {
                    self.reject(position.candidate, invalid);
                }
            }
            // Rejected candidates count too, because the bar counts planned variant runs.
            self.session.progress.step();
        }
    }

    /// One candidate's variant run: start, repeat the proof, settle, warm up, measure, stop.
    fn run_variant(&mut self, round: &Round, position: Position) -> VariantRunResult {
        let run = VariantRun::of_round(
            &self.session,
            self.candidates.get(position.candidate),
            round,
        );
        tracing::debug!(
            round = round.number + 1,
            position = position.index,
            variant = run.candidate.name(),
            "a turn begins"
        );
        let running = match self.reused.take(position.candidate) {
            Some(running) => Ok(running),
            None => run.start(&mut self.rig),
        };
        let mut running = match running {
            Ok(running) => running,
            Err(invalid) => {
                return VariantRunResult {
                    records: Vec::new(),
                    end: Err(invalid),
                };
            }
        };
        // A proof holds for one start, so each start needs one. It precedes the load, because the load leaves
        // data behind that would change the responses (rows, used up limits).
        let ready = run
            .prove_once(&mut running)
            .and_then(|()| run.settle_once(&mut running));
        let mut measuring = Measuring {
            run,
            position,
            rounds_planned: round.planned,
            rig: &mut self.rig,
            running: &running,
            records: Vec::new(),
        };
        let measured = ready.and_then(|()| match self.session.lab.capacity {
            Some(capacity) => measuring.search(capacity),
            None => measuring.attempts(),
        });
        let records = measuring.records;
        // Read before the stop, which ends all systems.
        let ended = running.ended(&mut self.rig);
        let is_well = measured.is_ok() && ended.is_none();
        self.reused
            .keep_or_stop(&mut self.rig, position.candidate, running, is_well);
        let end = end_of(measured.err(), ended, position.round).map_or(Ok(()), Err);
        VariantRunResult { records, end }
    }
}

impl Measuring<'_> {
    /// Repeats the measurement until the generator was not disturbed, at most [`ATTEMPTS`] times. A
    /// disturbance comes from the machine and does not depend on the variant. Only the clocks of the machine
    /// and the generator decide, never a latency. The recording marks disturbed measurements, so that no
    /// choice among results is hidden.
    fn attempts(&mut self) -> Result<(), Invalid> {
        for attempt in 1..=ATTEMPTS {
            let job = self.ready()?;
            let measured = self.measure(&job)?;
            let mut record = self.record(&measured);
            // The last attempt is never marked, because a machine that is always disturbed must show as such.
            record.disturbed = attempt < ATTEMPTS
                && !record.interrupted
                && analysis::summary::is_disturbed(&record);
            let is_disturbed = record.disturbed;
            let wrong = record::wrong_answers(&record)
                .map(|reason| Invalid::new(InvalidKind::Mismatched, reason));
            // Stored before the responses are judged, because wrong responses are evidence.
            self.keep(record);
            let unproven = measured.unproven;
            if let Some(invalid) =
                wrong.or_else(|| unproven.map(|invalid| in_round(invalid, self.position.round)))
            {
                return Err(invalid);
            }
            if !is_disturbed {
                break;
            }
        }
        assert!(!self.records.is_empty(), "each attempt leaves a record");
        Ok(())
    }

    /// Warms up. Returns the load of this round.
    pub(super) fn ready(&self) -> Result<Job, Invalid> {
        let job = self.run.job(self.running);
        self.run.warm_up(&job)?;
        Ok(job)
    }

    pub(super) fn measure(&self, job: &Job) -> Result<Measured, Invalid> {
        self.run.measure(self.rig, self.running, job)
    }

    pub(super) fn record(&self, measured: &Measured) -> RoundRecord {
        let VariantRun {
            session, candidate, ..
        } = self.run;
        measured.record(session, candidate.name(), self.position)
    }

    /// Stores a record, and prints its line.
    pub(super) fn keep(&mut self, record: RoundRecord) {
        let line = record::line(&record, self.rounds_planned);
        self.run.session.progress.note(&line);
        self.records.push(record);
    }
}

/// Adds the round to a reason.
pub(super) fn in_round(invalid: Invalid, round: usize) -> Invalid {
    let reason = format!("{} (round {})", invalid.reason, round + 1);
    Invalid { reason, ..invalid }
}

/// The reason why a measurement of that round has no number: the process that ended, or the mistake. `None`
/// if it has a number.
pub(super) fn end_of(
    symptom: Option<Invalid>,
    ended: Option<String>,
    round: usize,
) -> Option<Invalid> {
    match (symptom, ended) {
        (None, ended) => {
            ended.map(|ended| in_round(Invalid::new(InvalidKind::Crashed, ended), round))
        }
        (Some(symptom), ended) => Some(root_cause(ended, symptom)),
    }
}
