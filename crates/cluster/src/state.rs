//! The state of a pod, from the objects of the API.

use serde_json::Value;

use crate::connection::name_of;

/// The last observed state of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodState {
    /// Name of the pod.
    pub name: String,
    /// The node of the pod. `None` before it is scheduled.
    pub node: Option<String>,
    /// The IP address of the pod. `None` before it has one.
    pub ip: Option<String>,
    /// Labels of the pod.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Completion index of the pod in an Indexed Job.
    pub index: Option<u32>,
    /// Current phase of the pod.
    pub phase: Phase,
    /// Total restarts of its containers.
    pub restarts: u64,
    /// The digest of the image of its first container.
    pub image: Option<String>,
    /// The quality-of-service class: `Guaranteed`, `Burstable` or `BestEffort`.
    pub qos: Option<String>,
    /// Time of the request to delete it, in whole seconds. `None` if nobody asked.
    pub deleted_at: Option<jiff::Timestamp>,
}

/// The phase of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is starting, with the reason that it does not run yet.
    Coming(String),
    /// The containers run, but are not ready yet.
    Running,
    /// It is ready.
    Ready,
    /// It completed its work.
    Succeeded,
    /// It failed, with the reason.
    Failed(String),
    /// It is being removed.
    Leaving,
}

/// Reasons of a waiting container that will never start.
const HOPELESS: [&str; 8] = [
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
    "ImageInspectError",
];

impl PodState {
    /// Returns the state from the JSON of a pod.
    #[must_use]
    pub fn of(pod: &Value) -> PodState {
        let labels = pod["metadata"]["labels"].as_object();
        let labels = labels.into_iter().flatten();
        let index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
            .as_str()
            .and_then(|text| text.parse().ok());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        PodState {
            name: name_of(pod).to_owned(),
            node: text(&pod["spec"]["nodeName"]),
            ip: text(&pod["status"]["podIP"]),
            labels: labels
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
            index,
            phase: phase(pod),
            restarts: restarts(pod),
            image: text(&pod["status"]["containerStatuses"][0]["imageID"]),
            qos: text(&pod["status"]["qosClass"]),
            deleted_at: deleted_at(&pod["metadata"]),
        }
    }

    /// Returns `pod x on node y`.
    #[must_use]
    pub fn placed(&self) -> String {
        match &self.node {
            Some(node) => format!("pod `{}` on node `{node}`", self.name),
            None => format!("pod `{}` (not on a node yet)", self.name),
        }
    }
}

/// Returns the reason that a Deployment cannot create pods, if it reports one: a quota, or a rule of the
/// namespace.
#[must_use]
pub fn replica_failure(deployment: &Value) -> Option<String> {
    let conditions = deployment["status"]["conditions"].as_array()?;
    let failure = conditions
        .iter()
        .find(|it| it["type"] == "ReplicaFailure" && it["status"] == "True")?;
    let message = failure["message"].as_str().unwrap_or("no reason given");
    Some(format!(
        "`{}` cannot create a pod: {message}",
        name_of(deployment)
    ))
}

/// The API states the end of the grace period. A pod with a longer period has a later one.
fn deleted_at(metadata: &Value) -> Option<jiff::Timestamp> {
    let ends: jiff::Timestamp = metadata["deletionTimestamp"].as_str()?.parse().ok()?;
    let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    ends.checked_sub(jiff::SignedDuration::from_secs(grace))
        .ok()
}

fn restarts(pod: &Value) -> u64 {
    let containers = pod["status"]["containerStatuses"].as_array();
    let counts = containers.into_iter().flatten();
    counts.filter_map(|it| it["restartCount"].as_u64()).sum()
}

fn phase(pod: &Value) -> Phase {
    let status = &pod["status"];
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match status["phase"].as_str().unwrap_or("Pending") {
        "Succeeded" => return Phase::Succeeded,
        // Checked before removal, because an evicted pod may be both.
        "Failed" => return Phase::Failed(why_failed(pod)),
        _ => {}
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        // Draining a node evicts its pods. The API reports that before they have ended.
        return disrupted(status).map_or(Phase::Leaving, Phase::Failed);
    }
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    for container in containers() {
        let waiting = &container["state"]["waiting"];
        let reason = said(&waiting["reason"]);
        if HOPELESS.contains(&reason.as_str()) {
            let message = said(&waiting["message"]);
            let last = ended(&container["lastState"]["terminated"]);
            let last = last.map_or_else(String::new, |last| format!(". It {last}"));
            let message = match message.is_empty() {
                true => String::new(),
                false => format!(": {message}"),
            };
            return Phase::Failed(format!("{reason}{message}{last}"));
        }
    }
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    let holds = |name: &str| conditions().any(|it| it["type"] == name && it["status"] == "True");
    if holds("Ready") {
        return Phase::Ready;
    }
    if containers().any(|it| it["state"]["running"].is_object()) {
        return Phase::Running;
    }
    let unplaced = conditions().find(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    let waiting = containers().find_map(|it| it["state"]["waiting"]["reason"].as_str());
    Phase::Coming(match (unplaced, waiting) {
        (Some(condition), _) => format!(
            "no node accepts it: {}",
            condition["message"].as_str().unwrap_or("no reason given")
        ),
        (None, Some(waiting)) => waiting.to_owned(),
        (None, None) => "not started".to_owned(),
    })
}

fn why_failed(pod: &Value) -> String {
    let status = &pod["status"];
    let reason = status["reason"].as_str().unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default();
    if !reason.is_empty() {
        let reason = match reason {
            "Evicted" => "was evicted",
            "DeadlineExceeded" => "reached its deadline",
            "NodeLost" => "was lost with its node",
            other => other,
        };
        return match message.is_empty() {
            true => reason.to_owned(),
            false => format!("{reason}: {message}"),
        };
    }
    if let Some(why) = disrupted(status) {
        return why;
    }
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let mut ends = containers.filter_map(|it| ended(&it["state"]["terminated"]));
    ends.next().unwrap_or_else(|| "failed".to_owned())
}

/// Returns a text such as `was evicted: Eviction API: evicting` for a pod that the cluster removed in favor
/// of other pods.
fn disrupted(status: &Value) -> Option<String> {
    let conditions = status["conditions"].as_array()?;
    let condition = conditions
        .iter()
        .find(|it| it["type"] == "DisruptionTarget" && it["status"] == "True")?;
    let what = match condition["reason"].as_str() {
        Some("EvictionByEvictionAPI") => "was evicted",
        _ => "was disrupted",
    };
    let message = condition["message"].as_str().unwrap_or("no reason given");
    Some(format!("{what}: {message}"))
}

/// Returns a text such as `ended with exit code 7` or `was killed for memory`.
fn ended(terminated: &Value) -> Option<String> {
    let code = terminated["exitCode"].as_i64()?;
    let reason = terminated["reason"].as_str().unwrap_or_default();
    Some(match (reason, code) {
        ("OOMKilled", _) => "was killed because it used more memory than its limit".to_owned(),
        (_, 137) => "was killed (exit code 137)".to_owned(),
        (_, 143) => "was asked to end (exit code 143)".to_owned(),
        (_, code) => format!("ended with exit code {code}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn phase_of(status: &Value) -> Phase {
        PodState::of(&json!({"metadata": {"name": "p"}, "status": status})).phase
    }

    #[test]
    fn a_pod_without_a_node_says_which_nodes_would_not_have_it() {
        let phase = phase_of(&json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}
        ]}));
        assert_eq!(
            phase,
            Phase::Coming(
                "no node accepts it: 0/1 nodes are available: 1 Insufficient cpu.".to_owned()
            )
        );
    }

    #[test]
    fn an_image_that_is_not_there_is_no_reason_to_wait() {
        let phase = phase_of(&json!({"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "ErrImageNeverPull", "message": "image \"a:1\" is not present"}}}
        ]}));
        assert_eq!(
            phase,
            Phase::Failed("ErrImageNeverPull: image \"a:1\" is not present".to_owned())
        );
        let coming = phase_of(&json!({"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "ContainerCreating"}}}
        ]}));
        assert_eq!(coming, Phase::Coming("ContainerCreating".to_owned()));
    }

    #[test]
    fn a_pod_that_crashes_again_and_again_says_how_it_ended() {
        let phase = phase_of(&json!({"phase": "Running", "containerStatuses": [
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}},
             "lastState": {"terminated": {"exitCode": 3}}}
        ]}));
        assert_eq!(
            phase,
            Phase::Failed("CrashLoopBackOff. It ended with exit code 3".to_owned())
        );
    }

    #[test]
    fn eviction_memory_and_deadline_have_their_words() {
        let evicted =
            phase_of(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}));
        assert_eq!(
            evicted,
            Phase::Failed("was evicted: low on memory".to_owned())
        );
        let memory = phase_of(&json!({"phase": "Failed", "containerStatuses": [
            {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}));
        assert_eq!(
            memory,
            Phase::Failed("was killed because it used more memory than its limit".to_owned())
        );
        let late = phase_of(&json!({"phase": "Failed", "reason": "DeadlineExceeded"}));
        assert_eq!(late, Phase::Failed("reached its deadline".to_owned()));
    }

    #[test]
    fn a_pod_that_goes_for_the_sake_of_others_says_so_before_it_has_ended() {
        let leaving = |reason: &str| {
            let pod = json!({
                "metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "status": {"phase": "Running", "conditions": [
                    {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "its words"}]},
            });
            PodState::of(&pod).phase
        };
        assert_eq!(
            leaving("EvictionByEvictionAPI"),
            Phase::Failed("was evicted: its words".to_owned())
        );
        assert_eq!(
            leaving("PreemptionByScheduler"),
            Phase::Failed("was disrupted: its words".to_owned())
        );
    }

    #[test]
    fn a_deployment_that_is_refused_its_pods_says_why() {
        let deployment = |status: &str| {
            json!({"metadata": {"name": "d"}, "status": {"conditions": [
                {"type": "Progressing", "status": "True", "message": "other"},
                {"type": "ReplicaFailure", "status": status, "message": "exceeded quota"}]}})
        };
        assert_eq!(
            replica_failure(&deployment("True")).as_deref(),
            Some("`d` cannot create a pod: exceeded quota")
        );
        assert_eq!(replica_failure(&deployment("False")), None);
        assert_eq!(replica_failure(&json!({})), None);
    }

    #[test]
    fn a_pod_that_is_removed_is_not_ready_whatever_its_probe_said() {
        let pod = json!({
            "metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(PodState::of(&pod).phase, Phase::Leaving);
    }

    #[test]
    fn nothing_but_a_name_is_a_pod_that_has_not_started() {
        assert_eq!(
            PodState::of(&json!({})).phase,
            Phase::Coming("not started".to_owned())
        );
    }
}
