//! A run of a lab: prove every candidate, then measure all candidates in rounds.
//!
//! | topic | module |
//! |---|---|
//! | a variant from its build to its number | [`candidate`] |
//! | builds and first proofs | [`preparation`] |
//! | short loads after the first proof, and a load that fits | [`trial`] |
//! | number and order of the rounds | [`round`], [`stopping_rule`], [`gates_rule`] |
//! | the loop over the rounds, and its strategies | [`round_loop`] |
//! | one round, one candidate after the other | [`in_turn`] |
//! | side by side or in turn, and the groups of candidates | [`design`], [`footprint`], [`groups`], [`placement`] |
//! | one round, all candidates at once | [`side_by_side`], [`in_slices`] |
//! | prediction of a run, for `weigh check` | [`prediction`] |
//! | selection of the requests that count | [`counted_cycles`], [`host_watch`], [`neighbor_watch`] |
//! | searches for the highest rate, in turn or side by side | [`capacity`] |
//! | the steps of a variant run, for any design of a round | [`variant_run`], [`running`], [`settling`] |
//! | readings before and after a load | [`reading`] |
//! | a lab in a cluster | [`in_pods`], [`pod_systems`], [`pod_attached`], [`pod_usage`] |
//! | one of several generators of a round, in a pod | [`shard`], [`peers`] |
//! | sampled rounds, which do not count | [`profile`], [`why`] |

mod candidate;
mod candidate_id;
mod capacity;
mod cores_used;
mod counted_cycles;
mod design;
mod duration_text;
mod footprint;
mod fraction;
mod gates_rule;
mod group_round;
mod groups;
mod host_watch;
mod in_pods;
mod in_slices;
mod in_turn;
mod neighbor_watch;
mod network_watch;
mod peers;
mod placement;
mod pod_attached;
mod pod_systems;
mod pod_usage;
mod prediction;
mod preparation;
mod profile;
mod reading;
mod reused_systems;
mod round;
mod round_loop;
mod running;
mod running_variant;
mod session;
mod settling;
mod settling_together;
mod shard;
mod side_by_side;
mod stopping_rule;
mod trial;
mod try_out;
mod variant_run;
mod watching;
mod why;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use candidate::Candidates;
use candidate_id::CandidateId;
use design::Design;
pub use in_pods::{PodRun, Source};
pub use in_turn::ATTEMPTS;
use lab::Lab;
use load::{AwakeCores, keep_cores_awake};
use model::{InvalidKind, StatusRule};
pub use peers::Peers;
pub use pod_systems::wanted;
use recording::{ClusterText, Environment, Profile, RateChosen, Recording, RoundRecord, WhyRecord};
use rig::machine::{self, Machine};
use rig::{KeeperCommand, Rig};

use crate::build_cache::BuildCache;
use crate::compose::Projects;
use crate::console::Console;
use crate::environment::{self, instant};
use crate::exit::Failure;
use crate::gates::Gates;
use crate::invalid::Invalid;
use crate::invalid::LOGS;
use crate::progress::Progress;
use crate::published::Account;
use crate::record::{self, Outline};
use crate::served::Board;
use crate::stop::StopSignal;
use crate::systems::{Addresses, GRACE};
use reused_systems::ReusedSystems;
use round::Rounds;
use round_loop::OnThisMachine;
use session::Session;
use settling_together::RESETTLE;

/// Pairs of request and response that a measurement keeps for each kind of failure.
pub const FAILURES_KEPT: usize = 3;

/// Time spent observing other programs before `weigh` starts the systems.
pub const LOOK_BEFORE: Duration = Duration::from_millis(200);

/// Starts the keeper, and warns about processes that a killed run left behind.
pub fn start_rig(logs: &Path, console: Console) -> Result<Rig, Failure> {
    let command = KeeperCommand::new(environment::own_program());
    let rig = Rig::start(command, logs).map_err(|error| Failure::bug(error.to_string()))?;
    for leftover in rig.leftovers() {
        console.warn(&format!(
            "an earlier run left processes {:?} running, and they disturb this run. End them",
            leftover.pids
        ));
    }
    Ok(rig)
}

/// One run of one lab.
pub struct Experiment<'a> {
    session: Session<'a>,
    rig: Rig,
    host: Host,
    candidates: Candidates<'a>,
    rounds: Rounds,
    design: Design,
    reused: ReusedSystems,
    /// In measurement order.
    records: Vec<RoundRecord>,
    /// The gates that decide the number of rounds, if the lab uses them as its stopping rule.
    gates: Gates,
    /// The page that shows the rounds until now. `None` without `--serve`.
    board: Option<Board>,
    /// Folder of the flamegraphs. `None` without `--flamegraph`.
    flamegraphs: Option<PathBuf>,
    profiles: Vec<Profile>,
    /// Folder for the samples of `--why`. `None` without it.
    why_in: Option<PathBuf>,
    why: Option<WhyRecord>,
    /// The cluster of the run. `None` if the systems run on this machine.
    cluster: Option<ClusterText>,
    /// True if each variant gets two short loads after its proof.
    tries_out: bool,
    /// The run's choice of the rate, with its reason. `None` if the lab sets the rate.
    chosen: Option<RateChosen>,
    /// True if a system that `weigh` did not start has requested less load.
    has_yielded: bool,
    /// The reason why a cluster ended the run before its last round. `None` if it did not.
    ended_because: Option<String>,
}

/// The result of a check: variants with proofs and without measurements.
pub struct Checked {
    /// Each variant by name, with the reason if it would have no number.
    pub verdicts: Vec<(String, Option<Invalid>)>,
    /// The predicted course of a run, one line per entry.
    pub prediction: Vec<String>,
}

/// The machine's part of the recording, and the settings that last for the run.
struct Host {
    started_at: String,
    before: Machine,
    /// Measured before the run starts any process.
    busy_share_before: Option<f64>,
    /// Keeps the cores awake for the whole run, proofs included. `None` if the lab disables it or the system
    /// refuses it.
    awake: Option<AwakeCores>,
    /// True if systems and generator have priority over other programs. Set from the first round, because
    /// builds do not need it.
    precedence: bool,
}

impl<'a> Experiment<'a> {
    /// Starts the keeper. No system runs yet.
    ///
    /// # Errors
    ///
    /// When the keeper does not start or the log folder cannot be created.
    pub fn new(
        lab: &'a Lab,
        addresses: Addresses,
        folder: &Path,
        console: Console,
        stop: &'a StopSignal,
    ) -> Result<Experiment<'a>, Failure> {
        let logs = folder.join(LOGS);
        // Measured before the keeper starts, so that it contains only other programs.
        let busy_share_before = rig::busy_share_for(LOOK_BEFORE);
        let projects = Projects::of(lab);
        let mut rig = start_rig(&logs, console)?;
        let projects = projects.kept(&mut rig)?;
        let seed = lab.seed.unwrap_or_else(environment::fresh_seed);
        let candidates = Candidates::of(lab);
        let rounds = Rounds::of(lab, &candidates, seed);
        let host = Host {
            started_at: environment::now().to_string(),
            before: machine::snapshot(),
            busy_share_before,
            awake: lab.awake.then(keep_cores_awake).flatten(),
            precedence: false,
        };
        // With a stopping rule this is a first guess. `has_enough` corrects it.
        let measurements = rounds.planned() * candidates.len();
        let session = Session {
            lab,
            load: lab.load.clone(),
            stop,
            progress: Progress::new(console, measurements as u64),
            logs,
            seed,
            addresses,
            projects,
            started: instant(),
            generator_cpus: candidates.free_cpus(host.before.cpus_online),
            peers: None,
        };
        Ok(Experiment {
            session,
            rig,
            host,
            candidates,
            rounds,
            design: Design::of(lab, &rig::machine::cores_allowed()),
            reused: ReusedSystems::off(),
            records: Vec::new(),
            gates: Gates::none(),
            board: None,
            flamegraphs: None,
            profiles: Vec::new(),
            why_in: None,
            why: None,
            cluster: None,
            tries_out: lab.rate_choice.is_some(),
            chosen: None,
            has_yielded: false,
            ended_because: None,
        })
    }

    /// Publishes the current measurement while the run lasts.
    pub fn published(mut self, account: Option<Account>) -> Self {
        self.session.progress = self.session.progress.published(account);
        self
    }

    /// Shows the rounds on a page while the run lasts.
    pub fn served(self, board: Option<Board>) -> Self {
        Experiment { board, ..self }
    }

    /// Continues until these gates are decided, if the lab has that stopping rule.
    pub fn deciding(mut self, gates: Gates) -> Self {
        self.rounds.name_gates(&gates);
        self.gates = gates;
        self
    }

    /// Also samples the systems, in separate rounds, and draws flamegraphs into this folder.
    pub fn with_flamegraphs(self, folder: &Path) -> Self {
        Experiment {
            flamegraphs: Some(folder.to_owned()),
            ..self
        }
    }

    /// Also looks for the cause of each difference, in separate rounds. The samplers write into this folder
    /// and leave nothing in it.
    pub fn asking_why(self, folder: &Path) -> Self {
        Experiment {
            why_in: Some(folder.to_owned()),
            ..self
        }
    }

    /// Starts systems once, at their proof, instead of in every round. See [`ReusedSystems`]. The intervals
    /// then exclude the variation between starts of the systems that are kept.
    pub fn reusing_systems(self) -> Self {
        Experiment {
            reused: ReusedSystems::on(),
            ..self
        }
    }

    /// Runs the lab. The recording contains the failures of variants.
    ///
    /// # Errors
    ///
    /// When the keeper process fails.
    pub fn run(mut self, builds: &mut BuildCache) -> Result<Recording, Failure> {
        self.prepare(builds);
        self.choose_load();
        self.measure();
        // Before the sampled rounds, because they start new systems.
        self.reused.stop_all(&mut self.rig);
        // After all rounds, so that the sampler disturbs no measurement.
        if let Some(folder) = self.flamegraphs.clone()
            && !self.session.stop.is_asked()
        {
            self.profiles = self.profile(&folder);
        }
        if let Some(folder) = self.why_in.clone()
            && !self.session.stop.is_asked()
        {
            self.why = Some(self.ask_why(&folder));
        }
        self.session.progress.finish();
        self.name_overdue();
        let recording = self.recording();
        self.rig
            .shut_down()
            .map_err(|error| Failure::bug(error.to_string()))?;
        Ok(recording)
    }

    /// Proves every variant without a measurement, and predicts how a run would go.
    ///
    /// # Errors
    ///
    /// When the keeper process fails.
    pub fn check(mut self, builds: &mut BuildCache) -> Result<Checked, Failure> {
        self.tries_out = self.is_predictable();
        self.prepare(builds);
        self.choose_load();
        self.session.progress.finish();
        self.name_overdue();
        let prediction = self.prediction();
        let verdicts = self
            .candidates
            .iter()
            .map(|candidate| (candidate.name().to_owned(), candidate.invalid().cloned()))
            .collect();
        self.rig
            .shut_down()
            .map_err(|error| Failure::bug(error.to_string()))?;
        Ok(Checked {
            verdicts,
            prediction,
        })
    }

    /// Measures the rounds, in the order of the design.
    fn measure(&mut self) {
        self.host.precedence = self.take_precedence();
        self.choose_design();
        let Ok(()) = self.measure_rounds(&mut OnThisMachine);
    }

    /// Gives systems and generator priority over other programs, unless the lab disables it. A system that
    /// the rig did not start keeps normal priority, so the generator would starve it.
    fn take_precedence(&mut self) -> bool {
        let lab = self.session.lab;
        let mut systems = lab.all().flat_map(lab::Variant::systems);
        // An error can be ignored here. The next start reports a keeper that has ended.
        lab.precedence
            && systems.all(lab::Setup::is_process)
            && self.rig.take_precedence().unwrap_or(false)
    }

    /// True if another turn would be useless.
    fn is_over(&self) -> bool {
        self.session.stop.is_asked() || self.has_yielded || self.candidates.is_hopeless()
    }

    /// Stops the run if a system that `weigh` did not start requested less load during a measurement.
    fn pushed_back(&mut self, id: CandidateId, record: &RoundRecord) -> Option<Invalid> {
        let variant = self.candidates.get(id).variant;
        // In a cluster, this run started all systems.
        let is_ours = self.session.peers.is_some();
        let mut systems = variant.systems().iter();
        let target = systems
            .next_back()
            .filter(|_| !is_ours && variant_run::yields(variant))?;
        let asked = StatusRule::PUSHED_BACK
            .into_iter()
            .find(|status| record.statuses.contains_key(status))?;
        self.has_yielded = true;
        let reason = format!(
            "`{}` answered {asked}, a request for less load, so the run was stopped. Lower the load",
            target.system
        );
        Some(Invalid::new(InvalidKind::Mismatched, reason))
    }

    /// Removes a candidate from the run and prints the reason.
    fn reject(&mut self, id: CandidateId, invalid: Invalid) {
        let candidate = self.candidates.get_mut(id);
        tracing::debug!(variant = candidate.name(), kind = ?invalid.kind, reason = invalid.reason, "a variant is out");
        // A user who stops the run needs no message. Neither does a variant that lost its baseline.
        let is_news = !matches!(
            invalid.kind,
            InvalidKind::Interrupted | InvalidKind::NotNeeded
        );
        if is_news {
            // The result contains the reason.
            let here = environment::current_folder();
            let note = invalid.note(candidate.name(), here.as_deref());
            self.session.progress.note(&note);
        }
        candidate.reject(invalid);
    }

    /// Names each system that had to be killed, once for all its stops.
    fn name_overdue(&self) {
        for (name, stops) in self.rig.killed() {
            self.session.progress.note(&format!(
                "weigh: `{name}` ignored SIGTERM and was killed after {} s, at {stops} of its stops",
                GRACE.as_secs()
            ));
        }
    }

    /// Removes all remaining candidates, because their measurements have no comparison.
    fn end_all(&mut self, because: &str) {
        for id in self.candidates.ids() {
            let candidate = self.candidates.get_mut(id);
            if candidate.invalid().is_none() {
                candidate.reject(Invalid::new(InvalidKind::NotNeeded, because));
            }
        }
    }

    /// The reason of variants without a measurement, if the run ended before its last round.
    fn ending(&self) -> Option<Invalid> {
        match &self.ended_because {
            Some(reason) => Some(Invalid::new(InvalidKind::NotReady, reason.clone())),
            None => self.session.stop.is_asked().then(Invalid::interrupted),
        }
    }

    fn recording(&mut self) -> Recording {
        let lab = self.session.lab;
        let ending = self.ending();
        let is_interrupted = ending.is_some();
        let names: BTreeSet<&str> = self
            .records
            .iter()
            .map(|record| record.variant.as_str())
            .collect();
        let mut variants = self.candidates.records(lab, &names, ending.as_ref());
        if self.shares() {
            record::mark_shared(lab, &mut variants);
        }
        self.session.addresses.write_down(lab, &mut variants);
        let described = environment::describe(
            &self.host.before,
            self.session.generator_cpus.clone(),
            self.host.awake.is_some(),
        );
        let measured = self.design.record(&self.candidates);
        let outline = Outline {
            measured,
            reuse: self.reused.reuse().clone(),
            resettle: RESETTLE,
            cluster: self.cluster.clone(),
            order: self
                .rounds
                .orders_recorded(&self.candidates, is_interrupted),
            load: self.session.load.clone(),
            chosen: self.chosen.clone(),
            until: self.rounds.until(),
            decided: self.rounds.decided(),
            seed: self.session.seed,
            started_at: self.host.started_at.clone(),
            is_interrupted,
            ended_because: self.ended_because.clone(),
            environment: Environment {
                busy_share_before: self.host.busy_share_before,
                precedence: Some(self.host.precedence),
                ..described
            },
            variants,
            rounds: std::mem::take(&mut self.records),
            profiles: std::mem::take(&mut self.profiles),
            why: self.why.take(),
        };
        record::of_lab(lab, outline)
    }
}
