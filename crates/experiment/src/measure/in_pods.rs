//! A lab in a cluster: systems and generators are pods. This process starts them round by round and merges
//! the recordings of the generators.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cluster::ClusterError;
use cluster::kubelet::Readings;
use cluster::state::{Phase, PodState};
use model::InvalidKind;
use recording::{Environment, PlacedText, Recording, RoundRecord, SystemUsage, VariantStatus};

use super::Experiment;
use super::candidate_id::CandidateId;
use super::design::Design;
use super::in_turn::in_round;
use super::pod_attached::{AttachedPods, attached};
use super::pod_systems::{places, wanted, wanted_each};
use super::pod_usage::{moments, used};
use super::round::Round;
use super::round_loop::RoundStrategy;
use crate::digest::sha256;
use crate::environment::instant;
use crate::exit::Failure;
use crate::invalid::Invalid;
use crate::pods::load_spec::GeneratorJob;
use crate::pods::round_spec::{RoundSpec, ThisRound};
use crate::pods::stage::{RoundError, RunningPods, Stage};
use crate::pods::wanted::Wanted;
use crate::record;

/// The inputs of the lab. The generators read them again.
pub struct Source {
    pub files: Vec<(PathBuf, Vec<u8>)>,
    pub settings: Vec<(String, String)>,
    /// The version of the cluster.
    pub version: String,
    pub namespace: String,
}

/// The parts of each variant in a round. Each attempt has one part per generator.
type Parts = BTreeMap<String, Vec<Vec<RoundRecord>>>;

/// The result of the generators of one round.
struct Generated {
    parts: Parts,
    /// One recording of each generator.
    recordings: Vec<Recording>,
    generators: Vec<PodState>,
    /// Counters of the nodes during the load.
    readings: Readings,
}

/// The pods of systems in a round.
struct SeenPods<'p, 'c> {
    stage: &'p Stage<'c>,
    /// The pods that this run has started.
    pods: &'p [PodState],
    /// The pods behind URLs.
    attached: &'p [AttachedPods],
}

/// All candidates at once, in the pods of a cluster.
struct InPods<'s, 'c> {
    stage: &'s mut Stage<'c>,
    source: &'s Source,
    /// The environment of the first generator. `None` until a round has a measurement.
    environment: Option<Environment>,
}

impl RoundStrategy for InPods<'_, '_> {
    type Error = ClusterError;

    fn carry_out(
        &mut self,
        experiment: &mut Experiment<'_>,
        round: &Round,
    ) -> Result<(), ClusterError> {
        let known = experiment.records.len();
        experiment.round_in_pods(round, self.stage, self.source, &mut self.environment)?;
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

    /// Runs the lab in a cluster. The recording contains the failures of variants.
    ///
    /// # Errors
    /// When a request to the cluster fails, or an object remains there.
    pub fn run_in_pods(
        mut self,
        mut stage: Stage<'_>,
        source: &Source,
    ) -> Result<Recording, Failure> {
        self.design = Design::elsewhere(self.candidates.compared());
        let mut in_pods = InPods {
            stage: &mut stage,
            source,
            environment: None,
        };
        let measured = self.measure_rounds(&mut in_pods);
        let environment = in_pods.environment;
        self.cluster = Some(stage.text(&source.version, &source.namespace));
        let ended = stage.end();
        self.session.progress.finish();
        let mut recording = self.recording();
        if let Some(environment) = environment {
            recording.environment = environment;
        }
        let shut_down = self.rig.shut_down();
        match measured {
            // A stop by the user is not a failure. The earlier measurements remain.
            Err(ClusterError::Stopped { .. }) | Ok(()) => {}
            Err(error) => return Err(Failure::not_ready(error.to_string())),
        }
        ended.map_err(|error| Failure::not_ready(error.to_string()))?;
        shut_down.map_err(|error| Failure::bug(error.to_string()))?;
        Ok(recording)
    }

    /// One round: all systems start, the generators send the load, and all pods are deleted.
    fn round_in_pods(
        &mut self,
        round: &Round,
        stage: &mut Stage<'_>,
        source: &Source,
        environment: &mut Option<Environment>,
    ) -> Result<(), ClusterError> {
        let lab = self.session.lab;
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
        let number = u32::try_from(round.number + 1).unwrap_or(u32::MAX);
        self.session
            .progress
            .show(&format!("round {number}: pods come up"));
        let mut up = stage.bring_up(number, &wanted)?;
        for (variant, invalid) in &up.failed {
            self.reject_pods_of(*variant, &positions, invalid, round);
        }
        let attached = attached(stage, lab, &positions)?;
        for one in &attached {
            if let Some(reason) = one.missing() {
                let invalid = Invalid::new(InvalidKind::NotReady, reason);
                self.reject(one.id, in_round(invalid, round.number));
            }
        }
        let pods_of = |one: &AttachedPods| one.pods.clone();
        up.attached = attached.iter().flat_map(pods_of).collect();
        let in_round_ids: Vec<(usize, CandidateId)> = positions
            .into_iter()
            .filter(|(_, id)| !self.candidates.is_needless(*id))
            .collect();
        let result = match in_round_ids.is_empty() {
            true => Ok(None),
            false => self
                .generated(round, stage, source, &up, &in_round_ids)
                .map(Some),
        };
        // Copied before the pods are deleted.
        let pods = up.pods.clone();
        let result = match result {
            Ok(None) => Ok(()),
            Ok(Some(generated)) => {
                let first = generated.recordings.first();
                *environment = first.map(|it| it.environment.clone());
                let seen = SeenPods {
                    stage,
                    pods: &pods,
                    attached: &attached,
                };
                self.merge(round, &in_round_ids, &generated, &seen);
                self.look_after(stage, &up, &wanted, &in_round_ids, round)?;
                self.look_after_attached(stage, &attached, round)?;
                Stage::end_round(up)?;
                self.describe(stage, &wanted, &pods, &generated.generators, number);
                self.describe_attached(stage, &attached);
                return Ok(());
            }
            Err(RoundError::Cluster(error)) => Err(error),
            Err(RoundError::Generator(reason)) => {
                let invalid = Invalid::new(InvalidKind::LoadFailed, reason);
                for (_, id) in &in_round_ids {
                    self.reject(*id, in_round(invalid.clone(), round.number));
                }
                Ok(())
            }
        };
        Stage::end_round(up)?;
        self.describe(stage, &wanted, &pods, &[], number);
        result
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
            generators: stage.generators,
            barrier: stage.barrier(),
            token: sha256(format!("{} {:?}", self.session.seed, instant()).as_bytes()),
        };
        let spec = RoundSpec::of(
            lab,
            self.session.seed,
            &source.files,
            &source.settings,
            this,
        );
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

    /// Merges the parts of each variant into one measurement.
    fn merge(
        &mut self,
        round: &Round,
        ids: &[(usize, CandidateId)],
        generated: &Generated,
        seen: &SeenPods<'_, '_>,
    ) {
        let Generated {
            parts, recordings, ..
        } = generated;
        let Some(first) = recordings.first() else {
            return;
        };
        let offset = instant().duration_since(self.session.started);
        let ends = first
            .rounds
            .iter()
            .map(|part| part.started_offset_us + part.elapsed_us);
        let ended_us = ends.max().unwrap_or_default();
        for (position, id) in ids {
            let name = self.candidates.get(*id).name();
            let proof = first.variant(name).and_then(|record| record.proof.clone());
            self.candidates.get_mut(*id).set_proof_elsewhere(proof);
            let is_whole = |attempt: &Vec<RoundRecord>| attempt.len() == recordings.len();
            let own = parts.get(name).filter(|all| all.iter().all(is_whole));
            for attempt in own.into_iter().flatten() {
                let mut whole = recording::merge_parts(attempt.clone());
                // Calculated from the end, because the offsets of pods count from their own start.
                let before_end_us = ended_us.saturating_sub(attempt[0].started_offset_us);
                let before_end = Duration::from_micros(before_end_us);
                whole.started_offset_us = model::micros(offset.saturating_sub(before_end));
                (whole.systems, whole.shared) =
                    self.usage_in(seen, generated, *position, *id, &attempt[0], &whole);
                self.records.push(whole);
            }
            if let Some(invalid) = reason_of(recordings, name) {
                self.reject(*id, invalid);
            } else if own.is_none() && !self.candidates.is_needless(*id) {
                let reason = "some generators have no measurement of it".to_owned();
                let invalid = Invalid::new(InvalidKind::LoadFailed, reason);
                self.reject(*id, in_round(invalid, round.number));
            }
        }
    }

    /// The usage of the own systems and of the shared systems of a variant, during a measurement. `part` is the
    /// first generator's part of it.
    fn usage_in(
        &self,
        seen: &SeenPods<'_, '_>,
        generated: &Generated,
        position: usize,
        id: CandidateId,
        part: &RoundRecord,
        whole: &RoundRecord,
    ) -> (Vec<SystemUsage>, Vec<SystemUsage>) {
        let first = generated.recordings.first();
        let moments = first.and_then(|first| moments(first, part));
        let (stage, readings) = (seen.stage, &generated.readings);
        let load = &self.session.load;
        let wanted = wanted_each(self.session.lab, &[position]);
        let usage = |system: &str, pods: &[&PodState]| {
            used(stage, system, pods, readings, moments, whole, load)
        };
        let started = |shared: bool| -> Vec<SystemUsage> {
            let own = wanted.iter().filter(|one| one.variant.is_none() == shared);
            own.map(|one| usage(&one.setup.system, &stage.counted_of(one, seen.pods)))
                .collect()
        };
        let attached = |system: &str| -> Option<SystemUsage> {
            let mut all = seen.attached.iter();
            let own = all.find(|it| it.id == id && it.system == system)?;
            Some(usage(system, &own.pods.iter().collect::<Vec<_>>()))
        };
        let is_elsewhere =
            |read: &&SystemUsage| wanted.iter().all(|one| one.setup.system != read.name);
        // The first generator has read the metrics of a system that runs already.
        let elsewhere = part.systems.iter().filter(is_elsewhere);
        let elsewhere = elsewhere.map(|read| attached(&read.name).unwrap_or_else(|| read.clone()));
        let mut own = started(false);
        own.extend(elsewhere);
        (own, started(true))
    }

    /// Rejects candidates with other pods behind their URLs than before the measurement.
    fn look_after_attached(
        &mut self,
        stage: &Stage<'_>,
        attached: &[AttachedPods],
        round: &Round,
    ) -> Result<(), ClusterError> {
        for one in attached {
            if let Some(change) = one.change(stage)? {
                let invalid = Invalid::new(InvalidKind::Crashed, change);
                self.reject(one.id, in_round(invalid, round.number));
            }
        }
        Ok(())
    }

    /// Checks if a system ended during the measurement.
    fn look_after(
        &mut self,
        stage: &Stage<'_>,
        up: &RunningPods<'_, '_>,
        wanted: &[Wanted<'_>],
        ids: &[(usize, CandidateId)],
        round: &Round,
    ) -> Result<(), ClusterError> {
        let now = stage.pods_now(up)?;
        for one in wanted {
            let before = stage.pods_of(one, &up.pods);
            let now = stage.pods_of(one, &now);
            let lost = before.iter().find_map(|pod| {
                let same = now.iter().find(|other| other.name == pod.name);
                match same {
                    None => Some(format!("{} was removed", pod.placed())),
                    Some(same) if same.restarts > pod.restarts => {
                        Some(format!("{} was started again", pod.placed()))
                    }
                    Some(same) => match &same.phase {
                        Phase::Failed(why) => Some(format!("{}: {why}", pod.placed())),
                        Phase::Succeeded | Phase::Leaving => {
                            Some(format!("{} has ended", pod.placed()))
                        }
                        _ => None,
                    },
                }
            });
            if let Some(lost) = lost {
                let invalid = Invalid::new(InvalidKind::Crashed, lost);
                self.reject_pods_of(one.variant, ids, &invalid, round);
            }
        }
        Ok(())
    }

    /// Records the nodes and images of pods.
    fn describe(
        &mut self,
        stage: &mut Stage<'_>,
        wanted: &[Wanted<'_>],
        pods: &[PodState],
        generators: &[PodState],
        round: u32,
    ) {
        stage.know_nodes(pods);
        stage.know_nodes(generators);
        let known: Vec<PodState> = pods.iter().chain(generators).cloned().collect();
        if round == 1
            && let Some(reason) = stage.may_read_kubelets(&known)
        {
            self.session
                .progress
                .note(&format!("processor time is unknown: {reason}"));
        }
        let mut placed = Vec::new();
        for one in wanted {
            for pod in stage.pods_of(one, pods) {
                let is_counted = stage.is_counted(one, pod);
                let name = |position: usize| self.candidates.at(position);
                let name = one.variant.map(name);
                let variant = name.map(|id| self.candidates.get(id).name().to_owned());
                placed.push(placed_text(pod, variant, &one.setup.system));
                let ids: Vec<CandidateId> = match name {
                    Some(id) => vec![id],
                    None => self.candidates.ids().collect(),
                };
                for id in ids {
                    let systems = &mut self.candidates.get_mut(id).systems;
                    let own = systems.iter_mut().find(|own| own.name == one.setup.system);
                    if let Some(own) = own.filter(|_| is_counted) {
                        own.manifests = stage.digest_of(one);
                        own.version.clone_from(&pod.image);
                        own.limits_enforced = Some(own.limits_asked);
                        own.limits_by = pod.qos.clone().map(|qos| format!("Kubernetes, {qos}"));
                    }
                }
            }
        }
        placed.extend(
            generators
                .iter()
                .map(|pod| placed_text(pod, None, "generator")),
        );
        stage.placed = placed;
    }

    /// Records the nodes and images of the pods behind URLs.
    fn describe_attached(&mut self, stage: &mut Stage<'_>, attached: &[AttachedPods]) {
        for one in attached {
            stage.know_nodes(&one.pods);
            let candidate = self.candidates.get_mut(one.id);
            let name = candidate.name().to_owned();
            let mut systems = candidate.systems.iter_mut();
            if let Some(own) = systems.find(|own| own.name == one.system) {
                own.version = one.pods.iter().find_map(|pod| pod.image.clone());
            }
            let placed = one
                .pods
                .iter()
                .map(|pod| placed_text(pod, Some(name.clone()), &one.system));
            stage.placed.extend(placed);
        }
    }
}

fn placed_text(pod: &PodState, variant: Option<String>, system: &str) -> PlacedText {
    PlacedText {
        pod: pod.name.clone(),
        node: pod.node.clone(),
        variant,
        system: system.to_owned(),
        quality: pod.qos.clone(),
    }
}

/// The measurements of the generators, by variants and attempts.
fn parts_of(recordings: &[Recording]) -> Parts {
    let mut parts = Parts::new();
    for recording in recordings {
        let mut attempts: BTreeMap<&str, usize> = BTreeMap::new();
        for part in &recording.rounds {
            let attempt = attempts.entry(&part.variant).or_default();
            let all = parts.entry(part.variant.clone()).or_default();
            if all.len() == *attempt {
                all.push(Vec::new());
            }
            all[*attempt].push(part.clone());
            *attempt += 1;
        }
    }
    parts
}

/// The reason why a variant has no number, if there is one.
fn reason_of(recordings: &[Recording], variant: &str) -> Option<Invalid> {
    // The first generator with a reason decides, because the other reasons follow from it.
    let mut records = recordings.iter().filter_map(|it| it.variant(variant));
    records.find_map(|record| match &record.status {
        VariantStatus::Invalid { kind, reason } if *kind != InvalidKind::NotNeeded => {
            Some(Invalid::new(*kind, reason.clone()))
        }
        _ => None,
    })
}
