//! The steps of a variant run: start, proof, settling, warm-up, measurement.
//!
//! A [`VariantRun`] is one candidate in one phase of the run. It only borrows. Its steps can therefore run for
//! one candidate after the other, or interleaved over several candidates that are up at once.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use lab::{Setup, Variant};
use load::{Job, Live, LoadError, Measurement};
use model::{Arrival, Load, Phase, StatusRule};
use rig::Rig;

use super::FAILURES_KEPT;
use super::candidate::Candidate;
use super::placement::Cores;
use super::reading::{Measured, Reading, UsageSample};
use super::round::Round;
use super::running::Running;
use super::session::{Session, load_failed};
use super::settling::Settling;
use crate::invalid::Invalid;
use crate::prove::{Proven, RequestCounts, Subject, let_earlier_arrive, prepare, prove};
use crate::published::Receiver;
use crate::systems::RunningSystems;

/// The phase of the run that needs a candidate's systems.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunPhase {
    /// The first proof, before all rounds.
    Proof,
    /// The measurement in the round of this number, from 0.
    Round(usize),
    /// A sampled round, for flamegraphs.
    Flamegraph,
    /// The two loads of a round of `--why`.
    Why,
}

/// One candidate in one phase of the run.
#[derive(Clone, Copy)]
pub(super) struct VariantRun<'t> {
    pub(super) session: &'t Session<'t>,
    pub(super) candidate: &'t Candidate<'t>,
    phase: RunPhase,
    /// The group of the candidate, from 0. `None` if the round has a single group.
    group: Option<u32>,
    /// The seed of random arrivals. See [`Round::arrival_seed`].
    arrival_seed: u64,
    /// The cores of its systems. `None` if the scheduler places all systems.
    cores: Option<&'t Cores>,
}

impl RunPhase {
    /// The folder of the logs, as a single name.
    fn folder(self) -> String {
        match self {
            RunPhase::Proof => "proof".to_owned(),
            RunPhase::Round(number) => format!("round-{}", number + 1),
            RunPhase::Flamegraph => "flamegraph".to_owned(),
            RunPhase::Why => "why".to_owned(),
        }
    }

    /// The folder of the logs, with the number of the group if there are several.
    pub(super) fn folder_in(self, group: Option<u32>) -> String {
        let folder = self.folder();
        match group {
            None => folder,
            Some(group) => format!("{folder}-group-{}", group + 1),
        }
    }
}

impl<'t> VariantRun<'t> {
    /// The variant run of the proof, before all rounds.
    pub(super) fn of_proof(
        session: &'t Session<'t>,
        candidate: &'t Candidate<'t>,
    ) -> VariantRun<'t> {
        VariantRun {
            session,
            candidate,
            phase: RunPhase::Proof,
            group: None,
            arrival_seed: session.seed,
            cores: None,
        }
    }

    pub(super) fn of_round(
        session: &'t Session<'t>,
        candidate: &'t Candidate<'t>,
        round: &Round,
    ) -> VariantRun<'t> {
        VariantRun {
            session,
            candidate,
            phase: RunPhase::Round(round.number),
            group: None,
            arrival_seed: round.arrival_seed,
            cores: None,
        }
    }

    pub(super) fn of_flamegraph(
        session: &'t Session<'t>,
        candidate: &'t Candidate<'t>,
        arrival_seed: u64,
    ) -> VariantRun<'t> {
        VariantRun {
            session,
            candidate,
            phase: RunPhase::Flamegraph,
            group: None,
            arrival_seed,
            cores: None,
        }
    }

    pub(super) fn of_why(
        session: &'t Session<'t>,
        candidate: &'t Candidate<'t>,
        arrival_seed: u64,
    ) -> VariantRun<'t> {
        VariantRun {
            phase: RunPhase::Why,
            ..VariantRun::of_flamegraph(session, candidate, arrival_seed)
        }
    }

    /// Returns the variant run in this group of the round.
    pub(super) fn in_group(self, group: Option<u32>) -> VariantRun<'t> {
        VariantRun { group, ..self }
    }

    /// Returns the variant run with its systems on these cores. `None` if the scheduler places all systems.
    pub(super) fn on(self, cores: Option<&'t Cores>) -> VariantRun<'t> {
        VariantRun { cores, ..self }
    }

    /// The folder of the logs, `VARIANT/PHASE`. A baseline runs once in each of its groups.
    fn folder(&self) -> PathBuf {
        let variant = recording::file_name(self.candidate.name());
        PathBuf::from(variant).join(self.phase.folder_in(self.group))
    }

    /// The current activity, for the progress display.
    pub(super) fn label(&self) -> String {
        let name = self.candidate.name();
        match self.phase {
            RunPhase::Proof => format!("proving {name}"),
            RunPhase::Round(number) => format!("round {}, {name}", number + 1),
            RunPhase::Flamegraph => format!("sampling {name}"),
            RunPhase::Why => format!("looking for the cause of {name}"),
        }
    }

    /// Starts the candidate's systems.
    ///
    /// # Errors
    ///
    /// When a system does not start or become ready. No system is left running then.
    pub(super) fn start(&self, rig: &mut Rig) -> Result<Running, Invalid> {
        let setups: Vec<Setup> = self.setups().collect();
        self.start_as(rig, &setups)
    }

    /// Like [`VariantRun::start`], with setups that differ from the variant's own.
    pub(super) fn start_as(&self, rig: &mut Rig, setups: &[Setup]) -> Result<Running, Invalid> {
        self.session
            .start(rig, setups, &self.folder(), None)
            .map(Running::fresh)
    }

    /// The candidate's systems, with their cores.
    fn setups(&self) -> impl Iterator<Item = Setup> {
        let setups = self.candidate.variant.systems().iter();
        setups.map(|setup| match self.cores {
            Some(cores) => cores.placed(setup),
            None => setup.clone(),
        })
    }

    /// The candidate's systems without its shared systems.
    fn own_setups(&self) -> Vec<Setup> {
        self.setups().filter(|setup| !setup.is_shared).collect()
    }

    /// Like [`VariantRun::start`], next to systems that all candidates share.
    ///
    /// # Errors
    ///
    /// Like [`VariantRun::start`].
    pub(super) fn start_with_shared(
        &self,
        rig: &mut Rig,
        shared: Option<&RunningSystems>,
    ) -> Result<Running, Invalid> {
        let Some(shared) = shared else {
            return self.start(rig);
        };
        self.session
            .start(rig, &self.own_setups(), &self.folder(), Some(shared))
            .map(Running::fresh)
    }

    /// Restarts the candidate's systems except `kept`.
    ///
    /// # Errors
    ///
    /// When a system does not start or become ready. No system is left running then.
    pub(super) fn restart(
        &self,
        rig: &mut Rig,
        running: Running,
        kept: &BTreeSet<String>,
    ) -> Result<Running, Invalid> {
        let own = self.own_setups();
        let logs = match self.session.log_folder(&self.folder()) {
            Ok(logs) => logs,
            Err(invalid) => {
                running.stop(rig);
                return Err(invalid);
            }
        };
        // The systems have had the addresses of the shared systems since their first start.
        let startup = self.session.startup(&own, &logs, None);
        let systems = running.systems.restart(rig, startup, kept)?;
        Ok(Running {
            systems,
            // The proof is only repeated if all systems are new. In a kept system, the earlier load may have
            // changed the responses. The load checks every response anyway.
            is_proven: own.iter().any(|setup| kept.contains(&setup.system)),
            // Registrations are lost with the process.
            is_prepared: false,
            is_settled: false,
            has_settled_before: running.is_settled,
        })
    }

    /// Proves the candidate for the first time. Its responses are compared with `baseline`.
    ///
    /// # Errors
    ///
    /// The first missing proof.
    pub(super) fn prove(
        &self,
        running: &mut Running,
        baseline: Option<&Proven>,
    ) -> Result<Proven, Invalid> {
        self.prepare_once(running)?;
        let proven = prove(self.subject(running), self.session.seed, baseline)?;
        running.is_proven = true;
        Ok(proven)
    }

    /// Sends the preparing requests of a start, unless these systems have received them.
    fn prepare_once(&self, running: &mut Running) -> Result<(), Invalid> {
        if !running.is_prepared {
            prepare(self.subject(running))?;
            running.is_prepared = true;
        }
        Ok(())
    }

    /// Repeats the proof after a start, unless these systems have passed it. The preparing requests are sent
    /// first.
    ///
    /// # Errors
    ///
    /// The first missing proof.
    pub(super) fn prove_once(&self, running: &mut Running) -> Result<(), Invalid> {
        self.prepare_once(running)?;
        if !running.is_proven {
            self.candidate.proven().repeat(self.subject(running))?;
            running.is_proven = true;
        }
        Ok(())
    }

    fn subject<'s>(&'s self, running: &'s Running) -> Subject<'s> {
        Subject {
            lab: self.session.lab,
            variant: self.candidate.variant,
            systems: &running.systems,
            stop: self.session.stop,
        }
    }

    /// Sends the settling load of a start, until the target becomes no faster. Does not send it if the lab
    /// has no such load or these systems have received it.
    ///
    /// # Errors
    ///
    /// When it cannot be sent, or a response is wrong.
    pub(super) fn settle_once(&self, running: &mut Running) -> Result<(), Invalid> {
        assert!(running.is_proven, "what is settled does the right work");
        let Some(settle) = self.session.lab.settle.filter(|_| !running.is_settled) else {
            return Ok(());
        };
        let mut settling = Settling::new(settle, running.compiles());
        let job = self.settling_job(running, &settling);
        let label = format!("{}, settling", self.label());
        while settling.goes_on() && !self.session.stop.is_asked() {
            let sent = self.session.discard(&job, &label, "while settling")?;
            settling.add(&sent);
        }
        running.is_settled = true;
        Ok(())
    }

    /// One window of the settling load.
    pub(super) fn settling_job(&self, running: &Running, settling: &Settling) -> Job {
        Job {
            load: settling.load(),
            // One thread suffices for a few connections.
            threads: 1,
            // A single generator sends the whole settling load.
            shard: model::Shard::WHOLE,
            ..self.job(running)
        }
    }

    /// The load of this variant run.
    pub(super) fn job(&self, running: &Running) -> Job {
        let lab = self.session.lab;
        let proven = self.candidate.proven();
        let mut load = self.session.load.clone();
        if let Load::Open {
            arrival: Arrival::Poisson { seed },
            ..
        } = &mut load
        {
            // The lab's seed is a placeholder. Each round draws its own arrivals.
            *seed = self.arrival_seed;
        }
        Job {
            load,
            target: running.systems.target(),
            requests: proven.requests.clone(),
            steps: proven.steps.clone(),
            data: Some(proven.data.clone()),
            threads: lab.threads,
            timeout: lab.timeout,
            keep_alive: self.candidate.variant.keep_alive,
            failures_kept: FAILURES_KEPT,
            spin_share: f64::from(lab.spin_percent) / 100.0,
            realtime: lab.realtime,
            bound: load::Bounds::default(),
            cpus: self.session.generator_cpus.clone(),
            seat: None,
            keep_slots: None,
            keep_blocks: false,
            slices: Vec::new(),
            shard: self.session.shard(),
            start_at: None,
            // In a cluster, this run started all systems.
            yields: self.session.peers.is_none() && yields(self.candidate.variant),
        }
    }

    /// Sends the beginning of a load and discards its figures. First requests pay for connections, caches and
    /// compilation, and later requests do not.
    ///
    /// # Errors
    ///
    /// When it cannot be sent, or a response is wrong.
    pub(super) fn warm_up(&self, job: &Job) -> Result<(), Invalid> {
        let length = self.session.lab.warmup;
        if length.is_zero() {
            return Ok(());
        }
        let label = format!("{}, warming up", self.label());
        self.session
            .discard(
                &VariantRun::warmup_job(job, length),
                &label,
                "while warming up",
            )
            .map(|_| ())
    }

    /// The beginning of a load, with this length and a constant rate.
    pub(super) fn warmup_job(job: &Job, length: Duration) -> Job {
        Job {
            load: at_constant_rate(&job.load, length),
            keep_slots: None,
            keep_blocks: false,
            ..job.clone()
        }
    }

    /// Takes the first readings of a measurement. See [`Reading`].
    ///
    /// # Errors
    ///
    /// When a system does not report its counters.
    pub(super) fn begin<'r>(&self, rig: &Rig, running: &'r Running) -> Result<Reading<'r>, Invalid>
    where
        't: 'r,
    {
        assert!(running.is_proven, "without a proof there is no number");
        Reading::begin(self.candidate.variant, &running.systems, rig)
    }

    /// Measures this candidate alone.
    ///
    /// # Errors
    ///
    /// When the measurement is impossible. The result contains wrong responses and missing proofs.
    pub(super) fn measure(
        &self,
        rig: &Rig,
        running: &Running,
        job: &Job,
    ) -> Result<Measured, Invalid> {
        self.session.go_on()?;
        let label = self.label();
        tracing::debug!(label, "the load begins");
        let variant = self.candidate.variant;
        let_earlier_arrive(std::iter::once(variant), self.session.stop)?;
        let reading = self.begin(rig, running)?;
        let send = |live: &Live| -> Result<(Measurement, UsageSample), LoadError> {
            let take_sample = || reading.sample(rig);
            load::run_and_look(job, live, self.session.stop.flag(), take_sample)
        };
        let receiver = Receiver {
            target: self.candidate.name().to_owned(),
            load: job.load.clone(),
        };
        let progress = &self.session.progress;
        let sent = progress.measuring(&label, vec![receiver], send);
        let (measurement, sample) = sent.map_err(|error| load_failed(&error))?;
        tracing::debug!(
            label,
            interrupted = measurement.interrupted,
            took = ?measurement.elapsed,
            "the load has ended"
        );
        let others = RequestCounts::default();
        reading.end(rig, sample, measurement, others, self.session.stop)
    }
}

/// True if a load of this variant must end when a server requests less load. This holds if `weigh` did not
/// start all systems and no request expects such a response.
pub(super) fn yields(variant: &Variant) -> bool {
    let own = variant.requests.iter().filter_map(|it| it.expect.as_ref());
    let mut expects = own.chain([&variant.expect]);
    let is_wanted = expects.any(|expect| {
        let mut pushed_back = StatusRule::PUSHED_BACK.into_iter();
        pushed_back.any(|status| expect.answer.status.names(status))
    });
    let mut systems = variant.systems().iter();
    !is_wanted && systems.any(|setup| setup.elsewhere().is_some())
}

/// The load with this length and a constant rate: the highest rate of its first phase.
pub(super) fn at_constant_rate(load: &Load, length: Duration) -> Load {
    match load {
        Load::Closed { connections, .. } => Load::Closed {
            connections: *connections,
            stop: model::Stop {
                requests: None,
                duration: Some(length),
            },
        },
        Load::Open {
            phases,
            arrival,
            connections_max,
            ..
        } => {
            let first = &phases[0];
            // The higher end, because a system that is warmed up at the low end of a ramp stays cold, and because the
            // rate determines the work of the systems.
            let rate = if first.from < first.to {
                first.to
            } else {
                first.from
            };
            Load::Open {
                phases: vec![Phase::constant(length, rate)],
                arrival: *arrival,
                connections_max: *connections_max,
                requests_max: None,
            }
        }
    }
}
