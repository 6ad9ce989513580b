//! The load of a round: the generators start, send their parts, and their results are read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::ClusterError;
use cluster::call::Resource;
use cluster::event::last_warning;
use cluster::generators::GENERATORS;
use cluster::kubelet::Readings;
use cluster::rule::explained;
use cluster::state::{Phase, PodState};
use recording::Recording;

use super::super::loss::{self, Loss};
use super::super::waits::{REFUSED_WITHIN, TROUBLED_WITHIN};
use super::super::{result, round_spec};
use super::followed::FollowedResults;
use super::losses::LostNodes;
use super::remedy::Origin;
use super::start::LOOK_CLOSELY;
use super::{LOOK, READ, RoundError, RunningPods, Stage};
use crate::environment::instant;
use crate::pods::generator_job::GeneratorJob;

/// Maximum normal time of a cluster to create the pods of a Job.
const MADE_WITHIN: Duration = Duration::from_secs(3);

/// Time limit for the controller of a Job to report which pods it removed.
const TOLD_WITHIN: Duration = Duration::from_secs(3);
/// Time limit for the last lines of a container that has ended.
const WRITTEN_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for a kubelet to come back that has the log of a container.
const READ_WITHIN: Duration = Duration::from_secs(90);

/// The observation of generators that have not all started.
struct Arrival {
    began: Instant,
    /// Time of the first refusal to create a pod.
    refused_since: Option<Instant>,
    /// Time since when the scheduler has found no node for a pod.
    unplaced_since: Option<Instant>,
    read_at: Option<Instant>,
}

impl Arrival {
    fn new() -> Arrival {
        Arrival {
            began: instant(),
            refused_since: None,
            unplaced_since: None,
            read_at: None,
        }
    }

    /// True if events may be read again.
    fn may_read(&mut self) -> bool {
        let is_due = self.read_at.is_none_or(|at| at.elapsed() >= READ);
        if is_due {
            self.read_at = Some(instant());
        }
        is_due
    }
}

impl Stage<'_> {
    /// Starts the generators of a round, and returns the recording of each.
    ///
    /// # Errors
    /// When one of them does not send its part, or the cluster cannot be reached.
    pub(crate) fn generate(
        &self,
        up: &RunningPods<'_, '_>,
        job: &GeneratorJob,
        readings: &mut Readings,
    ) -> Result<(Vec<Recording>, Vec<PodState>), RoundError> {
        let text =
            serde_json::to_vec(job).map_err(|error| RoundError::Generator(error.to_string()))?;
        round_spec::check_size(text.len()).map_err(RoundError::Generator)?;
        let generators = self.generators_of(up.owner.number());
        up.owner
            .create(Resource::Secrets, generators.secret(&STANDARD.encode(text)))?;
        up.owner.create(Resource::Jobs, generators.job())?;
        let mut results = FollowedResults::new(self.connection());
        let pods = self.watch(up, &generators.object, readings, &mut results)?;
        let mut recordings = Vec::new();
        for pod in &pods {
            recordings.push(match results.take(pod) {
                Some(bytes) => recording_of(pod, bytes)?,
                None => self.result_of(pod)?,
            });
        }
        Ok((recordings, pods))
    }

    /// Waits until all generators have finished, or their results have arrived. Returns their pods, in the order of
    /// their shards.
    fn watch(
        &self,
        up: &RunningPods<'_, '_>,
        job: &str,
        readings: &mut Readings,
        results: &mut FollowedResults<'_>,
    ) -> Result<Vec<PodState>, RoundError> {
        let mut arrival = Arrival::new();
        let mut seen: BTreeMap<u32, PodState> = BTreeMap::new();
        let mut read_at: Option<Instant> = None;
        let mut nodes = LostNodes::default();
        loop {
            let pods = self.pods(&up.owner.selector())?;
            if read_at.is_none_or(|at| at.elapsed() >= READ) {
                nodes.ask(self.connection(), &pods);
                let read = pods.iter().chain(&up.attached);
                self.read_kubelets(read.filter(|pod| !nodes.has_node_of(pod)), readings);
                read_at = Some(instant());
            }
            let lost = Self::taken_system(up, &pods);
            if let Some(lost) = lost.or_else(|| self.lost_with_node(&nodes, &pods)) {
                return Err(RoundError::Lost(lost));
            }
            let now: BTreeMap<u32, PodState> = generators_among(pods);
            // Pods that the deadline of their Job removes were not lost.
            let is_overdue = arrival.began.elapsed() + READ > self.deadline;
            if !is_overdue && let Some(loss) = self.cause_of(loss::losses(&seen, &now), job) {
                return Err(self.of_loss(&loss, &now, job));
            }
            results.look(now.values());
            let is_done = |pod: &PodState| pod.phase == Phase::Succeeded || results.has(pod);
            if now.len() == self.generators as usize && now.values().all(is_done) {
                return Ok(now.into_values().collect());
            }
            if let Some(error) = self.why_not_coming(&mut arrival, &now, job) {
                return Err(error);
            }
            seen = now;
            if arrival.began.elapsed() > self.deadline {
                return Err(RoundError::Generator(self.overdue(&seen)));
            }
            if self.connection().is_stopped() {
                let what = "wait for the generators".to_owned();
                return Err(ClusterError::Stopped { what }.into());
            }
            // During the load, the checks are rare, because they use processor time of the cluster.
            let is_sending = |pod: &PodState| matches!(pod.phase, Phase::Running | Phase::Ready);
            let are_all = seen.len() == self.generators as usize;
            self.connection()
                .pause_for_log(match are_all && seen.values().all(is_sending) {
                    true => LOOK,
                    false => LOOK_CLOSELY,
                });
        }
    }

    /// The reason why a generator will not start. `None` while it may.
    fn why_not_coming(
        &self,
        arrival: &mut Arrival,
        now: &BTreeMap<u32, PodState>,
        job: &str,
    ) -> Option<RoundError> {
        let waited = arrival.began.elapsed();
        let missing = (0..self.generators).find(|index| !now.contains_key(index));
        if let Some(missing) = missing {
            if waited > MADE_WITHIN
                && arrival.may_read()
                && let Some(refusal) = self.refusal_of(job)
            {
                // A quota may count pods of the last round for a moment, and the cluster tries again.
                let since = *arrival.refused_since.get_or_insert_with(instant);
                if since.elapsed() > REFUSED_WITHIN {
                    return Some(RoundError::Generator(self.named(missing, &refusal)));
                }
            }
            let why = "the cluster has created no pod of it";
            return (waited > self.waits.started())
                .then(|| RoundError::Generator(self.named(missing, why)));
        }
        arrival.refused_since = None;
        let unplaced = now.iter().find(|(_, pod)| pod.is_unplaced());
        let Some((index, pod)) = unplaced else {
            arrival.unplaced_since = None;
            return self
                .why_not_started(arrival, now)
                .map(RoundError::Generator);
        };
        let since = *arrival.unplaced_since.get_or_insert_with(instant);
        (since.elapsed() > self.waits.placed()).then(|| {
            let seconds = since.elapsed().as_secs();
            let why = format!(
                "has not been taken by a node after {seconds} s{}",
                why_coming(pod)
            );
            let words = self.named(*index, &format!("{}, {why}", pod.placed()));
            match pod.is_untaken() {
                true => RoundError::Lost(words),
                false => RoundError::Generator(format!(
                    "{words}. If an autoscaler adds nodes, give it time with `--pods-within`{}",
                    self.remedy_for(pod, Origin::Generator, &words)
                )),
            }
        })
    }

    /// The reason why a generator with a node does not start.
    fn why_not_started(
        &self,
        arrival: &mut Arrival,
        now: &BTreeMap<u32, PodState>,
    ) -> Option<String> {
        let waited = arrival.began.elapsed();
        let is_coming = |pod: &PodState| matches!(pod.phase, Phase::Coming(_));
        let (index, pod) = now.iter().find(|(_, pod)| is_coming(pod))?;
        if waited > TROUBLED_WITHIN
            && arrival.may_read()
            && let Some(trouble) = self.trouble_of(pod)
        {
            return Some(self.named(*index, &trouble));
        }
        (waited > self.waits.all()).then(|| {
            let seconds = waited.as_secs();
            let warning = self.warning_about(pod);
            let warning = warning.map_or_else(String::new, |it| format!(". {it}"));
            let why = format!(
                "has not started after {seconds} s{}{warning}",
                why_coming(pod)
            );
            let words = format!("{}, {why}", pod.placed());
            let remedy = self.remedy_for(pod, Origin::Generator, &words);
            self.named(*index, &format!("{words}{remedy}"))
        })
    }

    /// The last refusal to create a pod of a Job, with the rule and the remedy.
    fn refusal_of(&self, job: &str) -> Option<String> {
        let events = self.connection().events_of("Job", job).ok()?;
        let refusal = last_warning(&events, &["FailedCreate"])?;
        Some(format!(
            "the cluster creates no pod of it: {}",
            explained(&refusal.message)
        ))
    }

    /// `generator 2 of 3, WHY`.
    pub(super) fn named(&self, index: u32, why: &str) -> String {
        format!("generator {} of {}, {why}", index + 1, self.generators)
    }

    fn overdue(&self, seen: &BTreeMap<u32, PodState>) -> String {
        let late = seen.iter().find(|(_, pod)| pod.phase != Phase::Succeeded);
        let which = late.map_or_else(
            || "the cluster has not created a pod of it".to_owned(),
            |(index, pod)| self.named(*index, &format!("{}{}", pod.placed(), why_coming(pod))),
        );
        let seconds = self.deadline.as_secs();
        format!("after {seconds} s some generators have not ended: {which}")
    }

    /// The loss that caused the others. The controller of the Job reports which pods it removed itself, some time
    /// after it has removed them.
    fn cause_of(&self, losses: Vec<Loss>, job: &str) -> Option<Loss> {
        let began = instant();
        let mut by_job = BTreeSet::new();
        let may_tell = || began.elapsed() < TOLD_WITHIN && !self.connection().is_stopped();
        while loss::are_alike(&losses) && by_job.is_empty() && may_tell() {
            self.connection().pause(LOOK_CLOSELY);
            by_job = self.removed_by(job);
        }
        loss::cause(losses, &by_job)
    }

    /// The pods that the controller of this Job has removed.
    fn removed_by(&self, job: &str) -> BTreeSet<String> {
        let events = self.connection().events_of("Job", job).unwrap_or_default();
        let removals = events
            .iter()
            .filter(|event| event.reason == "SuccessfulDelete");
        let names = removals.filter_map(|event| event.message.strip_prefix("Deleted pod: "));
        names.map(str::to_owned).collect()
    }

    /// The loss of a generator as the end of the load, with its cause.
    fn of_loss(&self, loss: &Loss, now: &BTreeMap<u32, PodState>, job: &str) -> RoundError {
        let missing = (0..self.generators).find(|index| !now.contains_key(index));
        if loss.ended_by_itself()
            && let Some(missing) = missing
            && let Some(refusal) = self.refusal_of(job)
        {
            return RoundError::Generator(self.named(missing, &refusal));
        }
        let words = self.in_words(loss);
        match loss.is_of_the_cluster() {
            true => RoundError::Lost(words),
            false => RoundError::Generator(words),
        }
    }

    /// The state of a generator, with its output if there is any.
    fn in_words(&self, loss: &Loss) -> String {
        let Loss {
            index, pod, why, ..
        } = loss;
        let log = self.log_of(pod).map(|log| log.last_lines.join("\n"));
        let words = match result::last_words(&log.unwrap_or_default()) {
            words if words.is_empty() => words,
            words => format!(". Its output: {words}"),
        };
        let words = format!("{}, {why}{words}", pod.placed());
        let remedy = self.remedy_for(pod, Origin::Generator, &words);
        self.named(*index, &format!("{words}{remedy}"))
    }

    /// The result of a generator that has ended. Its last lines may arrive a moment after its end, because the pod
    /// can have other containers that still run.
    fn result_of(&self, pod: &PodState) -> Result<Recording, RoundError> {
        let began = instant();
        loop {
            let log = match self.connection().log(&pod.name, pod.container.as_deref()) {
                Ok(log) => log,
                Err(error @ ClusterError::Away { .. }) => {
                    let node = pod.node.as_deref().unwrap_or_default();
                    if let Ok(Some(why)) = self.connection().why_lost(node) {
                        let place = pod.placed();
                        return Err(RoundError::Lost(format!(
                            "{place} was lost with its node before its result was read: {why}"
                        )));
                    }
                    if began.elapsed() >= READ_WITHIN {
                        return Err(error.into());
                    }
                    self.connection().pause(LOOK);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match result::read(&log) {
                Ok(bytes) => return recording_of(pod, bytes),
                Err(unread) if unread.may_arrive() && began.elapsed() < WRITTEN_WITHIN => {
                    tracing::debug!(?unread, "the log of a generator is read again");
                    self.connection().pause(LOOK);
                }
                // The generator has written all of it, so the cluster has lost it.
                Err(unread) => {
                    let words = format!("{}: {}", pod.placed(), unread.words());
                    return Err(RoundError::Lost(words));
                }
            }
        }
    }
}

/// The recording in the result of a generator.
fn recording_of(pod: &PodState, result: Vec<u8>) -> Result<Recording, RoundError> {
    let wrong = |reason: String| RoundError::Generator(format!("{}: {reason}", pod.placed()));
    let text = String::from_utf8(result).map_err(|error| wrong(error.to_string()))?;
    Recording::from_json(&text).map_err(|error| wrong(error.to_string()))
}

/// The reason why a pod is still starting, as the end of a sentence.
fn why_coming(pod: &PodState) -> String {
    match &pod.phase {
        Phase::Coming(why) => format!(", {}", why.trim_end_matches('.')),
        _ => String::new(),
    }
}

/// The generators among pods, by their shards.
fn generators_among(pods: Vec<PodState>) -> BTreeMap<u32, PodState> {
    let generators = pods
        .into_iter()
        .filter(|pod| pod.labels.contains_key(GENERATORS));
    generators
        .filter_map(|pod| Some((pod.index?, pod)))
        .collect()
}
