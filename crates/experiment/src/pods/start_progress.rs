//! The start of a round's systems. Each system starts when its dependencies are ready.

use std::time::{Duration, Instant};

use cluster::state::{Phase, PodState};
use model::InvalidKind;

use super::wanted::Wanted;
use crate::environment::instant;
use crate::invalid::{Invalid, PodLog};

/// Time limit of a pod besides its readiness: scheduling and image pull.
pub(super) const PLACED_WITHIN: Duration = Duration::from_secs(90);

/// Maximum normal time of a cluster to create the pods of a workload. Only afterwards does `weigh` search for
/// the cause of missing pods.
const MADE_WITHIN: Duration = Duration::from_secs(3);

/// The progress of starting systems.
pub(super) struct StartProgress(Vec<State>);

enum State {
    /// Waits until its dependencies are ready.
    Waits,
    /// Started at this time, and not ready yet.
    Started(Instant),
    Ready,
    Failed {
        reason: String,
        pod_log: Option<PodLog>,
    },
}

impl StartProgress {
    pub(super) fn of(wanted: &[Wanted<'_>]) -> StartProgress {
        StartProgress(wanted.iter().map(|_| State::Waits).collect())
    }

    /// True if all its dependencies are ready, and it has not been started.
    pub(super) fn is_due(&self, index: usize, wanted: &[Wanted<'_>]) -> bool {
        let own = &wanted[index];
        let is_ready = |system: &String| {
            wanted.iter().zip(&self.0).any(|(other, state)| {
                other.setup.system == *system
                    && (other.variant == own.variant || other.variant.is_none())
                    && matches!(state, State::Ready)
            })
        };
        matches!(self.0[index], State::Waits) && own.setup.after.iter().all(is_ready)
    }

    pub(super) fn is_watched(&self, index: usize) -> bool {
        matches!(self.0[index], State::Started(_) | State::Ready)
    }

    /// True if it was started longer ago than a cluster needs to create pods.
    pub(super) fn waits_for_pods(&self, index: usize) -> bool {
        matches!(&self.0[index], State::Started(since) if since.elapsed() > MADE_WITHIN)
    }

    pub(super) fn has_started(&mut self, index: usize) {
        self.0[index] = State::Started(instant());
    }

    pub(super) fn fail(&mut self, index: usize, reason: String) {
        self.0[index] = State::Failed {
            reason,
            pod_log: None,
        };
    }

    /// Adds the end of the log of the pod that is the reason of a failure.
    pub(super) fn add_log(&mut self, index: usize, log: PodLog) {
        if let State::Failed { pod_log, .. } = &mut self.0[index] {
            *pod_log = Some(log);
        }
    }

    /// Updates the state of a system from its pods. It is ready if `count` pods are ready. Returns the name of
    /// the pod that is the reason of a new failure, if the pod has started and so has a log.
    pub(super) fn look(
        &mut self,
        index: usize,
        wanted: &Wanted<'_>,
        count: usize,
        pods: &[&PodState],
    ) -> Option<String> {
        let failed = pods.iter().find_map(|pod| match &pod.phase {
            Phase::Failed(why) => Some((pod, format!("{}: {why}", pod.placed()))),
            Phase::Succeeded => Some((pod, format!("{} has ended", pod.placed()))),
            _ => None,
        });
        if let Some((pod, why)) = failed {
            self.fail(index, why);
            return Some(pod.name.clone());
        }
        let ready = pods.iter().filter(|pod| pod.phase == Phase::Ready).count();
        let since = match &self.0[index] {
            State::Started(since) => *since,
            _ => return None,
        };
        if ready >= count {
            self.0[index] = State::Ready;
            return None;
        }
        if since.elapsed() > wanted.setup.ready.within + PLACED_WITHIN {
            let why = pods.iter().find_map(|pod| match &pod.phase {
                Phase::Coming(why) => Some(format!("{}: {why}", pod.placed())),
                Phase::Running => Some(format!("{} runs but is not ready", pod.placed())),
                _ => None,
            });
            let why = why.unwrap_or_else(|| "the cluster has not created a pod of it".to_owned());
            let seconds = since.elapsed().as_secs();
            self.fail(
                index,
                format!("{ready} of {count} ready after {seconds} s. {why}"),
            );
            let running = pods.iter().find(|pod| pod.phase == Phase::Running);
            return running.map(|pod| pod.name.clone());
        }
        None
    }

    /// True if no state can change any more. After a failure, waiting systems no longer start.
    pub(super) fn is_over(&self) -> bool {
        let is_on_its_way = |state: &State| matches!(state, State::Started(_));
        let has_failed = |state: &State| matches!(state, State::Failed { .. });
        let waits = |state: &State| matches!(state, State::Waits);
        !self.0.iter().any(is_on_its_way)
            && (self.0.iter().any(has_failed) || !self.0.iter().any(waits))
    }

    pub(super) fn failed(&self, wanted: &[Wanted<'_>]) -> Vec<(Option<usize>, Invalid)> {
        let each = wanted.iter().zip(&self.0);
        let failed = each.filter_map(|(one, state)| {
            let State::Failed { reason, pod_log } = state else {
                return None;
            };
            let reason = format!("`{}` did not start: {reason}", one.setup.system);
            let invalid = Invalid {
                pod_log: pod_log.clone(),
                ..Invalid::new(InvalidKind::NotReady, reason)
            };
            Some((one.variant, invalid))
        });
        failed.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::files::Unwritten;

    const LAB: &str = "question: Why?\nload: {rate: 10/s, duration: 1s}\ntarget: front\nsystems:\n  \
        front: {image: 'a:1', port: 80, env: {BACK: '{{back.url}}'}}\n  back: {image: 'b:1', port: 80}\n\
        baseline: {name: a}\nvariants: [{name: b}]\nexpect: {status: 200}\n";

    fn pod(phase: Phase) -> PodState {
        PodState {
            name: "p".to_owned(),
            node: Some("n".to_owned()),
            ip: None,
            labels: BTreeMap::new(),
            index: None,
            phase,
            restarts: 0,
            image: None,
            qos: None,
            deleted_at: None,
        }
    }

    #[test]
    fn a_system_starts_when_what_it_needs_is_ready_and_not_when_that_has_failed() {
        let files = Unwritten(vec![(PathBuf::from("lab.yaml"), LAB.as_bytes().to_vec())]);
        let lab = lab::parse(Path::new("lab.yaml"), &files)
            .unwrap_or_else(|mistakes| panic!("{}", mistakes.render(false)));
        let setups = lab.baseline.systems();
        let wanted: Vec<Wanted<'_>> = setups
            .iter()
            .map(|setup| Wanted {
                variant: Some(0),
                setup,
            })
            .collect();
        let mut coming = StartProgress::of(&wanted);
        assert!(coming.is_due(0, &wanted) && !coming.is_due(1, &wanted));
        coming.has_started(0);
        coming.look(0, &wanted[0], 1, &[&pod(Phase::Running)]);
        assert!(!coming.is_due(1, &wanted) && !coming.is_over());
        coming.look(0, &wanted[0], 1, &[&pod(Phase::Ready)]);
        assert!(coming.is_due(1, &wanted));
        coming.has_started(1);
        let failed = pod(Phase::Failed("ended with exit code 3".to_owned()));
        let named = coming.look(1, &wanted[1], 1, &[&failed]);
        assert_eq!(named.as_deref(), Some("p"));
        assert!(coming.is_over());
        coming.add_log(
            1,
            PodLog {
                pod: "p".to_owned(),
                last_lines: vec!["no database".to_owned()],
            },
        );
        let failed = coming.failed(&wanted);
        assert_eq!(failed.len(), 1);
        assert_eq!(
            failed[0].1.reason,
            "`front` did not start: pod `p` on node `n`: ended with exit code 3"
        );
        let note = failed[0].1.note("a", None);
        assert!(
            note.ends_with("The end of the log of pod `p`:\n    no database"),
            "{note}"
        );
    }
}
