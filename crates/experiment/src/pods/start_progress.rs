//! The start of a round's systems. Each system starts when its dependencies are ready.

use std::time::{Duration, Instant};

use cluster::ClusterError;
use cluster::state::{Phase, PodState};
use model::InvalidKind;

use super::waits::{PodWaits, REFUSED_WITHIN, SEEN_WITHIN, TROUBLED_WITHIN};
use super::wanted::Wanted;
use crate::environment::instant;
use crate::invalid::{Invalid, PodLog};

/// Maximum normal time of a cluster to create the pods of a workload. Only afterwards does `weigh` search for
/// the cause of missing pods.
const MADE_WITHIN: Duration = Duration::from_secs(3);

/// Pause between two readings of warnings.
const READ: Duration = Duration::from_secs(3);

/// The progress of starting systems.
pub(super) struct StartProgress {
    states: Vec<State>,
    waits: PodWaits,
}

/// The origin of a failed start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The system itself.
    Own,
    /// The cluster has no place for it, or a rule does not allow it.
    Outside,
    /// The cluster took a pod away. Another attempt may succeed.
    Lost,
}

/// A system that did not start.
pub(crate) struct StartFailure {
    /// The position of its variant. `None` for a system that all variants share.
    pub(crate) variant: Option<usize>,
    pub(crate) cause: Cause,
    pub(crate) invalid: Invalid,
}

enum State {
    /// Waits until its dependencies are ready.
    Waits,
    /// Not ready yet.
    Started(Times),
    Ready,
    Failed {
        cause: Cause,
        reason: String,
        pod_log: Option<PodLog>,
    },
}

/// The times of a start.
struct Times {
    since: Instant,
    /// Time since when the scheduler has found no node for a pod.
    unplaced_since: Option<Instant>,
    /// Time since when all pods run.
    running_since: Option<Instant>,
    /// Time of the first refusal to create a pod.
    refused_since: Option<Instant>,
    /// Time of the last reading of warnings.
    read_at: Instant,
}

impl StartProgress {
    pub(super) fn of(wanted: &[Wanted<'_>], waits: PodWaits) -> StartProgress {
        StartProgress {
            states: wanted.iter().map(|_| State::Waits).collect(),
            waits,
        }
    }

    /// True if all its dependencies are ready, and it has not been started.
    pub(super) fn is_due(&self, index: usize, wanted: &[Wanted<'_>]) -> bool {
        let own = &wanted[index];
        let is_ready = |system: &String| {
            wanted.iter().zip(&self.states).any(|(other, state)| {
                other.setup.system == *system
                    && (other.variant == own.variant || other.variant.is_none())
                    && matches!(state, State::Ready)
            })
        };
        matches!(self.states[index], State::Waits) && own.setup.after.iter().all(is_ready)
    }

    pub(super) fn is_watched(&self, index: usize) -> bool {
        matches!(self.states[index], State::Started(_) | State::Ready)
    }

    /// True if it was started longer ago than a cluster needs to create pods.
    pub(super) fn waits_for_pods(&self, index: usize) -> bool {
        matches!(&self.states[index], State::Started(times) if times.since.elapsed() > MADE_WITHIN)
    }

    pub(super) fn has_started(&mut self, index: usize) {
        let now = instant();
        self.states[index] = State::Started(Times {
            since: now,
            unplaced_since: None,
            running_since: None,
            refused_since: None,
            read_at: now,
        });
    }

    pub(super) fn fail(&mut self, index: usize, cause: Cause, reason: String) {
        self.states[index] = State::Failed {
            cause,
            reason,
            pod_log: None,
        };
    }

    /// Fails if the cluster has refused the pods of the system for some time. A quota may count pods of the last round
    /// for a moment, and the cluster tries again. `why` is the current refusal.
    pub(super) fn refuse_pods(&mut self, index: usize, why: Option<String>) {
        let State::Started(times) = &mut self.states[index] else {
            return;
        };
        let since = why
            .as_ref()
            .map(|_| times.refused_since.unwrap_or_else(instant));
        times.refused_since = since;
        let is_over = since.is_some_and(|since| since.elapsed() > REFUSED_WITHIN);
        if let Some(why) = why.filter(|_| is_over) {
            self.fail(index, Cause::Outside, why);
        }
    }

    /// Fails because the cluster does not take an object of the system.
    pub(super) fn refuse(&mut self, index: usize, error: &ClusterError) {
        let cause = match error {
            ClusterError::Ruled { .. } => Cause::Outside,
            _ => Cause::Own,
        };
        self.fail(index, cause, error.to_string());
    }

    /// Adds the end of the log of the pod that is the reason of a failure, or the last warning about it if it has
    /// no log.
    pub(super) fn add_words(&mut self, index: usize, log: Option<PodLog>, warning: Option<String>) {
        let State::Failed {
            pod_log, reason, ..
        } = &mut self.states[index]
        else {
            return;
        };
        let is_silent = log.as_ref().is_none_or(|log| log.last_lines.is_empty());
        if let Some(warning) = warning.filter(|it| is_silent && !reason.contains(it.as_str())) {
            *reason = format!(
                "{}. The cluster reports: {warning}",
                reason.trim_end_matches('.')
            );
        }
        *pod_log = log;
    }

    /// Adds the remedy for a failure, which `remedy` knows from the reason and the log.
    pub(super) fn add_remedy(&mut self, index: usize, remedy: impl FnOnce(&str) -> String) {
        if let State::Failed {
            pod_log, reason, ..
        } = &mut self.states[index]
        {
            let log = pod_log.iter().flat_map(|log| &log.last_lines);
            let lines: Vec<&str> = [&**reason]
                .into_iter()
                .chain(log.map(String::as_str))
                .collect();
            let remedy = remedy(&lines.join("\n"));
            reason.push_str(&remedy);
        }
    }

    /// The pod with warnings to read: it has a node and has not started for some time.
    pub(super) fn due_for_warning<'p>(
        &mut self,
        index: usize,
        pods: &[&'p PodState],
    ) -> Option<&'p PodState> {
        let State::Started(times) = &mut self.states[index] else {
            return None;
        };
        let is_coming =
            |pod: &&&PodState| matches!(pod.phase, Phase::Coming(_)) && !pod.is_unplaced();
        let is_due = times.since.elapsed() > TROUBLED_WITHIN && times.read_at.elapsed() > READ;
        let pod = pods.iter().find(is_coming).filter(|_| is_due)?;
        times.read_at = instant();
        Some(pod)
    }

    /// Updates the state of a system from its pods. It is ready if `count` pods are ready. Returns the pod that is
    /// the reason of a new failure.
    pub(super) fn look<'p>(
        &mut self,
        index: usize,
        wanted: &Wanted<'_>,
        count: usize,
        pods: &[&'p PodState],
    ) -> Option<&'p PodState> {
        let failed = pods.iter().find_map(|pod| match &pod.phase {
            Phase::Failed(why) => Some((*pod, Cause::Own, format!("{}: {why}", pod.placed()))),
            Phase::Lost(why) => Some((*pod, Cause::Lost, format!("{}: {why}", pod.placed()))),
            Phase::Succeeded => Some((*pod, Cause::Own, format!("{} has ended", pod.placed()))),
            _ => None,
        });
        if let Some((pod, cause, why)) = failed {
            self.fail(index, cause, why);
            return Some(pod);
        }
        let ready = pods.iter().filter(|pod| pod.phase == Phase::Ready).count();
        let State::Started(times) = &mut self.states[index] else {
            return None;
        };
        if ready >= count {
            self.states[index] = State::Ready;
            return None;
        }
        let late = times.late(wanted.setup.ready.within, self.waits, count, pods)?;
        let seconds = times.since.elapsed().as_secs();
        let why = late.why(pods);
        let pod = late.pod;
        self.fail(
            index,
            late.cause,
            format!("{ready} of {count} ready after {seconds} s. {why}"),
        );
        pod
    }

    /// True if no state can change any more. After a failure, waiting systems no longer start.
    pub(super) fn is_over(&self) -> bool {
        let is_on_its_way = |state: &State| matches!(state, State::Started(_));
        let has_failed = |state: &State| matches!(state, State::Failed { .. });
        let waits = |state: &State| matches!(state, State::Waits);
        !self.states.iter().any(is_on_its_way)
            && (self.states.iter().any(has_failed) || !self.states.iter().any(waits))
    }

    pub(super) fn failed(&self, wanted: &[Wanted<'_>]) -> Vec<StartFailure> {
        let each = wanted.iter().zip(&self.states);
        let failed = each.filter_map(|(one, state)| {
            let State::Failed {
                cause,
                reason,
                pod_log,
            } = state
            else {
                return None;
            };
            let reason = format!("`{}` did not start: {reason}", one.setup.system);
            let invalid = Invalid {
                pod_log: pod_log.clone(),
                ..Invalid::new(InvalidKind::NotReady, reason)
            };
            Some(StartFailure {
                variant: one.variant,
                cause: *cause,
                invalid,
            })
        });
        failed.collect()
    }
}

/// A system that is not ready in time.
struct Late<'p> {
    cause: Cause,
    /// The pod that is late. `None` if it does not exist.
    pod: Option<&'p PodState>,
}

impl Late<'_> {
    fn why(&self, pods: &[&PodState]) -> String {
        let Some(pod) = self.pod else {
            return match pods.is_empty() {
                true => "The cluster has not created a pod of it".to_owned(),
                false => "The cluster has not created all pods of it".to_owned(),
            };
        };
        let placed = pod.placed();
        match &pod.phase {
            Phase::Coming(why) if pod.is_unplaced() && !pod.is_untaken() => format!(
                "{placed}: {}. If an autoscaler adds nodes, give it time with `--pods-within`",
                why.trim_end_matches('.')
            ),
            Phase::Coming(why) => format!("{placed}: {why}"),
            Phase::Leaving => format!("{placed} is being removed"),
            _ => format!("{placed} runs but is not ready"),
        }
    }
}

impl Times {
    /// The pod that is late, if the time of its current state is over. `within` is the time limit of the system
    /// itself.
    fn late<'p>(
        &mut self,
        within: Duration,
        waits: PodWaits,
        count: usize,
        pods: &[&'p PodState],
    ) -> Option<Late<'p>> {
        let is_coming = |pod: &PodState| matches!(pod.phase, Phase::Coming(_));
        let unplaced = pods.iter().find(|pod| pod.is_unplaced());
        self.unplaced_since = unplaced.map(|_| self.unplaced_since.take().unwrap_or_else(instant));
        let all_run = pods.len() >= count && !pods.iter().any(|pod| is_coming(pod));
        self.running_since = all_run.then(|| self.running_since.take().unwrap_or_else(instant));
        let is_over = |since: Option<Instant>, limit: Duration| {
            since.is_some_and(|since| since.elapsed() > limit)
        };
        if is_over(self.unplaced_since, waits.placed()) {
            let pod = unplaced.copied();
            let cause = match pod.is_some_and(PodState::is_untaken) {
                true => Cause::Lost,
                false => Cause::Outside,
            };
            return Some(Late { cause, pod });
        }
        if is_over(self.running_since, within + SEEN_WITHIN) {
            let not_ready = pods.iter().find(|pod| pod.phase != Phase::Ready);
            let cause = Cause::Own;
            let pod = not_ready.copied();
            return Some(Late { cause, pod });
        }
        if is_over(Some(self.since), waits.all().max(waits.started() + within)) {
            let pod = pods.iter().find(|pod| is_coming(pod)).copied();
            return Some(Late {
                cause: Cause::Outside,
                pod,
            });
        }
        None
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
            container: None,
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
        let mut coming = StartProgress::of(&wanted, PodWaits::default());
        assert!(coming.is_due(0, &wanted) && !coming.is_due(1, &wanted));
        coming.has_started(0);
        let (running, ready) = (pod(Phase::Running), pod(Phase::Ready));
        coming.look(0, &wanted[0], 1, &[&running]);
        assert!(!coming.is_due(1, &wanted) && !coming.is_over());
        coming.look(0, &wanted[0], 1, &[&ready]);
        assert!(coming.is_due(1, &wanted));
        coming.has_started(1);
        let failed = pod(Phase::Failed("ended with exit code 3".to_owned()));
        let named = coming.look(1, &wanted[1], 1, &[&failed]);
        assert_eq!(named.map(|pod| &*pod.name), Some("p"));
        assert!(coming.is_over());
        let log = PodLog {
            pod: "p".to_owned(),
            last_lines: vec!["no database".to_owned()],
        };
        coming.add_words(1, Some(log), Some("BackOff: again".to_owned()));
        let failed = coming.failed(&wanted);
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].cause, Cause::Own);
        assert_eq!(
            failed[0].invalid.reason,
            "`front` did not start: pod `p` on node `n`: ended with exit code 3"
        );
        let note = failed[0].invalid.note("a", None);
        assert!(
            note.ends_with("The end of the log of pod `p`:\n    no database"),
            "{note}"
        );
    }
}
