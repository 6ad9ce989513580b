//! The state of a pod, from the objects of the API.

use serde_json::Value;

use crate::connection::name_of;
use crate::generators::{self, GENERATORS};
use crate::rule::explained;
use crate::workload::{self, SERVES};

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
    /// The digest of the image of its container.
    pub image: Option<String>,
    /// The container of the state: ours, or the container that failed or waits, or the first one.
    pub container: Option<String>,
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
    /// The cluster took it away: an eviction, a preemption, a lost node. With the reason.
    Lost(String),
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

/// The start of the reason of a pod without a node.
const UNPLACED: &str = "no node accepts it: ";
/// The reason of a pod that the scheduler gave to a node with a silent kubelet.
const UNTAKEN: &str = "the kubelet of its node has not taken it";

impl PodState {
    /// True if no node has taken it. The scheduler may have found no place for it, or the kubelet is silent.
    #[must_use]
    pub fn is_unplaced(&self) -> bool {
        self.is_untaken() || matches!(&self.phase, Phase::Coming(why) if why.starts_with(UNPLACED))
    }

    /// True if it has a node with a silent kubelet. Another node may take another pod.
    #[must_use]
    pub fn is_untaken(&self) -> bool {
        matches!(&self.phase, Phase::Coming(why) if why == UNTAKEN)
    }

    /// Returns the state from the JSON of a pod.
    #[must_use]
    pub fn of(pod: &Value) -> PodState {
        let labels = pod["metadata"]["labels"].as_object();
        let labels = labels.into_iter().flatten();
        let index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
            .as_str()
            .and_then(|text| text.parse().ok());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let container = container_of(pod);
        let own = statuses(pod).find(|it| it["name"].as_str() == container);
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
            image: own.and_then(|own| text(&own["imageID"])),
            container: container.map(str::to_owned),
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
        "`{}` cannot create a pod: {}",
        name_of(deployment),
        explained(message)
    ))
}

fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let containers = pod["status"]["containerStatuses"].as_array();
    containers.into_iter().flatten()
}

/// The states of the containers that run before the others, and then of the others.
fn all_statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    let before = pod["status"]["initContainerStatuses"].as_array();
    before.into_iter().flatten().chain(statuses(pod))
}

/// The container of a pod of ours that never restarts. The other containers of the pod came from an admission
/// webhook, such as the proxy of a service mesh, and may run for ever. Pods of a user's manifests have no such container.
fn own_container(pod: &Value) -> Option<&'static str> {
    let labels = &pod["metadata"]["labels"];
    let name = if labels[GENERATORS].is_string() {
        generators::CONTAINER
    } else if labels[SERVES].is_string() {
        workload::CONTAINER
    } else {
        return None;
    };
    let is_ours = |it: &Value| it["name"] == name;
    let containers = pod["spec"]["containers"].as_array()?;
    let is_final = pod["spec"]["restartPolicy"] == "Never";
    (is_final && containers.iter().any(is_ours)).then_some(name)
}

/// The container that runs before the others, while they wait for it. The last one is meant, because those before
/// it have ended or serve until the end of the pod.
fn running_before(pod: &Value) -> Option<&Value> {
    let before = pod["status"]["initContainerStatuses"].as_array()?;
    let are_waiting = statuses(pod).all(|it| it["state"]["waiting"].is_object());
    let is_running = |it: &&Value| it["state"]["running"].is_object();
    before.iter().rfind(is_running).filter(|_| are_waiting)
}

/// The container of the state of a pod.
fn container_of(pod: &Value) -> Option<&str> {
    let has_trouble = |it: &&Value| {
        it["state"]["terminated"]["exitCode"].as_i64().unwrap_or(0) != 0
            || it["state"]["waiting"].is_object()
    };
    let troubled = running_before(pod).or_else(|| all_statuses(pod).find(has_trouble));
    own_container(pod)
        .or_else(|| troubled.and_then(|it| it["name"].as_str()))
        .or_else(|| pod["spec"]["containers"][0]["name"].as_str())
        .or_else(|| pod["status"]["containerStatuses"][0]["name"].as_str())
}

/// The phase of a pod after its own container has ended, even if other containers still run.
fn own_end(pod: &Value) -> Option<Phase> {
    let own = own_container(pod)?;
    let own = statuses(pod).find(|it| it["name"] == own)?;
    let terminated = &own["state"]["terminated"];
    match terminated["exitCode"].as_i64()? {
        0 => Some(Phase::Succeeded),
        _ => ended(terminated).map(Phase::Failed),
    }
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
        "Failed" => return failed(pod),
        _ => {}
    }
    if let Some(end) = own_end(pod).filter(|_| disrupted(status).is_none()) {
        return end;
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        // Draining a node evicts its pods. The API reports that before they have ended.
        return disrupted(status).map_or(Phase::Leaving, Phase::Lost);
    }
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    for container in all_statuses(pod) {
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
    let waiting = containers().find(|it| it["state"]["waiting"]["reason"].is_string());
    Phase::Coming(match (unplaced, waiting) {
        (Some(condition), _) => format!(
            "{UNPLACED}{}",
            condition["message"].as_str().unwrap_or("no reason given")
        ),
        (None, Some(container)) => {
            let waiting = &container["state"]["waiting"];
            match said(&waiting["message"]) {
                message if message.is_empty() => said(&waiting["reason"]),
                message => format!("{}: {message}", said(&waiting["reason"])),
            }
        }
        (None, None) if pod["spec"]["nodeName"].is_string() && status["startTime"].is_null() => {
            UNTAKEN.to_owned()
        }
        (None, None) => "not started".to_owned(),
    })
}

fn failed(pod: &Value) -> Phase {
    let status = &pod["status"];
    let message = status["message"].as_str().unwrap_or_default();
    let with_message = |reason: &str| match message.is_empty() {
        true => reason.to_owned(),
        false => format!("{reason}: {message}"),
    };
    match status["reason"].as_str().unwrap_or_default() {
        "" => disrupted(status).map_or_else(|| Phase::Failed(why_failed(pod)), Phase::Lost),
        "Evicted" => Phase::Lost(with_message("was evicted")),
        "NodeLost" => Phase::Lost(with_message("was lost with its node")),
        "NodeShutdown" | "Terminated" => Phase::Lost(with_message("was ended with its node")),
        "Preempting" => Phase::Lost(with_message("was preempted")),
        "DeadlineExceeded" => Phase::Failed(with_message("reached its deadline")),
        other => Phase::Failed(with_message(other)),
    }
}

fn why_failed(pod: &Value) -> String {
    let is_failed = |it: &&Value| it["state"]["terminated"]["exitCode"] != 0;
    let mut ends = statuses(pod)
        .filter(is_failed)
        .filter_map(|it| ended(&it["state"]["terminated"]));
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
    let message = terminated["message"].as_str().unwrap_or_default().trim();
    Some(match (reason, code) {
        ("StartError" | "ContainerCannotRun", _) => {
            format!("could not start: {message}")
        }
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

    #[test]
    fn a_container_that_runs_before_the_others_is_the_one_with_the_log() {
        let mut pod = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "api"}]},
            "status": {
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "proxy", "state": {"running": {}}},
                    {"name": "migrate", "state": {"running": {}}},
                    {"name": "later", "state": {"waiting": {"reason": "PodInitializing"}}},
                ],
                "containerStatuses": [
                    {"name": "api", "state": {"waiting": {"reason": "PodInitializing"}}},
                ],
            },
        });
        let container = |pod: &Value| PodState::of(pod).container;
        assert_eq!(container(&pod).as_deref(), Some("migrate"));
        pod["status"]["containerStatuses"][0]["state"] = json!({"running": {}});
        pod["status"]["initContainerStatuses"][2]["state"] = json!({"terminated": {"exitCode": 0}});
        pod["status"]["initContainerStatuses"][1]["state"] = json!({"terminated": {"exitCode": 0}});
        assert_eq!(container(&pod).as_deref(), Some("api"));
    }

    #[test]
    fn a_container_that_runs_before_the_others_and_fails_is_named_with_its_end() {
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "api"}]},
            "status": {
                "phase": "Pending",
                "initContainerStatuses": [{
                    "name": "migrate",
                    "restartCount": 3,
                    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
                    "lastState": {"terminated": {"exitCode": 2}},
                }],
                "containerStatuses": [{
                    "name": "api",
                    "restartCount": 0,
                    "state": {"waiting": {"reason": "PodInitializing"}},
                }],
            },
        });
        let pod = PodState::of(&pod);
        let Phase::Failed(why) = &pod.phase else {
            panic!("{pod:?}");
        };
        assert!(why.contains("CrashLoopBackOff: back-off 40s"), "{why}");
        assert!(why.contains("ended with exit code 2"), "{why}");
        assert_eq!(pod.container.as_deref(), Some("migrate"));
    }

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
    fn a_kubelet_that_is_silent_has_not_taken_the_pod() {
        let pod = |status: Value| {
            PodState::of(
                &json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": status}),
            )
        };
        assert!(pod(json!({"phase": "Pending"})).is_unplaced());
        let taken = pod(json!({"phase": "Pending", "startTime": "2026-01-01T00:00:00Z"}));
        assert_eq!(taken.phase, Phase::Coming("not started".to_owned()));
        assert!(!taken.is_unplaced());
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
            Phase::Lost("was evicted: low on memory".to_owned())
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
            Phase::Lost("was evicted: its words".to_owned())
        );
        assert_eq!(
            leaving("PreemptionByScheduler"),
            Phase::Lost("was disrupted: its words".to_owned())
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
            replica_failure(&deployment("True"))
                .as_deref()
                .map(|it| &it[..80]),
            Some(
                "`d` cannot create a pod: a quota of the namespace does not allow it: exceeded qu"
            )
        );
        assert_eq!(replica_failure(&deployment("False")), None);
        assert_eq!(replica_failure(&json!({})), None);
    }

    /// A pod of ours with a proxy that keeps running.
    fn with_a_proxy(label: &str, name: &str, state: &Value, restarts: &str) -> PodState {
        PodState::of(&json!({
            "metadata": {"name": "p", "labels": {label: "x"}},
            "spec": {"restartPolicy": restarts, "containers": [{"name": "proxy"}, {"name": name}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "proxy", "imageID": "proxy@sha256:1", "state": {"running": {}}},
                {"name": name, "imageID": "ours@sha256:2", "state": state},
            ]},
        }))
    }

    #[test]
    fn a_pod_of_ours_ends_with_its_own_container() {
        for (label, name) in [(GENERATORS, "generator"), (SERVES, "system")] {
            let end = |code: i64| json!({"terminated": {"exitCode": code}});
            let done = with_a_proxy(label, name, &end(0), "Never");
            assert_eq!(done.phase, Phase::Succeeded);
            assert_eq!(done.container.as_deref(), Some(name));
            assert_eq!(done.image.as_deref(), Some("ours@sha256:2"));
            let failed = with_a_proxy(label, name, &end(5), "Never");
            assert_eq!(
                failed.phase,
                Phase::Failed("ended with exit code 5".to_owned())
            );
            // A container that the kubelet starts again has not ended.
            let again = with_a_proxy(label, name, &end(5), "Always");
            assert_eq!(again.phase, Phase::Running);
            assert_eq!(again.container.as_deref(), Some(name));
        }
    }

    #[test]
    fn a_program_that_cannot_start_is_told_in_the_words_of_the_runtime() {
        let phase = phase_of(
            &json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {
            "exitCode": 128, "reason": "StartError",
            "message": "runc create failed: exec /bin/weigh: exec format error"}}}]}),
        );
        let Phase::Failed(why) = phase else {
            panic!("{phase:?}")
        };
        assert_eq!(
            why,
            "could not start: runc create failed: exec /bin/weigh: exec format error"
        );
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
