//! A lab carried out: prove every variant, then measure them in interleaved rounds.

mod capacity;
mod kept;
mod profile;
mod pursuit;
mod turn;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kept::Kept;
use lab::{Lab, Setup, Variant};
use load::{AwakeCores, keep_cores_awake};
use pursuit::{Next, Pursuit, ROUNDS_MAX};
use report::Recording;
use report::recording::{
    Environment, InvalidKind, Profile, RoundRecord, SystemRecord, VariantRecord, VariantStatus,
};
use rig::machine::{self, Machine};
use rig::{KeeperCommand, Rig};

use crate::cli::Failure;
use crate::console::Console;
use crate::environment::{self, instant};
use crate::progress::Progress;
use crate::prove::{Proven, Subject, prove};
use crate::record::{self, Outline};
use crate::stack::{Invalid, Stack};
use crate::stop::Stop;
use crate::workshop::{Workshop, missing_program};

/// Pairs of request and answer kept of each kind of failure, per measurement.
pub(crate) const FAILURES_KEPT: usize = 3;

/// How long is looked at what else the machine does, before anything of the run is started.
pub(crate) const LOOK_BEFORE: Duration = Duration::from_millis(200);

/// Starts the keeper, and says what an earlier, killed run has left behind.
pub(crate) fn start_rig(logs: &Path, console: Console) -> Result<Rig, Failure> {
    let command = KeeperCommand::new(environment::own_program());
    let rig = Rig::start(command, logs).map_err(|error| Failure::bug(error.to_string()))?;
    for leftover in rig.leftovers() {
        console.warn(&format!(
            "an earlier run left processes {:?} running; they disturb this one, end them",
            leftover.pids
        ));
    }
    Ok(rig)
}

/// One run of one lab.
pub(crate) struct Experiment<'a> {
    lab: &'a Lab,
    rig: Rig,
    logs: PathBuf,
    stop: &'a Stop,
    progress: Progress,
    seed: u64,
    order: Vec<Vec<usize>>,
    /// What decides about the number of rounds, when it is not fixed.
    pursuit: Option<Pursuit>,
    rounds_begun: usize,
    /// Baseline first.
    candidates: Vec<Candidate<'a>>,
    rounds: Vec<RoundRecord>,
    started: Instant,
    started_at: String,
    machine: Machine,
    busy_share_before: Option<f64>,
    generator_cpus: Option<Vec<usize>>,
    /// Holds on for the whole run, proofs included; none where the lab or the system does not want it.
    awake: Option<AwakeCores>,
    /// Where flamegraphs go, if there are to be any.
    flamegraphs: Option<PathBuf>,
    profiles: Vec<Profile>,
    /// Whether systems run on from round to round.
    keeps_systems: bool,
}

/// A variant on its way to a number.
struct Candidate<'a> {
    variant: &'a Variant,
    /// The candidate that it is compared with; none for a baseline.
    against: Option<usize>,
    setups: Vec<Setup>,
    systems: Vec<SystemRecord>,
    proven: Option<Proven>,
    invalid: Option<Invalid>,
    /// Its systems, where they run on.
    kept: Option<Kept>,
}

impl<'a> Experiment<'a> {
    /// Starts the keeper; nothing of the lab runs yet.
    ///
    /// # Errors
    ///
    /// When the keeper does not start or the log folder cannot be made.
    pub(crate) fn new(
        lab: &'a Lab,
        folder: &Path,
        console: Console,
        stop: &'a Stop,
    ) -> Result<Experiment<'a>, Failure> {
        let logs = folder.join("logs");
        let busy_share_before = rig::busy_share_for(LOOK_BEFORE);
        let rig = start_rig(&logs, console)?;
        let position = |name: &String| lab.all().position(|other| other.name == *name);
        let candidates: Vec<Candidate<'a>> = lab
            .all()
            .map(|variant| {
                let setups = lab.stack(variant);
                let systems = setups.iter().map(record::system).collect();
                Candidate {
                    variant,
                    against: variant.against.as_ref().and_then(position),
                    setups,
                    systems,
                    proven: None,
                    invalid: None,
                    kept: None,
                }
            })
            .collect();
        let seed = lab.seed.unwrap_or_else(environment::fresh_seed);
        let pursuit = Pursuit::of(lab);
        let fixed = usize::try_from(lab.rounds).unwrap_or(usize::MAX);
        let most = if pursuit.is_some() { ROUNDS_MAX } else { fixed };
        let rounds = pursuit.as_ref().map_or(fixed, Pursuit::rounds);
        let order = schedule::round_order(candidates.len(), most, seed);
        let machine = machine::snapshot();
        let generator_cpus = free_cpus(&candidates, machine.cpus_online);
        let awake = lab.awake.then(keep_cores_awake).flatten();
        Ok(Experiment {
            lab,
            rig,
            logs,
            stop,
            progress: Progress::new(console, (rounds * candidates.len()) as u64),
            seed,
            order,
            pursuit,
            rounds_begun: 0,
            candidates,
            rounds: Vec::new(),
            started: instant(),
            started_at: environment::now().to_string(),
            machine,
            busy_share_before,
            generator_cpus,
            awake,
            flamegraphs: None,
            profiles: Vec::new(),
            keeps_systems: false,
        })
    }

    /// Samples the systems too, in rounds of their own, and draws flamegraphs into this folder.
    pub(crate) fn with_flamegraphs(self, folder: &Path) -> Self {
        Experiment {
            flamegraphs: Some(folder.to_owned()),
            ..self
        }
    }

    /// Carries the lab out. What goes wrong with a variant is part of the recording.
    ///
    /// # Errors
    ///
    /// When the machine below refuses to go on.
    pub(crate) fn run(mut self, workshop: &mut Workshop) -> Result<Recording, Failure> {
        self.prepare(workshop);
        let began = instant();
        for round in 0..self.order.len() {
            if self.stop.is_asked() || self.is_hopeless() {
                break;
            }
            self.rounds_begun = round + 1;
            tracing::debug!(
                round = round + 1,
                planned = self.rounds_planned(),
                "a round begins"
            );
            self.round(round);
            if self.has_enough(instant().duration_since(began)) {
                break;
            }
        }
        self.let_go();
        if let Some(folder) = self.flamegraphs.clone().filter(|_| !self.stop.is_asked()) {
            self.profiles = self.profiles(&folder);
        }
        self.progress.finish();
        let recording = self.recording();
        self.rig
            .shut_down()
            .map_err(|error| Failure::bug(error.to_string()))?;
        Ok(recording)
    }

    /// Proves every variant without measuring any.
    ///
    /// # Errors
    ///
    /// When the machine below refuses to go on.
    pub(crate) fn check(
        mut self,
        workshop: &mut Workshop,
    ) -> Result<Vec<(String, Option<Invalid>)>, Failure> {
        self.prepare(workshop);
        self.progress.finish();
        let verdicts = self
            .candidates
            .iter()
            .map(|candidate| (candidate.variant.name.clone(), candidate.invalid.clone()))
            .collect();
        self.rig
            .shut_down()
            .map_err(|error| Failure::bug(error.to_string()))?;
        Ok(verdicts)
    }

    /// Builds and proves every variant, each after its baseline: it is compared with that.
    fn prepare(&mut self, workshop: &mut Workshop) {
        for index in 0..self.candidates.len() {
            let outcome = self.build(workshop, index).and_then(|()| self.prove(index));
            if let Err(invalid) = outcome {
                self.reject(index, invalid);
            }
        }
    }

    fn build(&mut self, workshop: &mut Workshop, index: usize) -> Result<(), Invalid> {
        let candidate = &mut self.candidates[index];
        if self.stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        if let Some(missing) = missing_program(&candidate.setups) {
            return Err(missing);
        }
        for (setup, record) in candidate.setups.iter().zip(&mut candidate.systems) {
            if let Some(log) = workshop.will_build(setup, &self.logs) {
                let name = &candidate.variant.name;
                let line = format!(
                    "building {} for {name}; log: {}",
                    setup.system,
                    log.display()
                );
                self.progress.show(&line);
                self.progress.note(&line);
            }
            let took = workshop.build(&mut self.rig, setup, &self.logs, self.stop)?;
            if let Some(took) = took.filter(|took| *took > Duration::from_secs(1)) {
                self.progress.note(&format!(
                    "built {} for {} in {:.1} s",
                    setup.system,
                    candidate.variant.name,
                    took.as_secs_f64()
                ));
            }
            record.build_ms = took.and_then(|took| u64::try_from(took.as_millis()).ok());
            record.version = workshop.version(&mut self.rig, setup, &self.logs, self.stop);
        }
        Ok(())
    }

    fn prove(&mut self, index: usize) -> Result<(), Invalid> {
        let name = self.candidates[index].variant.name.clone();
        tracing::debug!(variant = name, "proving");
        self.progress.show(&format!("proving {name}"));
        // Without a proven baseline there is nothing that others could be compared with.
        if self.has_lost_baseline(index) {
            return Err(self.why_unmeasured(index, false));
        }
        let stack = self.start(index, "proof")?;
        stack.describe(&mut self.candidates[index].systems);
        let baseline = self.candidates[index].against;
        let baseline = baseline.and_then(|baseline| self.candidates[baseline].proven.as_ref());
        let subject = Subject {
            lab: self.lab,
            variant: self.candidates[index].variant,
            stack: &stack,
        };
        let proven = prove(subject, self.seed, baseline);
        let ended = stack.ended(&mut self.rig);
        let kept = Kept {
            is_proven: proven.is_ok(),
            ..Kept::fresh(stack)
        };
        self.keep_or_stop(index, kept, proven.is_ok() && ended.is_none());
        let proven = proven.map_err(|invalid| because(ended, invalid))?;
        for request in proven.varying(self.candidates[index].variant) {
            self.progress.note(&format!(
                "{name}: request `{request}` gets a different body each time, so bodies are not compared"
            ));
        }
        self.candidates[index].proven = Some(proven);
        Ok(())
    }

    /// Measures every variant that is still in, in this round's order.
    fn round(&mut self, round: usize) {
        let order = self.order[round].clone();
        for (position, index) in order.into_iter().enumerate() {
            if self.stop.is_asked() || self.is_hopeless() {
                return;
            }
            if self.candidates[index].invalid.is_none()
                && !self.is_needless(index)
                && let Err(invalid) = self.turn(round, position, index)
            {
                self.reject(index, invalid);
            }
            self.progress.step();
        }
    }

    /// Whether the rounds so far, which took so long, are all that is wanted.
    fn has_enough(&mut self, took: Duration) -> bool {
        if self.stop.is_asked() || self.is_hopeless() {
            return false;
        }
        let Some(pursuit) = &mut self.pursuit else {
            return false;
        };
        let compared = self.candidates[1..].iter();
        let names: Vec<&str> = compared
            .filter(|candidate| candidate.invalid.is_none())
            .map(|candidate| candidate.variant.name.as_str())
            .collect();
        let next = pursuit.next(self.rounds_begun, took, &self.rounds, &names);
        let planned = pursuit.rounds();
        match next {
            Next::End => true,
            Next::GoOn(news) => {
                if let Some(news) = news {
                    self.progress.note(&news);
                    self.progress
                        .expect((planned * self.candidates.len()) as u64);
                }
                false
            }
        }
    }

    /// Rounds in all, as far as is known.
    fn rounds_planned(&self) -> usize {
        let pursued = self.pursuit.as_ref().map(Pursuit::rounds);
        pursued.unwrap_or(self.order.len()).max(self.rounds_begun)
    }

    fn start(&mut self, index: usize, occasion: &str) -> Result<Stack, Invalid> {
        if self.stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        let candidate = &self.candidates[index];
        let logs = self
            .logs
            .join(record::file_name(&candidate.variant.name))
            .join(occasion);
        fs::create_dir_all(&logs).map_err(|error| {
            Invalid::new(
                InvalidKind::NotReady,
                format!("`{}` cannot be made: {error}", logs.display()),
            )
        })?;
        Stack::start(
            &mut self.rig,
            (self.lab, &candidate.setups),
            &logs,
            self.stop,
        )
    }

    fn reject(&mut self, index: usize, invalid: Invalid) {
        let name = &self.candidates[index].variant.name;
        tracing::debug!(variant = name, kind = ?invalid.kind, reason = invalid.reason, "a variant is out");
        if invalid.kind != InvalidKind::Interrupted {
            self.progress
                .note(&format!("{name} has no number: {}", invalid.reason));
        }
        self.candidates[index].invalid = Some(invalid);
    }

    /// Without its baseline, or without any variant, a lab cannot answer its question.
    fn is_hopeless(&self) -> bool {
        (0..self.candidates.len()).all(|index| self.is_needless(index))
    }

    /// Whether it is out, or nothing is left to compare it with.
    fn is_needless(&self, index: usize) -> bool {
        let candidate = &self.candidates[index];
        let mut others = self.candidates.iter();
        candidate.invalid.is_some()
            || self.has_lost_baseline(index)
            || candidate.against.is_none()
                && others.all(|other| other.against != Some(index) || other.invalid.is_some())
    }

    fn has_lost_baseline(&self, index: usize) -> bool {
        let baseline = self.candidates[index].against;
        baseline.is_some_and(|baseline| self.candidates[baseline].invalid.is_some())
    }

    /// Why a variant with which nothing is wrong was not measured.
    fn why_unmeasured(&self, index: usize, is_interrupted: bool) -> Invalid {
        let baseline = self.candidates[index].against;
        let baseline = baseline.map(|baseline| &self.candidates[baseline]);
        if is_interrupted {
            Invalid::interrupted()
        } else if let Some(baseline) = baseline.filter(|baseline| baseline.invalid.is_some()) {
            Invalid::new(
                InvalidKind::NotNeeded,
                format!("its baseline `{}` has no number", baseline.variant.name),
            )
        } else {
            Invalid::new(
                InvalidKind::NotNeeded,
                "not measured: no variant was left to compare it with",
            )
        }
    }

    fn recording(&mut self) -> Recording {
        let is_interrupted = self.stop.is_asked();
        let measured: BTreeSet<&str> = self
            .rounds
            .iter()
            .map(|round| round.variant.as_str())
            .collect();
        let variants: Vec<VariantRecord> = self
            .candidates
            .iter()
            .enumerate()
            .map(|(index, candidate)| {
                let is_measured = measured.contains(candidate.variant.name.as_str());
                let unmeasured = (!is_measured).then(|| self.why_unmeasured(index, is_interrupted));
                candidate.record(self.lab, candidate.invalid.clone().or(unmeasured))
            })
            .collect();
        let rounds = match &self.pursuit {
            Some(_) if !is_interrupted => self.rounds_begun,
            _ => self.rounds_planned(),
        };
        let names = |order: &Vec<usize>| {
            order
                .iter()
                .map(|index| self.candidates[*index].variant.name.clone())
                .collect()
        };
        record::of_lab(
            self.lab,
            Outline {
                keeps_systems: self.keeps_systems,
                order: self.order.iter().take(rounds).map(names).collect(),
                until: self.pursuit.as_ref().map(Pursuit::wish),
                seed: self.seed,
                started_at: self.started_at.clone(),
                is_interrupted,
                environment: Environment {
                    busy_share_before: self.busy_share_before,
                    ..environment::describe(
                        &self.machine,
                        self.generator_cpus.clone(),
                        self.awake.is_some(),
                    )
                },
                variants,
                rounds: std::mem::take(&mut self.rounds),
                profiles: std::mem::take(&mut self.profiles),
            },
        )
    }
}

impl Candidate<'_> {
    fn record(&self, lab: &Lab, invalid: Option<Invalid>) -> VariantRecord {
        VariantRecord {
            name: self.variant.name.clone(),
            baseline: record::baseline_of(lab, self.variant),
            requests: record::own_requests(lab, self.variant),
            with: record::differences(lab, self.variant),
            systems: self.systems.clone(),
            proof: self.proven.as_ref().map(|proven| proven.proof.clone()),
            status: invalid.map_or(VariantStatus::Measured, |invalid| VariantStatus::Invalid {
                kind: invalid.kind,
                reason: invalid.reason,
            }),
        }
    }
}
/// When a system has ended, that is the reason, and what was seen of it a symptom.
fn because(ended: Option<String>, symptom: Invalid) -> Invalid {
    match ended {
        Some(ended) if symptom.kind != InvalidKind::Interrupted => {
            Invalid::new(InvalidKind::Crashed, ended)
        }
        _ => symptom,
    }
}

/// Where every system is pinned, the generator takes the other cores; else it runs anywhere.
fn free_cpus(candidates: &[Candidate<'_>], online: usize) -> Option<Vec<usize>> {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for setup in candidates.iter().flat_map(|candidate| &candidate.setups) {
        taken.extend(setup.pin.as_ref()?);
    }
    let free: Vec<usize> = (0..online).filter(|cpu| !taken.contains(cpu)).collect();
    (!free.is_empty()).then_some(free)
}
