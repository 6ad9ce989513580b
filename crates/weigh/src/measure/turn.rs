//! The pieces of a turn: start, proof, settling, warm-up, measurement.
//!
//! A [`Turn`] is one candidate on one occasion. It only borrows, so its pieces may be called for one
//! candidate after the other, or interleaved over several that are up at once.

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
use super::reading::{Look, Measured, Reading};
use super::round::Round;
use super::running::Running;
use super::session::{Session, load_failed};
use super::settling::Settling;
use crate::invalid::Invalid;
use crate::prove::{Proven, RequestCounts, Subject, prepare, prove};
use crate::published::Receiver;
use crate::record;
use crate::systems::RunningSystems;

/// Why a candidate's systems are up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion {
    /// To be proven for the first time.
    Proof,
    /// To be measured in the round of this number, from 0.
    Round(usize),
    /// To be sampled.
    Flamegraph,
}

/// One candidate on one occasion.
#[derive(Clone, Copy)]
pub(super) struct Turn<'t> {
    pub(super) session: &'t Session<'t>,
    pub(super) candidate: &'t Candidate<'t>,
    occasion: Occasion,
    /// The group that it is measured in, from 0, where a round has several.
    group: Option<u32>,
    /// The seed of random arrivals; see [`Round::arrival_seed`].
    arrival_seed: u64,
    /// Where its systems run; none where the scheduler places all.
    cores: Option<&'t Cores>,
}

impl Occasion {
    /// The folder of its logs.
    fn folder(self) -> String {
        match self {
            Occasion::Proof => "proof".to_owned(),
            Occasion::Round(number) => format!("round-{}", number + 1),
            Occasion::Flamegraph => "flamegraph".to_owned(),
        }
    }

    /// The same, where what is started belongs to one of several groups.
    pub(super) fn folder_in(self, group: Option<u32>) -> String {
        let folder = self.folder();
        match group {
            None => folder,
            Some(group) => format!("{folder}-group-{}", group + 1),
        }
    }
}

impl<'t> Turn<'t> {
    /// The proof, before all rounds.
    pub(super) fn of_proof(session: &'t Session<'t>, candidate: &'t Candidate<'t>) -> Turn<'t> {
        Turn {
            session,
            candidate,
            occasion: Occasion::Proof,
            group: None,
            arrival_seed: session.seed,
            cores: None,
        }
    }

    pub(super) fn of_round(
        session: &'t Session<'t>,
        candidate: &'t Candidate<'t>,
        round: &Round,
    ) -> Turn<'t> {
        Turn {
            session,
            candidate,
            occasion: Occasion::Round(round.number),
            group: None,
            arrival_seed: round.arrival_seed,
            cores: None,
        }
    }

    pub(super) fn of_flamegraph(
        session: &'t Session<'t>,
        candidate: &'t Candidate<'t>,
        arrival_seed: u64,
    ) -> Turn<'t> {
        Turn {
            session,
            candidate,
            occasion: Occasion::Flamegraph,
            group: None,
            arrival_seed,
            cores: None,
        }
    }

    /// The same, in a group of the round.
    pub(super) fn in_group(self, group: Option<u32>) -> Turn<'t> {
        Turn { group, ..self }
    }

    /// The same, with systems on these cores; none where the scheduler places all.
    pub(super) fn on(self, cores: Option<&'t Cores>) -> Turn<'t> {
        Turn { cores, ..self }
    }

    /// The folder of its logs, `VARIANT/OCCASION`: a baseline is up once in each of its groups.
    fn folder(&self) -> PathBuf {
        let variant = record::file_name(self.candidate.name());
        PathBuf::from(variant).join(self.occasion.folder_in(self.group))
    }

    /// What is being done, for the progress.
    pub(super) fn label(&self) -> String {
        let name = self.candidate.name();
        match self.occasion {
            Occasion::Proof => format!("proving {name}"),
            Occasion::Round(number) => format!("round {}, {name}", number + 1),
            Occasion::Flamegraph => format!("sampling {name}"),
        }
    }

    /// Starts the candidate's systems.
    ///
    /// # Errors
    ///
    /// When one does not start or become ready. Nothing is left running then.
    pub(super) fn start(&self, rig: &mut Rig) -> Result<Running, Invalid> {
        let setups: Vec<Setup> = self.setups().collect();
        self.start_as(rig, &setups)
    }

    /// As [`Turn::start`], with setups that differ from the variant's own.
    pub(super) fn start_as(&self, rig: &mut Rig, setups: &[Setup]) -> Result<Running, Invalid> {
        self.session
            .start(rig, setups, &self.folder(), None)
            .map(Running::fresh)
    }

    /// The candidate's systems, where they run.
    fn setups(&self) -> impl Iterator<Item = Setup> {
        let setups = self.candidate.variant.systems().iter();
        setups.map(|setup| match self.cores {
            Some(cores) => cores.placed(setup),
            None => setup.clone(),
        })
    }

    /// The candidate's systems without those that it shares with others.
    fn own_setups(&self) -> Vec<Setup> {
        self.setups().filter(|setup| !setup.is_shared).collect()
    }

    /// As [`Turn::start`], beside systems that all candidates share.
    ///
    /// # Errors
    ///
    /// As of [`Turn::start`].
    pub(super) fn start_beside(
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

    /// Starts those of the candidate's systems anew that are not to be kept.
    ///
    /// # Errors
    ///
    /// When one does not start or become ready. Nothing is left running then.
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
        // What is shared is known to the systems since their first start.
        let startup = self.session.startup(&own, &logs, None);
        let systems = running.systems.restart(rig, startup, kept)?;
        Ok(Running {
            systems,
            // Repeated only where all systems are new: what the load has left behind in a kept one
            // may change the answers. Every answer of the load is checked anyway.
            is_proven: own.iter().any(|setup| kept.contains(&setup.system)),
            // What was registered with a system is gone with its process.
            is_prepared: false,
            is_settled: false,
            has_settled_before: running.is_settled,
        })
    }

    /// Proves the candidate for the first time; `baseline` is what its answers are compared with.
    ///
    /// # Errors
    ///
    /// The first proof that is not given.
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

    /// Sends what is sent once after each start, unless these systems have had it.
    fn prepare_once(&self, running: &mut Running) -> Result<(), Invalid> {
        if !running.is_prepared {
            prepare(self.subject(running))?;
            running.is_prepared = true;
        }
        Ok(())
    }

    /// Repeats the proof after a start, unless these systems have given it. What is sent once after each
    /// start goes before.
    ///
    /// # Errors
    ///
    /// The first proof that is not given.
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
        }
    }

    /// Sends the load that comes once after a start, until the target gets no faster; nothing when
    /// the lab asks for none or these systems have had it.
    ///
    /// # Errors
    ///
    /// When it cannot be sent, or an answer is wrong.
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

    /// One window of the load that settles.
    pub(super) fn settling_job(&self, running: &Running, settling: &Settling) -> Job {
        Job {
            load: settling.load(),
            // A few connections need no more than one thread.
            threads: 1,
            // One generator of all does it.
            shard: model::Shard::WHOLE,
            ..self.job(running)
        }
    }

    /// The load of this turn.
    pub(super) fn job(&self, running: &Running) -> Job {
        let lab = self.session.lab;
        let proven = self.candidate.proven();
        let mut load = self.session.load.clone();
        if let Load::Open {
            arrival: Arrival::Poisson { seed },
            ..
        } = &mut load
        {
            // The lab's seed is a stand-in; each round draws arrivals of its own.
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
            // What runs in pods was started for this run.
            yields: self.session.peers.is_none() && yields(self.candidate.variant),
        }
    }

    /// Sends the beginning of a load and throws it away: first requests pay for connections, caches
    /// and compilation, which later ones do not.
    ///
    /// # Errors
    ///
    /// When it cannot be sent, or an answer is wrong.
    pub(super) fn warm_up(&self, job: &Job) -> Result<(), Invalid> {
        let length = self.session.lab.warmup;
        if length.is_zero() {
            return Ok(());
        }
        let label = format!("{}, warming up", self.label());
        self.session
            .discard(&Turn::warmup_job(job, length), &label, "while warming up")
            .map(|_| ())
    }

    /// The beginning of a load: as long as said, without its ups and downs.
    pub(super) fn warmup_job(job: &Job, length: Duration) -> Job {
        Job {
            load: warmup_of(&job.load, length),
            keep_slots: None,
            keep_blocks: false,
            ..job.clone()
        }
    }

    /// Opens the reading that a measurement needs; see [`Reading`].
    ///
    /// # Errors
    ///
    /// When a system does not say what it has counted.
    pub(super) fn begin<'r>(&self, rig: &Rig, running: &'r Running) -> Result<Reading<'r>, Invalid>
    where
        't: 'r,
    {
        assert!(running.is_proven, "without a proof there is no number");
        Reading::begin(self.candidate.variant, &running.systems, rig)
    }

    /// One measurement of this candidate alone.
    ///
    /// # Errors
    ///
    /// When it cannot be made. Wrong answers and proofs that were not given are in the result.
    pub(super) fn measure(
        &self,
        rig: &Rig,
        running: &Running,
        job: &Job,
    ) -> Result<Measured, Invalid> {
        self.session.go_on()?;
        let label = self.label();
        tracing::debug!(label, "the load begins");
        let reading = self.begin(rig, running)?;
        let send = |live: &Live| -> Result<(Measurement, Look), LoadError> {
            let look = || reading.look(rig);
            load::run_and_look(job, live, self.session.stop.flag(), look)
        };
        let receiver = Receiver {
            target: self.candidate.name().to_owned(),
            load: job.load.clone(),
        };
        let progress = &self.session.progress;
        let sent = progress.measuring(&label, vec![receiver], send);
        let (measurement, look) = sent.map_err(|error| load_failed(&error))?;
        tracing::debug!(
            label,
            interrupted = measurement.interrupted,
            took = ?measurement.elapsed,
            "the load has ended"
        );
        reading.end(rig, look, measurement, RequestCounts::default())
    }
}

/// Whether a load of this variant ends when a server asks for less: some of its systems were not
/// started here, and no request is there to see such an answer.
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

/// The same load, shorter and without its ups and downs: at the rate that its first phase reaches.
fn warmup_of(load: &Load, length: Duration) -> Load {
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
            // The higher end: a system that is warmed up at the low end of a ramp stays cold.
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
