//! One variant's turn in a round: start, repeat the proof, warm up, measure, stop.

use std::time::{Duration, Instant};

use lab::Variant;
use load::{Job, Measurement, Target};
use report::recording::{InvalidKind, MachineUse, ProofSeen, RoundRecord, SystemUsage};
use rig::Usage;
use schedule::Arrival;

use super::kept::Kept;
use super::{Candidate, Experiment, FAILURES_KEPT, because};
use crate::environment::instant;
use crate::prove::{Between, Proven, Subject, Watch};
use crate::record;
use crate::stack::{self, Invalid, Shares, Stack};

/// How often a measurement is made before a disturbed one is taken as it is.
const ATTEMPTS: usize = 3;

/// A window of the load after a start.
const WINDOW: Duration = Duration::from_millis(500);
/// So many windows without a gain are enough.
const WINDOWS_STILL: usize = 3;
/// What counts as a gain.
const GAIN: f64 = 1.02;

/// Whether the last windows brought nothing beyond the best before them.
fn is_settled(rates: &[f64]) -> bool {
    let Some(before) = rates.len().checked_sub(WINDOWS_STILL) else {
        return false;
    };
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    before > 0 && best(&rates[before..]) <= best(&rates[..before]) * GAIN
}

impl Candidate<'_> {
    fn proven(&self) -> &Proven {
        let proven = self.proven.as_ref();
        proven.expect("a variant that is still in has been proven")
    }
}

impl Experiment<'_> {
    /// One variant's turn: start, repeat the proof, warm up, measure, stop.
    pub(super) fn turn(
        &mut self,
        round: usize,
        position: usize,
        index: usize,
    ) -> Result<(), Invalid> {
        tracing::debug!(
            round = round + 1,
            position,
            variant = self.candidates[index].variant.name,
            "a turn begins"
        );
        let mut kept = self.taken(index, &format!("round-{}", round + 1))?;
        let measured = self
            .prove_once(&mut kept, index)
            .and_then(|()| self.settle_once(&mut kept, round, index))
            .and_then(|()| match self.lab.capacity {
                Some(capacity) => self.search(&kept.stack, capacity, (round, position, index)),
                None => self.attempts(&kept.stack, round, position, index),
            });
        let ended = kept.stack.ended(&mut self.rig);
        self.keep_or_stop(index, kept, measured.is_ok() && ended.is_none());
        match (measured, ended) {
            (Ok(()), Some(ended)) => Err(Invalid::new(
                InvalidKind::Crashed,
                format!("{ended} (round {})", round + 1),
            )),
            (Err(invalid), ended) => Err(because(ended, invalid)),
            (Ok(()), None) => Ok(()),
        }
    }

    /// Measures until the generator was left to run, a few times at the most: what keeps it from
    /// running is the machine's doing and says nothing about the variant. A disturbed measurement is
    /// recorded as such.
    fn attempts(
        &mut self,
        stack: &Stack,
        round: usize,
        position: usize,
        index: usize,
    ) -> Result<(), Invalid> {
        for attempt in 1..=ATTEMPTS {
            let job = self.ready(stack, round, index)?;
            let turn = self.load(stack, &job, round, index)?;
            let name = &self.candidates[index].variant.name;
            let mut record = turn.record(round, position, name, self.started);
            record.disturbed =
                attempt < ATTEMPTS && !record.interrupted && report::summary::is_disturbed(&record);
            let is_disturbed = record.disturbed;
            self.progress
                .note(&record::line(&record, self.rounds_planned()));
            let wrong = record::wrong_answers(&record)
                .map(|reason| Invalid::new(InvalidKind::Mismatched, reason));
            let round = round + 1;
            let unproven = turn.unproven.map(|invalid| {
                Invalid::new(invalid.kind, format!("{} (round {round})", invalid.reason))
            });
            // What was seen is kept, also when it was wrong: it is the evidence.
            self.rounds.push(record);
            if let Some(invalid) = wrong.or(unproven) {
                return Err(invalid);
            }
            if !is_disturbed {
                break;
            }
        }
        Ok(())
    }

    /// The load that comes once after a start, until the target gets no faster.
    fn settle_once(&self, kept: &mut Kept, round: usize, index: usize) -> Result<(), Invalid> {
        let Some(settle) = self.lab.settle.filter(|_| !kept.is_settled) else {
            return Ok(());
        };
        let candidate = &self.candidates[index];
        let label = format!("round {}, {}, settling", round + 1, candidate.variant.name);
        let job = Job {
            load: schedule::Load::Closed {
                connections: settle.connections,
                stop: schedule::Stop {
                    requests: None,
                    duration: Some(WINDOW.min(settle.within)),
                },
            },
            connections_max: settle.connections,
            threads: 1,
            ..self.job(
                kept.stack.target(),
                candidate.variant,
                candidate.proven(),
                round,
            )
        };
        let began = instant();
        let mut rates = Vec::new();
        while !is_settled(&rates) && began.elapsed() < settle.within && !self.stop.is_asked() {
            let measured = self.thrown_away(&job, &label, "while settling")?;
            rates.push(measured.outcomes.passed as f64 / measured.elapsed.as_secs_f64());
        }
        kept.is_settled = true;
        Ok(())
    }

    /// Repeats the proof, unless these systems have given it.
    fn prove_once(&self, kept: &mut Kept, index: usize) -> Result<(), Invalid> {
        if kept.is_proven {
            return Ok(());
        }
        let candidate = &self.candidates[index];
        candidate.proven().repeat(Subject {
            lab: self.lab,
            variant: candidate.variant,
            stack: &kept.stack,
        })?;
        kept.is_proven = true;
        Ok(())
    }

    /// Warms up; gives the load of this round.
    pub(super) fn ready(
        &mut self,
        stack: &Stack,
        round: usize,
        index: usize,
    ) -> Result<Job, Invalid> {
        let candidate = &self.candidates[index];
        let job = self.job(stack.target(), candidate.variant, candidate.proven(), round);
        let label = format!("round {}, {}", round + 1, candidate.variant.name);
        self.warm_up(&job, &label)?;
        Ok(job)
    }

    /// One measurement of what is ready.
    pub(super) fn load(
        &mut self,
        stack: &Stack,
        job: &Job,
        round: usize,
        index: usize,
    ) -> Result<Turn, Invalid> {
        if self.stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        let candidate = &self.candidates[index];
        let label = format!("round {}, {}", round + 1, candidate.variant.name);
        tracing::debug!(label, "the load begins");
        let watch = Watch::begin(candidate.variant, stack)?;
        let tallies = stack.tallies(&self.rig)?;
        let began = instant();
        let before = stack.usage(&self.rig);
        let moment = rig::moment();
        let look = || (rig::moment(), stack.usage(&self.rig));
        let measured = self.progress.during(&label, |live| {
            load::run_and_look(job, live, self.stop.flag(), look)
        });
        let (measurement, (moment_after, after)) =
            measured.map_err(|error| Invalid::new(InvalidKind::LoadFailed, error.to_string()))?;
        tracing::debug!(label, interrupted = measurement.interrupted, took = ?began.elapsed(), "the load has ended");
        // What is cut short has requests under way that nobody counts.
        let (mut proofs, mut unproven) = if measurement.interrupted {
            (Vec::new(), None)
        } else {
            watch.end(between(&measurement))
        };
        let shares = stack::between(&tallies, &stack.tallies(&self.rig)?);
        if !measurement.interrupted {
            let counted = between(&measurement);
            let counted = (counted.complete, counted.sent);
            let target = stack::target_of(&candidate.setups);
            match stack::judge(&shares, target, counted) {
                Some(Ok(seen)) => proofs.push(seen),
                Some(Err(invalid)) => unproven = unproven.or(Some(invalid)),
                None => {}
            }
        }
        let machine = record::machine(moment, moment_after);
        Ok(Turn {
            began,
            measurement,
            machine,
            proofs,
            unproven,
            before,
            after,
            shares,
        })
    }

    /// Load that is thrown away; wrong answers in it count all the same.
    pub(super) fn warm_up(&self, job: &Job, label: &str) -> Result<(), Invalid> {
        if self.lab.warmup.is_zero() {
            return Ok(());
        }
        let job = Job {
            load: warmup_of(&job.load, self.lab.warmup),
            ..job.clone()
        };
        self.thrown_away(&job, &format!("{label}, warming up"), "while warming up")
            .map(|_| ())
    }

    /// Load that is no measurement.
    fn thrown_away(&self, job: &Job, label: &str, when: &str) -> Result<Measurement, Invalid> {
        tracing::debug!(label, "load that is thrown away begins");
        let sent = self
            .progress
            .during(label, |live| load::run(job, live, self.stop.flag()))
            .map_err(|error| Invalid::new(InvalidKind::LoadFailed, error.to_string()))?;
        match record::wrong_in(&sent) {
            None => Ok(sent),
            Some(reason) => Err(Invalid::new(
                InvalidKind::Mismatched,
                format!("{when}, {reason}"),
            )),
        }
    }

    pub(super) fn job(
        &self,
        target: Target,
        variant: &Variant,
        proven: &Proven,
        round: usize,
    ) -> Job {
        // Random arrivals differ from round to round and are equal within one: what a plan does to
        // one variant of a round, it does to all.
        let mut load = self.lab.load.clone();
        if let schedule::Load::Open {
            arrival: Arrival::Poisson { seed },
            ..
        } = &mut load
        {
            *seed = self.seed.wrapping_add(round as u64);
        }
        Job {
            load,
            target,
            requests: proven.requests.clone(),
            steps: proven.steps.clone(),
            data: Some(proven.data.clone()),
            connections_max: self.lab.connections_max,
            threads: self.lab.threads,
            timeout: self.lab.timeout,
            keep_alive: variant.keep_alive,
            failures_kept: FAILURES_KEPT,
            spin_share: f64::from(self.lab.spin_percent) / 100.0,
            realtime: self.lab.realtime,
            bound: load::Bounds::default(),
            cpus: self.generator_cpus.clone(),
        }
    }
}

fn between(measurement: &Measurement) -> Between {
    let outcomes = &measurement.outcomes;
    Between {
        complete: outcomes.passed + outcomes.mismatched.total(),
        sent: measurement.sent,
    }
}

/// One measurement, before it becomes a record.
pub(super) struct Turn {
    began: Instant,
    pub(super) measurement: Measurement,
    /// What the whole machine did meanwhile.
    pub(super) machine: Option<MachineUse>,
    /// What other systems saw of it.
    proofs: Vec<ProofSeen>,
    /// The first proof that was not given.
    pub(super) unproven: Option<Invalid>,
    before: Vec<(String, Option<Usage>)>,
    after: Vec<(String, Option<Usage>)>,
    /// What each instance behind a balancer did.
    shares: Vec<Shares>,
}

impl Turn {
    pub(super) fn record(
        &self,
        round: usize,
        position: usize,
        variant: &str,
        run: Instant,
    ) -> RoundRecord {
        let systems = self
            .before
            .iter()
            .zip(&self.after)
            .filter_map(|((name, before), (_, after))| {
                let shares = self.shares.iter().find(|shares| shares.system == *name);
                Some(SystemUsage {
                    instances: shares.map_or_else(Vec::new, |it| it.instances.clone()),
                    ..record::usage(name, before.as_ref()?, after.as_ref()?)
                })
            })
            .collect();
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        RoundRecord {
            round: number(round),
            position: number(position),
            variant: variant.to_owned(),
            started_offset_us: record::micros(self.began.duration_since(run)),
            machine: self.machine,
            systems,
            proofs: self.proofs.clone(),
            ..record::measurement(&self.measurement)
        }
    }
}

/// The same load, shorter and without its ups and downs.
fn warmup_of(load: &schedule::Load, length: Duration) -> schedule::Load {
    match load {
        schedule::Load::Closed { connections, .. } => schedule::Load::Closed {
            connections: *connections,
            stop: schedule::Stop {
                requests: None,
                duration: Some(length),
            },
        },
        schedule::Load::Open {
            phases, arrival, ..
        } => {
            let first = &phases[0];
            let rate = if first.from < first.to {
                first.to
            } else {
                first.from
            };
            schedule::Load::Open {
                phases: vec![schedule::Phase {
                    duration: length,
                    from: rate,
                    to: rate,
                }],
                arrival: *arrival,
                requests_max: None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_settled_when_three_windows_brought_nothing() {
        for (rates, settled) in [
            (&[][..], false),
            (&[100.0, 100.0, 100.0], false),
            (&[100.0, 101.0, 99.0, 102.0], true),
            (&[100.0, 101.0, 99.0, 103.0], false),
            (&[100.0, 150.0, 190.0, 200.0, 199.0, 203.0, 201.0], true),
            (&[100.0, 150.0, 190.0, 200.0, 199.0, 203.0], false),
        ] {
            assert_eq!(is_settled(rates), settled, "{rates:?}");
        }
    }
}
