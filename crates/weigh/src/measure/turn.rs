//! One variant's turn in a round: start, repeat the proof, warm up, measure, stop.

use std::time::{Duration, Instant};

use load::{Job, Measurement, Target};
use report::recording::{InvalidKind, MachineUse, ProofSeen, RoundRecord};
use rig::Usage;
use schedule::Arrival;

use super::{Experiment, FAILURES_KEPT, because};
use crate::environment::instant;
use crate::prove::{Between, Proven, Subject, Watch};
use crate::record;
use crate::stack::{Invalid, Stack};

/// How often a measurement is made before a disturbed one is taken as it is.
const ATTEMPTS: usize = 3;

impl Experiment<'_> {
    /// One variant's turn: start, repeat the proof, warm up, measure, stop.
    pub(super) fn turn(
        &mut self,
        round: usize,
        position: usize,
        index: usize,
    ) -> Result<(), Invalid> {
        let stack = self.start(index, &format!("round-{}", round + 1))?;
        let measured = self.attempts(&stack, round, position, index);
        let ended = stack.ended(&mut self.rig);
        stack.stop(&mut self.rig);
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
            let turn = self.load(stack, round, index)?;
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

    fn load(&mut self, stack: &Stack, round: usize, index: usize) -> Result<Turn, Invalid> {
        let candidate = &self.candidates[index];
        let proven = candidate
            .proven
            .as_ref()
            .expect("a variant that is still in has been proven");
        proven.repeat(Subject {
            lab: self.lab,
            variant: candidate.variant,
            stack,
        })?;
        let job = self.job(stack.target(), proven, round);
        let label = format!("round {}, {}", round + 1, candidate.variant.name);
        self.warm_up(&job, &label)?;
        if self.stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        let watch = Watch::begin(candidate.variant, stack)?;
        let began = instant();
        let before = stack.usage(&self.rig);
        let moment = rig::moment();
        let look = || (rig::moment(), stack.usage(&self.rig));
        let measured = self.progress.during(&label, |live| {
            load::run_and_look(&job, live, self.stop.flag(), look)
        });
        let (measurement, (moment_after, after)) =
            measured.map_err(|error| Invalid::new(InvalidKind::LoadFailed, error.to_string()))?;
        // What is cut short has requests under way that nobody counts.
        let (proofs, unproven) = if measurement.interrupted {
            (Vec::new(), None)
        } else {
            watch.end(between(&measurement))
        };
        let machine = record::machine(moment, moment_after);
        Ok(Turn {
            began,
            measurement,
            machine,
            proofs,
            unproven,
            before,
            after,
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
        let warmed = self
            .progress
            .during(&format!("{label}, warming up"), |live| {
                load::run(&job, live, self.stop.flag())
            })
            .map_err(|error| Invalid::new(InvalidKind::LoadFailed, error.to_string()))?;
        record::wrong_in(&warmed).map_or(Ok(()), |reason| {
            Err(Invalid::new(
                InvalidKind::Mismatched,
                format!("while warming up, {reason}"),
            ))
        })
    }

    pub(super) fn job(&self, target: Target, proven: &Proven, round: usize) -> Job {
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
            keep_alive: self.lab.keep_alive,
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
struct Turn {
    began: Instant,
    measurement: Measurement,
    /// What the whole machine did meanwhile.
    machine: Option<MachineUse>,
    /// What other systems saw of it.
    proofs: Vec<ProofSeen>,
    /// The first proof that was not given.
    unproven: Option<Invalid>,
    before: Vec<(String, Option<Usage>)>,
    after: Vec<(String, Option<Usage>)>,
}

impl Turn {
    fn record(&self, round: usize, position: usize, variant: &str, run: Instant) -> RoundRecord {
        let systems = self
            .before
            .iter()
            .zip(&self.after)
            .filter_map(|((name, before), (_, after))| {
                Some(record::usage(name, before.as_ref()?, after.as_ref()?))
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
