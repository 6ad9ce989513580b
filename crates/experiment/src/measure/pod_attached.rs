//! Pods that this run has not started: the systems with a `url`, and the labels of their pods.

use cluster::ClusterError;
use cluster::state::{Phase, PodState};
use lab::Attach;

use super::candidate_id::CandidateId;
use crate::pods::stage::Stage;

/// The pods behind the URL of one system of a variant.
pub(super) struct AttachedPods {
    pub(super) id: CandidateId,
    pub(super) system: String,
    selector: String,
    pub(super) pods: Vec<PodState>,
}

/// The pods that run now behind the URLs of these variants, which have positions in the lab.
///
/// # Errors
/// When the cluster cannot be reached, or refuses a selector.
pub(super) fn attached(
    stage: &Stage<'_>,
    lab: &lab::Lab,
    variants: &[(usize, CandidateId)],
) -> Result<Vec<AttachedPods>, ClusterError> {
    let mut all = Vec::new();
    for &(position, id) in variants {
        let systems = lab.all().nth(position).into_iter();
        for setup in systems.flat_map(lab::Variant::systems) {
            let attach = setup.elsewhere().and_then(|url| url.attach.as_ref());
            if let Some(Attach::Pods(selector)) = attach {
                all.push(AttachedPods {
                    id,
                    system: setup.system.clone(),
                    selector: selector.clone(),
                    pods: running(stage, selector)?,
                });
            }
        }
    }
    Ok(all)
}

/// The pods with these labels that are not about to end.
fn running(stage: &Stage<'_>, selector: &str) -> Result<Vec<PodState>, ClusterError> {
    let mut pods = stage.pods(selector)?;
    pods.retain(|pod| pod.phase == Phase::Ready);
    Ok(pods)
}

impl AttachedPods {
    /// The reason why the usage of this system would be wrong before the load. `None` if all is well.
    pub(super) fn missing(&self) -> Option<String> {
        self.pods.is_empty().then(|| {
            format!(
                "no pod with the labels `{}` is ready, but `{}` has them in `attach`. `kubectl get pods --selector '{}'` shows the pods",
                self.selector, self.system, self.selector
            )
        })
    }

    /// The first change of these pods during the load. `None` if the same pods still run.
    ///
    /// # Errors
    /// When the cluster cannot be reached.
    pub(super) fn change(&self, stage: &Stage<'_>) -> Result<Option<String>, ClusterError> {
        Ok(changed(&self.pods, &running(stage, &self.selector)?))
    }
}

/// The first difference between the pods of a system before and after a load.
fn changed(before: &[PodState], now: &[PodState]) -> Option<String> {
    let lost =
        before.iter().find_map(
            |pod| match now.iter().find(|other| other.name == pod.name) {
                None => Some(format!("{} is no longer ready", pod.placed())),
                Some(same) if same.restarts > pod.restarts => {
                    Some(format!("{} was started again", pod.placed()))
                }
                Some(_) => None,
            },
        );
    lost.or_else(|| {
        let is_new = |pod: &&PodState| before.iter().all(|other| other.name != pod.name);
        let new = now.iter().find(is_new)?;
        Some(format!("{} was added during the load", new.placed()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, restarts: u32) -> PodState {
        PodState::of(&json!({
            "metadata": {"name": name},
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "containerStatuses": [{"restartCount": restarts}]}
        }))
    }

    #[test]
    fn the_same_pods_are_no_change() {
        assert_eq!(changed(&[pod("a", 1)], &[pod("a", 1)]), None);
    }

    #[test]
    fn a_lost_a_restarted_and_a_new_pod_are_changes() {
        let before = [pod("a", 0), pod("b", 0)];
        for (now, said) in [
            (vec![pod("a", 0)], "no longer ready"),
            (vec![pod("a", 0), pod("b", 1)], "was started again"),
            (
                vec![pod("a", 0), pod("b", 0), pod("c", 0)],
                "was added during the load",
            ),
        ] {
            let change = changed(&before, &now).expect("a change");
            assert!(change.contains(said), "{change}");
        }
    }
}
