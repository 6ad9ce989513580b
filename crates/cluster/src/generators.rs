//! The Job whose pods send the load, each its shard.

use std::time::Duration;

use serde_json::{Value, json};

use crate::workload::SERVES;

/// The label of all generators of a Job, by which they are spread.
pub const GENERATORS: &str = "weighbridge/generators";

/// The pods that send the load of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Generators {
    /// The name of the Service before its first pod.
    pub name: String,
    /// The Job's name, also that of the Secret that all read.
    pub object: String,
    /// The image of weigh.
    pub image: String,
    /// Whether and when it is pulled.
    pub pull: &'static str,
    /// Arguments of weigh.
    pub args: Vec<String>,
    /// How many. At least 1.
    pub count: u32,
    /// Where the first of them is met by the others.
    pub port: u16,
    /// When the cluster ends them, whatever happens.
    pub deadline: Duration,
}

/// Where the pods find what they are told, as `job.json`.
pub const TOLD_IN: &str = "/etc/weigh";

impl Generators {
    /// The Job.
    #[must_use]
    pub fn job(&self) -> Value {
        let labels = json!({GENERATORS: self.name});
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.object},
            "spec": {
                "completionMode": "Indexed",
                "completions": self.count,
                "parallelism": self.count,
                // A shard that is sent a second time would be sent alone.
                "backoffLimit": 0,
                "activeDeadlineSeconds": self.deadline.as_secs().max(1),
                "ttlSecondsAfterFinished": 600,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "restartPolicy": "Never",
                        "terminationGracePeriodSeconds": 2,
                        "automountServiceAccountToken": false,
                        "enableServiceLinks": false,
                        "topologySpreadConstraints": [{
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            // Fewer nodes than generators are said in the report, and no reason not to run.
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": {"matchLabels": labels},
                        }],
                        "containers": [self.container()],
                        "volumes": [
                            {"name": "told", "secret": {"secretName": self.object}},
                            {"name": "work", "emptyDir": {}},
                        ],
                    },
                },
            },
        })
    }

    fn container(&self) -> Value {
        json!({
            "name": "generator",
            "image": self.image,
            "imagePullPolicy": self.pull,
            "args": self.args,
            "workingDir": "/work",
            "env": [
                // Given to pods of an Indexed Job by the cluster since 1.22.
                {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
                    {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}},
                {"name": "WEIGH_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "WEIGH_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            // No limit: a generator that is throttled would be the thing that is measured.
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "volumeMounts": [
                {"name": "told", "mountPath": TOLD_IN, "readOnly": true},
                {"name": "work", "mountPath": "/work"},
            ],
        })
    }

    /// The Service by which the others find the first pod.
    #[must_use]
    pub fn meeting(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": self.name},
            "spec": {
                // A label that the cluster gives to pods of an Indexed Job since 1.28.
                "selector": {
                    GENERATORS: self.name,
                    "batch.kubernetes.io/job-completion-index": "0",
                },
                // It is there before it is ready: the others wait for it by connecting.
                "publishNotReadyAddresses": true,
                "ports": [{"port": self.port, "targetPort": self.port}],
            },
        })
    }

    /// The Secret that all pods read: `told` as `job.json`, by its base64.
    #[must_use]
    pub fn secret(&self, told_base64: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self.object},
            "type": "Opaque",
            "immutable": true,
            "data": {"job.json": told_base64},
        })
    }

    /// The selector of its pods.
    #[must_use]
    pub fn selector(&self) -> String {
        format!("{GENERATORS}={}", self.name)
    }
}

/// The selector of the pods behind a Service of [`crate::workload`].
#[must_use]
pub fn serving(name: &str) -> String {
    format!("{SERVES}={name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_is_sent_once_and_its_pods_are_spread() {
        let generators = Generators {
            name: "g".to_owned(),
            object: "g-1".to_owned(),
            image: "weigh:1".to_owned(),
            pull: "IfNotPresent",
            args: vec!["shard".to_owned()],
            count: 3,
            port: 7100,
            deadline: Duration::from_secs(90),
        };
        let job = generators.job();
        assert_eq!(job["spec"]["completions"], 3);
        assert_eq!(job["spec"]["parallelism"], 3);
        assert_eq!(job["spec"]["backoffLimit"], 0);
        assert_eq!(job["spec"]["activeDeadlineSeconds"], 90);
        let pod = &job["spec"]["template"]["spec"];
        let spread = &pod["topologySpreadConstraints"][0];
        assert_eq!(
            spread["labelSelector"]["matchLabels"],
            job["spec"]["template"]["metadata"]["labels"]
        );
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "g-1");
        assert_eq!(generators.secret("")["metadata"]["name"], "g-1");
        assert_eq!(
            generators.meeting()["spec"]["selector"]["batch.kubernetes.io/job-completion-index"],
            "0"
        );
    }
}
