//! Pods of a round that the cluster took away, or that are lost with their node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cluster::event::last_warning;
use cluster::state::{Phase, PodState};
use cluster::{ApiConnection, ClusterError};

use super::{RunningPods, Stage};
use crate::environment::instant;

/// Time for a kubelet to come back after the cluster has counted its node as lost.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// Time limit for the cluster to decide if the node of a silent kubelet is lost. It takes about 50 s.
const DECIDED_WITHIN: Duration = Duration::from_secs(75);
/// Pause between two questions about such a node.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The nodes that the cluster counts as lost.
#[derive(Default)]
pub(super) struct LostNodes {
    /// With the time of the first such answer, and the reason.
    lost: BTreeMap<String, (Instant, String)>,
    /// True if `weigh` has no permission to read nodes.
    are_unreadable: bool,
}

impl LostNodes {
    /// Asks the cluster about the nodes of these pods.
    pub(super) fn ask(&mut self, connection: &ApiConnection, pods: &[PodState]) {
        let nodes: BTreeSet<&String> = pods.iter().filter_map(|pod| pod.node.as_ref()).collect();
        for node in nodes {
            if self.are_unreadable {
                break;
            }
            match connection.why_lost(node) {
                Ok(why) => self.know(node, why),
                Err(ClusterError::Forbidden { .. }) => self.are_unreadable = true,
                Err(error) => tracing::debug!(node, %error, "the node was not read"),
            }
        }
        if self.are_unreadable {
            self.ask_by_events(connection, pods);
        }
    }

    /// Without permission for nodes, the pod has the answer: it is not ready any more, and an event names the cause.
    fn ask_by_events(&mut self, connection: &ApiConnection, pods: &[PodState]) {
        for pod in pods {
            let Some(node) = &pod.node else { continue };
            match &pod.phase {
                Phase::Ready => self.know(node, None),
                Phase::Running => {
                    let events = connection.events_of("Pod", &pod.name).unwrap_or_default();
                    if let Some(event) = last_warning(&events, &["NodeNotReady"]) {
                        self.know(node, Some(event.message.clone()));
                    }
                }
                _ => {}
            }
        }
    }

    fn know(&mut self, node: &str, why_lost: Option<String>) {
        match why_lost {
            Some(why) => {
                let first = self.lost.entry(node.to_owned());
                first.or_insert_with(|| (instant(), why));
            }
            None => {
                self.lost.remove(node);
            }
        }
    }

    /// True if the cluster counts the node of this pod as lost, even if it may come back.
    pub(super) fn has_node_of(&self, pod: &PodState) -> bool {
        let node = pod.node.as_ref();
        node.is_some_and(|node| self.lost.contains_key(node))
    }

    /// The reason why a pod is lost with its node, if the node has been lost for this time.
    fn why(&self, pod: &PodState, back_within: Duration) -> Option<String> {
        let (since, why) = self.lost.get(pod.node.as_ref()?)?;
        let is_over = pod.phase == Phase::Succeeded || since.elapsed() < back_within;
        (!is_over).then(|| format!("was lost with its node: {why}"))
    }
}

impl Stage<'_> {
    /// The first pod that is lost with its node, in words. A generator has its number.
    pub(super) fn lost_with_node<'p>(
        &self,
        nodes: &LostNodes,
        pods: impl IntoIterator<Item = &'p PodState>,
    ) -> Option<String> {
        self.first_lost(nodes, pods, BACK_WITHIN)
    }

    fn first_lost<'p>(
        &self,
        nodes: &LostNodes,
        pods: impl IntoIterator<Item = &'p PodState>,
        back_within: Duration,
    ) -> Option<String> {
        let pods = pods.into_iter();
        let mut lost = pods.filter_map(|pod| Some((pod, nodes.why(pod, back_within)?)));
        lost.next().map(|(pod, why)| match pod.index {
            Some(index) => self.named(index, &format!("{}, {why}", pod.placed())),
            None => format!("{}: {why}", pod.placed()),
        })
    }

    /// The first system with a pod that the cluster took away during the load, in words.
    pub(super) fn taken_system(up: &RunningPods<'_, '_>, now: &[PodState]) -> Option<String> {
        up.pods.iter().find_map(|pod| {
            let same = now.iter().find(|other| other.name == pod.name);
            let end = end_of(pod, same)?;
            end.is_lost.then_some(end.why)
        })
    }

    /// Looks for pods that are lost with their node after a load. If a kubelet is silent, it waits until the
    /// kubelet responds, or until the cluster counts the node as lost: a load may end before the cluster notices the loss.
    pub(crate) fn lost_after_load(&self, pods: &[PodState]) -> Option<String> {
        let began = instant();
        let mut nodes = LostNodes::default();
        loop {
            nodes.ask(self.connection(), pods);
            if let Some(lost) = self.first_lost(&nodes, pods, Duration::ZERO) {
                return Some(lost);
            }
            let is_over = began.elapsed() >= DECIDED_WITHIN || self.connection().is_stopped();
            if is_over || !self.has_silent_kubelet(pods) {
                return None;
            }
            self.connection().pause(ASK_AGAIN);
        }
    }

    /// True if the kubelet of one of these pods does not respond.
    fn has_silent_kubelet(&self, pods: &[PodState]) -> bool {
        let working = pods.iter().filter(|pod| pod.phase != Phase::Succeeded);
        let nodes: BTreeSet<&String> = working.filter_map(|pod| pod.node.as_ref()).collect();
        let is_silent = |node: &&String| {
            let answer = self.connection().kubelet_summary(node);
            matches!(answer, Err(ClusterError::Away { .. }))
        };
        self.reads_kubelets && nodes.iter().any(is_silent)
    }
}

/// The end of a pod of a system during a load.
pub(crate) struct PodEnd<'p> {
    /// The last state of the pod.
    pub(crate) pod: &'p PodState,
    /// True if the cluster took it away.
    pub(crate) is_lost: bool,
    pub(crate) why: String,
}

/// The end of a system's pod, if it ended. `now` is `None` for a pod that does not exist any more.
pub(crate) fn end_of<'p>(before: &'p PodState, now: Option<&'p PodState>) -> Option<PodEnd<'p>> {
    let Some(pod) = now else {
        return Some(PodEnd {
            pod: before,
            is_lost: true,
            why: format!("{} was removed", before.placed()),
        });
    };
    let placed = pod.placed();
    let (is_lost, why) = match &pod.phase {
        _ if pod.restarts > before.restarts => (false, format!("{placed} was started again")),
        Phase::Failed(why) => (false, format!("{placed}: {why}")),
        Phase::Lost(why) => (true, format!("{placed}: {why}")),
        Phase::Leaving => (true, format!("{placed} is being removed")),
        Phase::Succeeded => (false, format!("{placed} has ended")),
        Phase::Coming(_) | Phase::Running | Phase::Ready => return None,
    };
    Some(PodEnd { pod, is_lost, why })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str, node: &str) -> PodState {
        PodState::of(&json!({
            "metadata": {"name": "p"},
            "spec": {"nodeName": node},
            "status": {"phase": phase},
        }))
    }

    #[test]
    fn a_node_that_comes_back_in_time_has_lost_no_pod() {
        let mut nodes = LostNodes::default();
        let silent = || Some("Kubelet stopped posting node status".to_owned());
        nodes.know("n2", silent());
        let pod_there = pod("Running", "n2");
        assert_eq!(nodes.why(&pod_there, BACK_WITHIN), None);
        let lost = "was lost with its node: Kubelet stopped posting node status";
        assert_eq!(nodes.why(&pod_there, Duration::ZERO).as_deref(), Some(lost));
        // Its result is in the cluster, and another node has not been lost.
        for fine in [pod("Succeeded", "n2"), pod("Running", "n1")] {
            assert_eq!(nodes.why(&fine, Duration::ZERO), None);
        }
        nodes.know("n2", None);
        assert_eq!(nodes.why(&pod_there, Duration::ZERO), None);
    }

    #[test]
    fn only_a_pod_that_the_cluster_took_is_lost_and_one_that_ended_is_not() {
        let before = pod("Running", "n1");
        let taken = end_of(&before, None).expect("it is gone");
        assert!(taken.is_lost && taken.why == "pod `p` on node `n1` was removed");
        let failed = pod("Failed", "n1");
        let ended = end_of(&before, Some(&failed)).expect("it ended");
        assert!(!ended.is_lost, "{}", ended.why);
        assert!(end_of(&before, Some(&before)).is_none());
    }
}
