//! Pods that pull images to a node, so that all nodes have them before the first round.
//!
//! Such a pod has a container for each image. The program of the container exists in no image, so nothing of the
//! image runs: the kubelet pulls the image, and the container fails. The scheduler decides if the node may have
//! the pod, as it will decide for the pods that use the images.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::pod_settings::{forbid_sidecars, never_root, without_rights};
use crate::workload::GRACE_S;

/// A program that exists in no image.
const NO_PROGRAM: &str = "/weigh-image-pull";
/// Members of a pod that decide about its nodes, and about its access to registries.
const KEPT: [&str; 7] = [
    "imagePullSecrets",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "serviceAccountName",
    "tolerations",
];
/// Reasons of a waiting container without its image.
const TROUBLES: [&str; 7] = [
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
/// Reasons of a waiting container with its image.
const TROUBLES_AFTER: [&str; 4] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];
/// The member with the rules for nodes that the scheduler must follow.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Images that pods with equal rules for nodes and registries use.
#[derive(Clone, Debug, PartialEq)]
pub struct ImagePull {
    /// The members of the pods that are [`KEPT`], and the rules in their `affinity`.
    rules: Value,
    /// Each image with its pull policy. `None` for the default policy.
    images: BTreeSet<(String, Option<String>)>,
}

/// The progress of the pod of an [`ImagePull`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullState {
    /// The node pulls.
    Pulling,
    /// The node has the images.
    Pulled,
    /// The scheduler does not give the pod to the node, and would not give it the other pods.
    Elsewhere,
    /// The node does not have all images, with the reason.
    Failed(String),
}

/// Returns the images of pods, Deployments and similar objects. Images that a node may not pull are left out.
#[must_use]
pub fn image_pulls(objects: &[Value]) -> Vec<ImagePull> {
    let mut pulls: BTreeMap<String, ImagePull> = BTreeMap::new();
    for object in objects {
        let spec = match &object["spec"]["template"]["spec"] {
            Value::Null => &object["spec"],
            spec => spec,
        };
        let rules = rules_of(spec);
        let pull = pulls.entry(rules.to_string()).or_insert_with(|| ImagePull {
            rules,
            images: BTreeSet::new(),
        });
        let lists = ["initContainers", "containers"].map(|list| spec[list].as_array());
        for container in lists.into_iter().flatten().flatten() {
            let policy = container["imagePullPolicy"].as_str();
            if let Some(image) = container["image"]
                .as_str()
                .filter(|_| policy != Some("Never"))
            {
                pull.images
                    .insert((image.to_owned(), policy.map(str::to_owned)));
            }
        }
    }
    pulls
        .into_values()
        .filter(|pull| !pull.images.is_empty())
        .collect()
}

fn rules_of(spec: &Value) -> Value {
    let mut rules = json!({});
    for member in KEPT {
        if let Some(value) = spec.get(member) {
            rules[member] = value.clone();
        }
    }
    if let Some(required) = spec["affinity"]["nodeAffinity"].get(REQUIRED) {
        rules["affinity"] = json!({"nodeAffinity": {REQUIRED: required}});
    }
    rules
}

impl ImagePull {
    /// True if the labels of this node fit to the `nodeSelector` of the pods. The scheduler applies all other
    /// rules.
    #[must_use]
    pub fn may_use(&self, node: &Value) -> bool {
        let selector = self.rules["nodeSelector"].as_object();
        let mut wanted = selector.into_iter().flatten();
        wanted.all(|(label, value)| node["metadata"]["labels"][label] == *value)
    }

    /// Returns the pod that pulls the images to this node. The cluster ends it after some seconds in any case.
    #[must_use]
    pub fn pod(&self, name: &str, node: &str, seconds: u64) -> Value {
        let mut spec = self.rules.clone();
        spec["affinity"]["nodeAffinity"][REQUIRED] =
            on_node(spec["affinity"]["nodeAffinity"].get(REQUIRED), node);
        let least = json!({"cpu": "10m", "memory": "16Mi"});
        let containers = self
            .images
            .iter()
            .enumerate()
            .map(|(number, (image, policy))| {
                let mut container = json!({
                    "name": format!("image-{number}"),
                    "image": image,
                    "command": [NO_PROGRAM],
                    "resources": {"requests": least, "limits": least},
                    "securityContext": without_rights(),
                });
                if let Some(policy) = policy {
                    container["imagePullPolicy"] = json!(policy);
                }
                container
            });
        spec["containers"] = containers.collect();
        spec["restartPolicy"] = json!("Never");
        spec["terminationGracePeriodSeconds"] = json!(GRACE_S);
        spec["activeDeadlineSeconds"] = json!(seconds.max(1));
        spec["automountServiceAccountToken"] = json!(false);
        spec["enableServiceLinks"] = json!(false);
        spec["securityContext"] = never_root(None);
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": spec,
        });
        forbid_sidecars(&mut pod);
        pod
    }
}

/// The rules for nodes, and this node in addition. The terms are alternatives, so each gets the node.
fn on_node(required: Option<&Value>, node: &str) -> Value {
    let terms = required.and_then(|it| it["nodeSelectorTerms"].as_array());
    let mut terms = terms.cloned().unwrap_or_default();
    if terms.is_empty() {
        terms.push(json!({}));
    }
    let own = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    for term in &mut terms {
        match term["matchFields"].as_array_mut() {
            Some(fields) => fields.push(own.clone()),
            None => term["matchFields"] = json!([own]),
        }
    }
    json!({"nodeSelectorTerms": terms})
}

/// Returns the progress of a pod of an [`ImagePull`].
#[must_use]
pub fn pull_state(pod: &Value) -> PullState {
    let status = &pod["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut unplaced =
        conditions.filter(|it| it["type"] == "PodScheduled" && it["status"] == "False");
    if unplaced.next().is_some() {
        return PullState::Elsewhere;
    }
    // The kubelet itself may refuse or end a pod, such as on a node that is full.
    if status["phase"] == "Failed" && status["reason"].is_string() {
        let (reason, message) = (text(&status["reason"]), text(&status["message"]));
        return PullState::Failed(format!("{reason}: {message}"));
    }
    let count = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let containers = status["containerStatuses"].as_array();
    let containers = containers.map_or(&[][..], Vec::as_slice);
    let mut failed = Vec::new();
    let mut pulled = 0;
    for container in containers {
        let waiting = &container["state"]["waiting"];
        let reason = text(&waiting["reason"]);
        if TROUBLES.contains(&reason.as_str()) {
            let message = text(&waiting["message"]);
            failed.push(format!("{reason}: {message}"));
        } else if TROUBLES_AFTER.contains(&reason.as_str())
            || container["state"]["terminated"].is_object()
            || container["state"]["running"].is_object()
        {
            pulled += 1;
        }
    }
    match failed.first() {
        _ if failed.len() + pulled < count => PullState::Pulling,
        Some(first) => PullState::Failed(first.clone()),
        None => PullState::Pulled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(image: &str, policy: &str, pool: &str) -> Value {
        json!({
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"app": "a"}},
            "spec": {
                "nodeSelector": {"pool": pool},
                "tolerations": [{"key": "load", "operator": "Exists"}],
                "imagePullSecrets": [{"name": "registry"}],
                "affinity": {"podAffinity": {"a": 1}, "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
                ]}}},
                "volumes": [{"name": "v"}],
                "containers": [{"name": "c", "image": image, "imagePullPolicy": policy, "args": ["x"]}],
            },
        })
    }

    #[test]
    fn images_with_equal_rules_share_a_pod_and_images_of_the_node_are_left_out() {
        let deployment =
            json!({"kind": "Deployment", "spec": {"template": pod("b:1", "Always", "x")}});
        let pulls = image_pulls(&[
            pod("a:1", "IfNotPresent", "x"),
            deployment,
            pod("a:1", "IfNotPresent", "x"),
            pod("own:1", "Never", "y"),
            pod("c:1", "IfNotPresent", "z"),
        ]);
        let images = |pull: &ImagePull| -> Vec<String> {
            pull.images.iter().map(|(image, _)| image.clone()).collect()
        };
        let all: Vec<Vec<String>> = pulls.iter().map(images).collect();
        assert_eq!(all, [vec!["a:1", "b:1"], vec!["c:1"]]);
        let node = |pool: &str| json!({"metadata": {"labels": {"pool": pool}}});
        assert!(pulls[0].may_use(&node("x")) && !pulls[0].may_use(&node("z")));
    }

    #[test]
    fn the_pod_of_a_node_follows_the_rules_and_runs_nothing_of_the_image() {
        let pulls = image_pulls(&[pod("a:1", "IfNotPresent", "x")]);
        let made = pulls[0].pod("pull-0", "n2", 90);
        let spec = &made["spec"];
        assert_eq!(spec["nodeSelector"], json!({"pool": "x"}));
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
        assert_eq!(spec["affinity"]["podAffinity"], Value::Null);
        let term = &spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0];
        assert_eq!(term["matchExpressions"][0]["key"], "disk");
        assert_eq!(term["matchFields"][0]["values"], json!(["n2"]));
        assert_eq!(spec["containers"][0]["command"], json!([NO_PROGRAM]));
        assert_eq!(spec["containers"][0]["args"], Value::Null);
        assert_eq!(spec["volumes"], Value::Null);
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(made["metadata"]["labels"]["app"], Value::Null);
        assert_eq!(
            made["metadata"]["labels"]["sidecar.istio.io/inject"],
            "false"
        );
        // Without rules of its own, only the node counts.
        let free = image_pulls(&[json!({"spec": {"containers": [{"image": "a"}]}})]);
        let free = free[0].pod("pull", "n1", 90);
        let terms = &free["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"];
        assert_eq!(terms[0]["matchFields"][0]["values"], json!(["n1"]));
    }

    #[test]
    fn a_pull_is_over_when_the_kubelet_has_every_image_or_a_reason() {
        let with = |containers: Value, more: Value| {
            let mut status = json!({"containerStatuses": containers});
            for (member, value) in more.as_object().expect("an object") {
                status[member] = value.clone();
            }
            pull_state(&json!({"spec": {"containers": [{}, {}]}, "status": status}))
        };
        let waiting =
            |reason: &str| json!({"state": {"waiting": {"reason": reason, "message": "m"}}});
        let missing = json!({"state": {"terminated": {"exitCode": 128, "reason": "StartError"}}});
        let none = || json!({});
        assert_eq!(with(json!([]), none()), PullState::Pulling);
        let creating = waiting("ContainerCreating");
        assert_eq!(with(json!([missing, creating]), none()), PullState::Pulling);
        assert_eq!(
            with(json!([missing, waiting("RunContainerError")]), none()),
            PullState::Pulled
        );
        let absent = waiting("ErrImagePull");
        assert_eq!(with(json!([absent, creating]), none()), PullState::Pulling);
        assert_eq!(
            with(json!([absent, missing]), none()),
            PullState::Failed("ErrImagePull: m".to_owned())
        );
        let condition = json!([{"type": "PodScheduled", "status": "False"}]);
        assert_eq!(
            with(json!([]), json!({"conditions": condition})),
            PullState::Elsewhere
        );
        let full = json!({"phase": "Failed", "reason": "OutOfpods", "message": "full"});
        assert_eq!(
            with(json!([]), full),
            PullState::Failed("OutOfpods: full".to_owned())
        );
    }
}
