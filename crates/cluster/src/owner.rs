//! One owner of all objects that a run creates.
//!
//! The owner is a Job that starts no pod (`parallelism: 0`) and has a deadline. After the deadline, the
//! cluster itself ends the Job, removes it at once (`ttlSecondsAfterFinished: 0`), and removes all objects
//! that it owns. No object therefore remains when `weigh` ends, when it is killed and its cleanup task
//! removes the owner, or when the machine of both disappears. A run that continues moves the deadline further
//! ahead.
//!
//! Within a run each round has its own owner, a ConfigMap. Removing the ConfigMap ends the pods of the round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::call::Resource;
use crate::connection::{ApiConnection, Heed, name_of, now};
use crate::error::ClusterError;

/// The label that all objects have.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "weighbridge");
/// The label with the id of the run.
pub const RUN: &str = "weighbridge/run";
/// The label with the number of the round.
pub const ROUND: &str = "weighbridge/round";
/// Time limit for the cluster to remove the objects of an owner.
const GONE_WITHIN: Duration = Duration::from_secs(90);
/// Time limit for a node to end a pod after its grace period. A kubelet that runs needs about a second.
const SILENT_AFTER: Duration = Duration::from_secs(30);
/// Time after which pods that are still there may be of a lost node.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
/// Time between two questions about a node.
const ASK_AGAIN: Duration = Duration::from_secs(3);
/// Time between two checks.
const LOOK: Duration = Duration::from_millis(150);

/// A reference to the owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    api_version: &'static str,
    kind: &'static str,
    name: String,
    uid: String,
}

impl Owner {
    fn of(api_version: &'static str, kind: &'static str, made: &Value) -> Option<Owner> {
        Some(Owner {
            api_version,
            kind,
            name: name_of(made).to_owned(),
            uid: made["metadata"]["uid"].as_str()?.to_owned(),
        })
    }

    /// Returns the created owner, from the response or, if the response was lost, from the cluster.
    fn found(
        connection: &ApiConnection,
        resource: Resource,
        api_version: &'static str,
        kind: &'static str,
        made: &Value,
    ) -> Result<Owner, ClusterError> {
        if let Some(owner) = Owner::of(api_version, kind, made) {
            return Ok(owner);
        }
        let selector = format!("{}={}", MANAGED_BY.0, MANAGED_BY.1);
        let all = connection.list(resource, &selector, Heed::Stop)?;
        let found = all.iter().find(|one| name_of(one) == name_of(made));
        let owner = found.and_then(|found| Owner::of(api_version, kind, found));
        owner.ok_or_else(|| ClusterError::Unreadable {
            what: format!("create `{}`", name_of(made)),
            reason: "it was created, but the cluster does not list it".to_owned(),
        })
    }

    fn reference(&self) -> Value {
        json!([{
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }])
    }
}

/// One run in a cluster.
pub struct Run<'c> {
    /// The connection to the cluster of the run.
    pub connection: &'c ApiConnection,
    id: String,
    owner: Owner,
    began: Instant,
}

/// Returns the name of the owner of a run.
#[must_use]
pub fn name_of_run(id: &str) -> String {
    format!("weighbridge-{id}")
}

impl<'c> Run<'c> {
    /// Creates the owner. `id` is the unique name of the run: at most 30 lower-case letters, digits and `-`.
    /// `image` is the image of the generators. The owner starts no pod, but a policy may read its image.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub fn begin(
        connection: &'c ApiConnection,
        id: &str,
        image: &str,
        time_to_live: Duration,
    ) -> Result<Run<'c>, ClusterError> {
        let job = owner_job(id, image, time_to_live);
        let made = connection.create(Resource::Jobs, &job)?;
        let owner = Owner::found(connection, Resource::Jobs, "batch/v1", "Job", &made)?;
        Ok(Run {
            connection,
            id: id.to_owned(),
            owner,
            began: now(),
        })
    }

    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sets the deadline, counted from now.
    ///
    /// # Errors
    /// If the cluster refuses, or the owner is gone.
    pub fn live_on(&self, for_another: Duration) -> Result<(), ClusterError> {
        let deadline = (self.began.elapsed() + for_another).as_secs().max(1);
        let change = json!({"spec": {"activeDeadlineSeconds": deadline}});
        self.connection
            .merge(Resource::Jobs, &self.owner.name, &change)
            .map(|_| ())
    }

    /// Creates an object that belongs to the run.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub fn create(&self, resource: Resource, object: Value) -> Result<Value, ClusterError> {
        self.connection
            .create(resource, &self.adopted(object, &self.owner, None))
    }

    /// Asks the cluster if it would create an object that belongs to the run. It stores nothing.
    ///
    /// # Errors
    /// If the cluster would refuse.
    pub fn try_create(&self, resource: Resource, object: Value) -> Result<(), ClusterError> {
        self.connection
            .try_create(resource, &self.adopted(object, &self.owner, None))
    }

    /// Creates the owner of a round.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub fn round(&self, number: u32) -> Result<Round<'_, 'c>, ClusterError> {
        let name = format!("{}-round-{number}", name_of_run(&self.id));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let map = self.adopted(map, &self.owner, Some(number));
        let made = self.connection.create(Resource::ConfigMaps, &map)?;
        let owner = Owner::found(
            self.connection,
            Resource::ConfigMaps,
            "v1",
            "ConfigMap",
            &made,
        )?;
        Ok(Round {
            run: self,
            number,
            owner,
        })
    }

    /// Returns the selector of all objects of the run.
    #[must_use]
    pub fn selector(&self) -> String {
        format!("{RUN}={}", self.id)
    }

    /// Removes the owner, and waits until all its objects are gone.
    ///
    /// # Errors
    /// If the cluster is away, or an object remains.
    pub fn end(self) -> Result<(), ClusterError> {
        end(self.connection, &self.id)
    }

    /// Waits until the pods of a round are gone.
    ///
    /// # Errors
    /// If the cluster is away, or a pod remains.
    pub fn wait_until_gone(&self, leaving: &LeavingRound) -> Result<(), ClusterError> {
        let pods = [Resource::Pods];
        wait_until_gone(self.connection, &leaving.selector, &pods, &self.id)
    }

    /// Removes the owner without a wait. For a run with objects that the cluster has not removed before.
    ///
    /// # Errors
    /// If the cluster is away.
    pub fn end_at_once(self) -> Result<(), ClusterError> {
        self.connection
            .delete(Resource::Jobs, &name_of_run(&self.id))
    }

    fn adopted(&self, mut object: Value, owner: &Owner, round: Option<u32>) -> Value {
        adopt(
            &mut object,
            self.connection.namespace(),
            owner,
            &self.labels(round),
        );
        object
    }

    fn labels(&self, round: Option<u32>) -> Vec<(String, String)> {
        let mut labels = vec![
            (MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned()),
            (RUN.to_owned(), self.id.clone()),
        ];
        labels.extend(round.map(|number| (ROUND.to_owned(), number.to_string())));
        labels
    }
}

/// Removes the owner of a run, and waits until all its objects are gone. A missing owner is no error.
///
/// # Errors
/// If the cluster is away, or an object remains.
pub fn end(connection: &ApiConnection, id: &str) -> Result<(), ClusterError> {
    connection.delete(Resource::Jobs, &name_of_run(id))?;
    wait_until_gone(connection, &format!("{RUN}={id}"), &LEAVING, id)
}

/// The pods of a round that is being removed.
#[derive(Debug)]
pub struct LeavingRound {
    selector: String,
}

/// One round of a run.
pub struct Round<'r, 'c> {
    run: &'r Run<'c>,
    number: u32,
    owner: Owner,
}

impl Round<'_, '_> {
    /// The number of the round.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Creates an object that belongs to the round.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub fn create(&self, resource: Resource, object: Value) -> Result<Value, ClusterError> {
        let object = self.run.adopted(object, &self.owner, Some(self.number));
        self.run.connection.create(resource, &object)
    }

    /// Returns the selector of all objects of the round.
    #[must_use]
    pub fn selector(&self) -> String {
        format!("{},{ROUND}={}", self.run.selector(), self.number)
    }

    /// Removes the round, and waits until its pods are gone. They would disturb the next round.
    ///
    /// # Errors
    /// If the cluster is away, or an object remains.
    pub fn end(self) -> Result<(), ClusterError> {
        let run = self.run;
        run.wait_until_gone(&self.leave()?)
    }

    /// Removes the round without a wait for its pods.
    ///
    /// # Errors
    /// If the cluster is away.
    pub fn leave(self) -> Result<LeavingRound, ClusterError> {
        let connection = self.run.connection;
        connection.delete(Resource::ConfigMaps, &self.owner.name)?;
        Ok(LeavingRound {
            selector: self.selector(),
        })
    }
}

/// Kinds of objects to check after the end of a run. Secrets are not included, because listing them requires
/// the right to read them.
const LEAVING: [Resource; 6] = [
    Resource::Pods,
    Resource::Jobs,
    Resource::Deployments,
    Resource::StatefulSets,
    Resource::Services,
    Resource::ConfigMaps,
];

fn wait_until_gone(
    connection: &ApiConnection,
    selector: &str,
    kinds: &[Resource],
    id: &str,
) -> Result<(), ClusterError> {
    let began = now();
    let mut asked_at: Option<Instant> = None;
    // True if the cluster says which nodes are lost. A node that it does not know as lost may still end its pods,
    // or become known as lost.
    let mut knows_nodes = false;
    loop {
        let mut left = Vec::new();
        let mut kept: Vec<(String, String)> = Vec::new();
        let mut are_stuck = true;
        for kind in kinds {
            for object in connection.list(*kind, selector, Heed::Nothing)? {
                left.push(format!("{} `{}`", kind.singular(), name_of(&object)));
                let node = kept_on(&object).filter(|_| *kind == Resource::Pods);
                are_stuck &= node.is_some() || *kind != Resource::Pods;
                kept.extend(node.map(|node| (name_of(&object).to_owned(), node.to_owned())));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let is_due = asked_at.is_none_or(|at| at.elapsed() >= ASK_AGAIN);
        if !kept.is_empty() && began.elapsed() >= ENDED_WITHIN && is_due {
            knows_nodes = remove_from_lost_nodes(connection, &kept);
            asked_at = Some(now());
        }
        let kept_by: BTreeSet<String> = kept.into_iter().map(|(_, node)| node).collect();
        // Only a node can end a pod of it, so waiting for a silent node is useless.
        let is_silent = are_stuck && !kept_by.is_empty() && began.elapsed() >= SILENT_AFTER;
        if (is_silent && !knows_nodes) || began.elapsed() >= GONE_WITHIN {
            return Err(ClusterError::Left {
                count: left.len(),
                seconds: began.elapsed().as_secs(),
                names: left.iter().take(3).cloned().collect::<Vec<_>>().join(", "),
                advice: removal(connection.namespace(), id, &kept_by),
            });
        }
        connection.pause(LOOK);
    }
}

/// Removes pods that are kept by nodes that the cluster counts as lost. `kept` are pods with their nodes. Returns
/// false if the cluster does not say whether these nodes are lost, or does not let the pods be removed.
fn remove_from_lost_nodes(connection: &ApiConnection, kept: &[(String, String)]) -> bool {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    for (pod, node) in kept {
        let is_lost = match known.get(node.as_str()) {
            Some(is_lost) => *is_lost,
            None => match connection.why_lost(node) {
                Ok(why) => why.is_some(),
                Err(error) => {
                    tracing::debug!(node, %error, "it is not known whether the node is lost");
                    return false;
                }
            },
        };
        known.insert(node, is_lost);
        if is_lost && let Err(error) = connection.delete_lost_pod(pod) {
            tracing::debug!(pod, %error, "the pod of a lost node stays");
            return false;
        }
    }
    true
}

/// The node of a pod that is being removed.
fn kept_on(pod: &Value) -> Option<&str> {
    let node = pod["spec"]["nodeName"].as_str();
    node.filter(|_| pod["metadata"]["deletionTimestamp"].is_string())
}

/// The command that removes the remaining objects of a run.
fn removal(namespace: &str, id: &str, kept_by: &BTreeSet<String>) -> String {
    let rest = "jobs,deployments,statefulsets,services,configmaps,secrets";
    if kept_by.is_empty() {
        return format!("Remove them: kubectl -n {namespace} delete pods,{rest} -l {RUN}={id}");
    }
    let nodes: Vec<String> = kept_by.iter().map(|node| format!("`{node}`")).collect();
    format!(
        "Pods on node {} do not end, so its kubelet may be gone. If the node is lost, remove them: kubectl -n {namespace} delete pods --force --grace-period=0 -l {RUN}={id} && kubectl -n {namespace} delete {rest} -l {RUN}={id}",
        nodes.join(", ")
    )
}

/// Returns the Job that owns a run. Policies for pod templates apply to it, although it starts no pod.
#[must_use]
pub fn owner_job(id: &str, image: &str, time_to_live: Duration) -> Value {
    let least = json!({"cpu": "10m", "memory": "16Mi"});
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name_of_run(id),
            "labels": {MANAGED_BY.0: MANAGED_BY.1, RUN: id},
        },
        "spec": {
            // No pod: the Job only exists to own objects, and to end.
            "parallelism": 0,
            "completions": 1,
            "backoffLimit": 0,
            "activeDeadlineSeconds": time_to_live.as_secs().max(1),
            "ttlSecondsAfterFinished": 0,
            "template": {
                "metadata": {"labels": {MANAGED_BY.0: MANAGED_BY.1}},
                "spec": {
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": false,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": 65_532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "none",
                        "image": image,
                        "resources": {"requests": least, "limits": least},
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}

/// Sets the namespace, owner and labels of an object. Existing labels stay.
pub fn adopt(object: &mut Value, namespace: &str, owner: &Owner, labels: &[(String, String)]) {
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["ownerReferences"] = owner.reference();
    for (name, value) in labels {
        object["metadata"]["labels"][name] = json!(value);
    }
    // Pods that a controller creates have the labels of its template.
    if object["spec"]["template"].is_object() {
        for (name, value) in labels {
            object["spec"]["template"]["metadata"]["labels"][name] = json!(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_adopted_belongs_to_the_run_and_so_do_the_pods_it_makes() {
        let made = json!({"metadata": {"name": "weighbridge-x", "uid": "u-1"}});
        let owner = Owner::of("batch/v1", "Job", &made).expect("it has a uid");
        let mut object = json!({
            "kind": "Deployment",
            "metadata": {"name": "d", "labels": {"own": "kept"}},
            "spec": {"template": {"metadata": {"labels": {"own": "kept"}}}},
        });
        let labels = [(RUN.to_owned(), "x".to_owned())];
        adopt(&mut object, "space", &owner, &labels);
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "u-1");
        assert_eq!(object["metadata"]["namespace"], "space");
        for labels in [
            &object["metadata"]["labels"],
            &object["spec"]["template"]["metadata"]["labels"],
        ] {
            assert_eq!(labels, &json!({"own": "kept", RUN: "x"}));
        }
    }

    #[test]
    fn pods_of_a_silent_node_are_removed_by_force_and_others_are_not() {
        let pod = |metadata: Value| json!({"metadata": metadata, "spec": {"nodeName": "n2"}});
        let leaving = pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(kept_on(&leaving), Some("n2"));
        assert_eq!(kept_on(&pod(json!({}))), None);
        let advice = removal("space", "x", &BTreeSet::from(["n2".to_owned()]));
        assert!(
            advice.starts_with("Pods on node `n2` do not end"),
            "{advice}"
        );
        assert!(
            advice.contains("delete pods --force --grace-period=0 -l weighbridge/run=x"),
            "{advice}"
        );
        let advice = removal("space", "x", &BTreeSet::new());
        assert!(!advice.contains("--force"), "{advice}");
    }

    #[test]
    fn the_owner_of_a_run_ends_by_itself_and_starts_nothing() {
        let job = owner_job(
            "x",
            "registry.example.org/weigh:1",
            Duration::from_secs(600),
        );
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "registry.example.org/weigh:1");
        assert_eq!(job["spec"]["parallelism"], 0);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 600);
        assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 0);
    }
}
