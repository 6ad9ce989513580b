//! A lab in a cluster: systems and generators are pods. This process starts them round by round and merges
//! the recordings of the generators.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cluster::ClusterError;
use cluster::kubelet::Readings;
use cluster::state::PodState;
use model::InvalidKind;
use recording::{Environment, Recording};

mod description;
mod ended;
mod merge;

use ended::{EndedSystem, ended_systems};
use merge::{Parts, SeenPods, parts_of};

use super::Experiment;
use super::candidate_id::CandidateId;
use super::design::Design;
use super::in_turn::in_round;
use super::pod_attached::{AttachedPods, attached};
use super::pod_systems::{places, wanted, wanted_each};
use super::round::Round;
use super::round_loop::RoundStrategy;
use crate::digest::sha256;
use crate::environment::instant;
use crate::exit::Failure;
use crate::invalid::{Invalid, PodLog, last_words};
use crate::pods::generator_job::GeneratorJob;
use crate::pods::meeting::Meeting;
use crate::pods::round_spec::{RoundSpec, ThisRound};
use crate::pods::stage::{RoundError, RunningPods, Stage};
use crate::pods::start_progress::{Cause, StartFailure};
use crate::pods::wanted::Wanted;
use crate::record;

/// The inputs of the lab that its generators read again, and the cluster.
pub struct Source {
    pub settings: Vec<(String, String)>,
    /// The version of the cluster.
    pub version: String,
    pub namespace: String,
    /// Time limit of the run for rounds that are measured again. `None` for no limit.
    pub max_time: Option<Duration>,
}

/// The result of a run in a cluster.
pub struct PodRun {
    pub recording: Recording,
    /// The failure that ended the run, or that left objects in the cluster. `None` if the run ended well.
    pub failure: Option<Failure>,
}

/// Number of lost rounds that a run accepts at least. It accepts as many as it has rounds.
const LOST_LEAST: usize = 2;

/// The pods of one round, for the recording.
struct PodsOfRound<'w> {
    number: u32,
    wanted: Vec<Wanted<'w>>,
    systems: Vec<PodState>,
    generators: Vec<PodState>,
    /// The pods behind URLs.
    attached: Vec<AttachedPods>,
    /// The environment of the first generator. `None` without a measurement.
    environment: Option<Environment>,
}

/// The result of the generators of one round.
struct Generated {
    parts: Parts,
    /// One recording of each generator.
    recordings: Vec<Recording>,
    generators: Vec<PodState>,
    /// Counters of the nodes during the load.
    readings: Readings,
}

/// All candidates at once, in the pods of a cluster.
struct InPods<'s, 'c> {
    stage: &'s mut Stage<'c>,
    source: &'s Source,
    /// The environment of the first generator. `None` until a round has a measurement.
    environment: Option<Environment>,
    /// Start of the first round.
    began: Instant,
    /// Number of rounds that began, lost rounds included. Names of objects contain it.
    begun: u32,
    /// The rounds that the cluster took a pod from, with the reasons.
    lost: Vec<String>,
}

/// The end of a round that did not fail.
enum RoundEnd {
    Done,
    /// The cluster took a pod away.
    Lost(String),
}

/// The reason why a run ends before its last round.
enum RunEnd {
    Cluster(ClusterError),
    Because(String),
}

impl From<ClusterError> for RunEnd {
    fn from(error: ClusterError) -> RunEnd {
        RunEnd::Cluster(error)
    }
}

impl InPods<'_, '_> {
    /// The reason why the last lost round is not measured again. `None` if it is. An attempt lasted `took`.
    fn why_not_again(&self, planned: usize, took: Duration) -> Option<String> {
        let lost = self.lost.len();
        let last = self.lost.last()?;
        let has_time = |most: Duration| self.began.elapsed() + took <= most;
        if !self.source.max_time.is_none_or(has_time) {
            return Some(format!("{last}. `--max-time` leaves no time for it again"));
        }
        (lost > planned.max(LOST_LEAST))
            .then(|| format!("{lost} rounds lost a pod. The last: {last}"))
    }
}

impl RoundStrategy for InPods<'_, '_> {
    type Error = RunEnd;

    fn carry_out(&mut self, experiment: &mut Experiment<'_>, round: &Round) -> Result<(), RunEnd> {
        let known = experiment.records.len();
        loop {
            let began = instant();
            let RoundEnd::Lost(why) = experiment.round_in_pods(round, self)? else {
                break;
            };
            let why = format!("round {}: {why}", round.number + 1);
            let note = format!("{why}. The round is measured again");
            self.lost.push(why);
            if let Some(reason) = self.why_not_again(round.planned, began.elapsed()) {
                return Err(RunEnd::Because(reason));
            }
            experiment.session.progress.note(&note);
        }
        let progress = &experiment.session.progress;
        for record in &experiment.records[known..] {
            progress.note(&record::line(record, round.planned));
        }
        for _ in round.positions() {
            progress.step();
        }
        Ok(())
    }
}

impl Experiment<'_> {
    /// Registers a cleanup task with the keeper. It deletes the run's objects in the cluster if this process
    /// is killed.
    ///
    /// # Errors
    /// When the keeper refuses it.
    pub fn keep(&mut self, cleanup_task: &str) -> Result<(), Failure> {
        let kept = self.rig.run_at_end(cleanup_task);
        kept.map_err(|error| Failure::bug(error.to_string()))
    }

    /// Runs the lab in a cluster. The recording contains the failures of variants. If a request to the cluster
    /// fails, the run ends, and the recording contains the whole rounds until then and the reason.
    ///
    /// # Errors
    /// When the keeper process fails.
    pub fn run_in_pods(mut self, mut stage: Stage<'_>, source: &Source) -> Result<PodRun, Failure> {
        self.design = Design::elsewhere(self.candidates.compared());
        let mut in_pods = InPods {
            stage: &mut stage,
            source,
            environment: None,
            began: instant(),
            begun: 0,
            lost: Vec::new(),
        };
        let measured = self
            .pull_images(in_pods.stage)
            .and_then(|()| self.measure_rounds(&mut in_pods));
        let (environment, lost) = (in_pods.environment, in_pods.lost);
        let are_left = matches!(measured, Err(RunEnd::Cluster(ClusterError::Left { .. })));
        let measured = match measured {
            // A stop by the user is not a failure.
            Err(RunEnd::Cluster(ClusterError::Stopped { .. })) | Ok(()) => None,
            Err(RunEnd::Cluster(error)) => Some(error.to_string()),
            Err(RunEnd::Because(reason)) => Some(reason),
        };
        // Objects that are left after the last round take no figure away.
        if !(are_left && self.has_all_rounds()) {
            self.ended_because.clone_from(&measured);
        }
        stage.lost_rounds = lost;
        self.cluster = Some(stage.text(&source.version, &source.namespace));
        let ended = stage.end(are_left);
        self.session.progress.finish();
        let mut recording = self.recording();
        if let Some(environment) = environment {
            recording.environment = environment;
        }
        let shut_down = self.rig.shut_down();
        shut_down.map_err(|error| Failure::bug(error.to_string()))?;
        // The first failure is the cause, and the second often follows from it.
        let failure = measured.or_else(|| ended.err().map(|error| error.to_string()));
        Ok(PodRun {
            recording,
            failure: failure.map(Failure::not_ready),
        })
    }

    /// Pulls the images of all systems and generators on all nodes that their pods may get.
    fn pull_images(&self, stage: &Stage<'_>) -> Result<(), RunEnd> {
        let progress = &self.session.progress;
        progress.show("images are pulled");
        let all: Vec<usize> = (0..self.session.lab.all().count()).collect();
        for note in stage.pull_images(&wanted(self.session.lab, &all))? {
            progress.note(&note);
        }
        Ok(())
    }

    /// True if every planned round has a measurement.
    fn has_all_rounds(&self) -> bool {
        let rounds: BTreeSet<u32> = self.records.iter().map(|record| record.round).collect();
        rounds.len() >= self.rounds.planned()
    }

    /// One round: all systems start, the generators send the load, and all pods are deleted.
    fn round_in_pods(
        &mut self,
        round: &Round,
        run: &mut InPods<'_, '_>,
    ) -> Result<RoundEnd, RunEnd> {
        let lab = self.session.lab;
        let known = self.records.len();
        let ids: Vec<CandidateId> = round
            .positions()
            .map(|position| position.candidate)
            .collect();
        let ids: Vec<CandidateId> = ids
            .into_iter()
            .filter(|id| !self.candidates.is_needless(*id))
            .collect();
        let positions: Vec<(usize, CandidateId)> =
            ids.iter().map(|id| (self.position_of(*id), *id)).collect();
        let wanted = wanted(
            lab,
            &positions
                .iter()
                .map(|(position, _)| *position)
                .collect::<Vec<_>>(),
        );
        run.begun += 1;
        let number = run.begun;
        self.session
            .progress
            .show(&format!("round {}: pods come up", round.number + 1));
        let mut up = run.stage.bring_up(number, &wanted)?;
        let mut pods = PodsOfRound {
            number,
            wanted,
            systems: up.pods.clone(),
            generators: Vec::new(),
            attached: Vec::new(),
            environment: None,
        };
        let failed = std::mem::take(&mut up.failed);
        let attached = attached(run.stage, lab, &positions)?;
        self.reject_missing(&attached, round);
        up.attached = attached.iter().flat_map(|one| one.pods.clone()).collect();
        pods.attached = attached;
        let result = match self.judge_start(failed, &positions, round) {
            Ok(RoundEnd::Done) => {
                self.load_in_pods(round, run.stage, run.source, &up, &positions, &mut pods)
            }
            other => other,
        };
        if result.is_err() {
            // A round counts if it is whole, and its systems survived it.
            self.records.truncate(known);
        }
        if let Err(RunEnd::Cluster(_)) = &result {
            // Each further call might wait for a lost cluster again. The end of the run removes the pods.
            return result;
        }
        let ended = match &result {
            Ok(RoundEnd::Done) => run.stage.leave_round(up, &pods.generators),
            _ => Stage::end_round(up),
        };
        self.describe(run.stage, &pods);
        run.environment = pods.environment.or(run.environment.take());
        // The first failure is the cause.
        result.and_then(|end| ended.map(|()| end).map_err(RunEnd::from))
    }

    /// Sends the load of a round to the candidates that started.
    fn load_in_pods(
        &mut self,
        round: &Round,
        stage: &Stage<'_>,
        source: &Source,
        up: &RunningPods<'_, '_>,
        positions: &[(usize, CandidateId)],
        pods: &mut PodsOfRound<'_>,
    ) -> Result<RoundEnd, RunEnd> {
        let known = self.records.len();
        let in_round_ids: Vec<(usize, CandidateId)> = positions
            .iter()
            .copied()
            .filter(|(_, id)| !self.candidates.is_needless(*id))
            .collect();
        if in_round_ids.is_empty() {
            return Ok(RoundEnd::Done);
        }
        let generated = self.generated(round, stage, source, up, &in_round_ids);
        if let Err(RoundError::Cluster(error)) = generated {
            return Err(error.into());
        }
        // Checked before the results, because lost pods also end proofs and generators.
        let now = stage.pods_now(up)?;
        let mut ended = ended_systems(stage, &pods.wanted, &up.pods, &now);
        if let Some(lost) = ended.iter().position(|it| it.is_lost) {
            return Ok(RoundEnd::Lost(ended.swap_remove(lost).why));
        }
        // A load also ends badly, or never, if a node is silent that the cluster does not miss yet.
        if !matches!(generated, Err(RoundError::Lost(_)))
            && let Some(lost) = stage.lost_after_load(&now)
        {
            return Ok(RoundEnd::Lost(lost));
        }
        match generated {
            Ok(generated) => {
                let first = generated.recordings.first();
                pods.environment = first.map(|it| it.environment.clone());
                pods.generators.clone_from(&generated.generators);
                let seen = SeenPods {
                    stage,
                    pods: &pods.systems,
                    attached: &pods.attached,
                };
                self.merge(round, &in_round_ids, &generated, &seen);
                self.reject_ended(stage, ended, &in_round_ids, round);
                self.look_after_attached(stage, &pods.attached, round)?;
                Ok(RoundEnd::Done)
            }
            Err(RoundError::Cluster(error)) => Err(error.into()),
            Err(RoundError::Lost(reason)) => Ok(RoundEnd::Lost(reason)),
            // All variants of the earlier rounds have been measured, so their figures stay.
            Err(RoundError::Generator(reason)) if known > 0 => Err(RunEnd::Because(format!(
                "{reason} (round {})",
                round.number + 1
            ))),
            Err(RoundError::Generator(reason)) => {
                let invalid = Invalid::new(InvalidKind::LoadFailed, reason);
                for (_, id) in &in_round_ids {
                    self.reject(*id, in_round(invalid.clone(), round.number));
                }
                Ok(RoundEnd::Done)
            }
        }
    }

    /// Rejects the candidates with systems that did not start. If the cluster is the cause, and earlier rounds
    /// were measured, the run ends and keeps them.
    fn judge_start(
        &mut self,
        failed: Vec<StartFailure>,
        positions: &[(usize, CandidateId)],
        round: &Round,
    ) -> Result<RoundEnd, RunEnd> {
        let number = round.number + 1;
        let has_records = !self.records.is_empty();
        let mut lost = None;
        for StartFailure {
            variant,
            cause,
            invalid,
        } in failed
        {
            match cause {
                Cause::Lost => lost = lost.or(Some(invalid.reason)),
                Cause::Outside if has_records => {
                    return Err(RunEnd::Because(format!(
                        "{} (round {number})",
                        invalid.reason
                    )));
                }
                Cause::Outside | Cause::Own => {
                    let invalid = self.with_log_kept(invalid);
                    self.reject_pods_of(variant, positions, &invalid, round);
                }
            }
        }
        Ok(lost.map_or(RoundEnd::Done, RoundEnd::Lost))
    }

    /// Keeps the end of a pod's log in the folder of the recording, and adds its last words to the reason.
    fn with_log_kept(&self, mut invalid: Invalid) -> Invalid {
        if let Some(PodLog { pod, last_lines }) = &invalid.pod_log {
            let path = self.session.logs.join(format!("{pod}.log"));
            let text: String = last_lines.iter().map(|line| format!("{line}\n")).collect();
            if let Err(error) = std::fs::write(&path, text) {
                tracing::debug!(%error, pod, "the log of the pod is not kept");
            }
            invalid.reason += &last_words(last_lines, &path);
        }
        invalid
    }

    fn position_of(&self, id: CandidateId) -> usize {
        let mut ids = self.candidates.ids();
        ids.position(|other| other == id)
            .expect("a candidate of this lab")
    }

    /// Rejects candidates with pods that did not start.
    fn reject_pods_of(
        &mut self,
        variant: Option<usize>,
        positions: &[(usize, CandidateId)],
        invalid: &Invalid,
        round: &Round,
    ) {
        for (position, id) in positions {
            let is_meant = variant.is_none_or(|variant| variant == *position);
            if is_meant && self.candidates.get(*id).invalid().is_none() {
                self.reject(*id, in_round(invalid.clone(), round.number));
            }
        }
    }

    /// Starts the generators, and returns their recordings.
    fn generated(
        &self,
        round: &Round,
        stage: &Stage<'_>,
        source: &Source,
        up: &RunningPods<'_, '_>,
        ids: &[(usize, CandidateId)],
    ) -> Result<Generated, RoundError> {
        let lab = self.session.lab;
        let names: Vec<String> = ids
            .iter()
            .map(|(_, id)| self.candidates.get(*id).name().to_owned())
            .collect();
        let positions: Vec<usize> = ids.iter().map(|(position, _)| *position).collect();
        let places = places(stage, &wanted_each(lab, &positions), &up.pods, lab);
        let this = ThisRound {
            number: round.number,
            variants: names,
            places,
            meeting: Meeting::of(
                stage.generators,
                stage.barrier(),
                sha256(format!("{} {:?}", self.session.seed, instant()).as_bytes()),
                stage.waits.met(),
            ),
            domain: stage.domain().to_owned(),
        };
        let spec = RoundSpec::of(lab, self.session.seed, &stage.files, &source.settings, this);
        let mut readings = Readings::default();
        self.session.progress.show(&format!(
            "round {}: {} send the load",
            round.number + 1,
            match stage.generators {
                1 => "1 generator".to_owned(),
                many => format!("{many} generators"),
            }
        ));
        let (recordings, generators) =
            stage.generate(up, &GeneratorJob::Round(Box::new(spec)), &mut readings)?;
        let parts = parts_of(&recordings);
        Ok(Generated {
            parts,
            recordings,
            generators,
            readings,
        })
    }

    /// Rejects candidates without pods behind their URLs.
    fn reject_missing(&mut self, attached: &[AttachedPods], round: &Round) {
        for one in attached {
            if let Some(reason) = one.missing() {
                let invalid = Invalid::new(InvalidKind::NotReady, reason);
                self.reject(one.id, in_round(invalid, round.number));
            }
        }
    }

    /// Rejects candidates with other pods behind their URLs than before the measurement.
    fn look_after_attached(
        &mut self,
        stage: &Stage<'_>,
        attached: &[AttachedPods],
        round: &Round,
    ) -> Result<(), RunEnd> {
        for one in attached {
            let is_in = self.candidates.get(one.id).invalid().is_none();
            if let Some(change) = one.change(stage)?.filter(|_| is_in) {
                let invalid = Invalid::new(InvalidKind::Crashed, change);
                self.reject(one.id, in_round(invalid, round.number));
            }
        }
        Ok(())
    }

    /// Rejects the candidates with systems that ended during the measurement.
    fn reject_ended(
        &mut self,
        stage: &Stage<'_>,
        ended: Vec<EndedSystem>,
        ids: &[(usize, CandidateId)],
        round: &Round,
    ) {
        for EndedSystem {
            variant, pod, why, ..
        } in ended
        {
            let invalid = Invalid {
                pod_log: stage.log_of(&pod),
                ..Invalid::new(InvalidKind::Crashed, why)
            };
            let invalid = self.with_log_kept(invalid);
            self.reject_pods_of(variant, ids, &invalid, round);
        }
    }
}
