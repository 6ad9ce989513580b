//! One owner of all objects that a run creates.
//!
//! The owner is a Job that starts no pod (`parallelism: 0`) and has a deadline. After the deadline, the
//! cluster itself ends the Job, removes it at once (`ttlSecondsAfterFinished: 0`), and removes all objects
//! that it owns. No object therefore remains when `weigh` ends, when it is killed and its cleanup task
//! removes the owner, or when the machine of both disappears. A run that continues moves the deadline further
//! ahead.
//!
//! Within a run each round has its own owner, a ConfigMap. Removing the ConfigMap ends the pods of the round.

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
/// Time between two checks.
const LOOK: Duration = Duration::from_millis(300);

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
    ///
    /// # Errors
    /// If the cluster refuses.
    pub fn begin(
        connection: &'c ApiConnection,
        id: &str,
        time_to_live: Duration,
    ) -> Result<Run<'c>, ClusterError> {
        let job = owner_job(id, time_to_live);
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
        let connection = self.run.connection;
        connection.delete(Resource::ConfigMaps, &self.owner.name)?;
        let pods = [Resource::Pods];
        wait_until_gone(connection, &self.selector(), &pods, &self.run.id)
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
    loop {
        let mut left = Vec::new();
        for kind in kinds {
            for object in connection.list(*kind, selector, Heed::Nothing)? {
                left.push(format!("{} `{}`", kind.singular(), name_of(&object)));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() >= GONE_WITHIN {
            let namespace = connection.namespace();
            return Err(ClusterError::Left {
                count: left.len(),
                seconds: began.elapsed().as_secs(),
                names: left.iter().take(3).cloned().collect::<Vec<_>>().join(", "),
                advice: format!(
                    "Remove them: kubectl -n {namespace} delete pods,jobs,deployments,statefulsets,services,configmaps,secrets -l {RUN}={id}"
                ),
            });
        }
        connection.pause(LOOK);
    }
}

/// Returns the Job that owns a run.
#[must_use]
pub fn owner_job(id: &str, time_to_live: Duration) -> Value {
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
                    "containers": [{"name": "none", "image": "none.invalid/none"}],
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
    fn the_owner_of_a_run_ends_by_itself_and_starts_nothing() {
        let job = owner_job("x", Duration::from_secs(600));
        assert_eq!(job["spec"]["parallelism"], 0);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 600);
        assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 0);
    }
}
