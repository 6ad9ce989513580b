//! The Job with the generator pods. Each pod sends its shard of the load.

use std::time::Duration;

use model::PodSettings;
use serde_json::{Value, json};

use crate::pod_settings::{apply, away_from_systems, never_root, without_rights};
use crate::workload::{GRACE_S, SERVES};

/// The label of all generators of a Job, used to spread them over nodes.
pub const GENERATORS: &str = "weighbridge/generators";

/// The pods that send the load of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Generators {
    /// The name of the Service in front of the first pod.
    pub name: String,
    /// The name of the Job, and of the Secret with its input that all pods read.
    pub object: String,
    /// Number of Secrets with the files that all pods of a run read.
    pub file_parts: u32,
    /// The container image of `weigh`.
    pub image: String,
    /// The pull policy of the image.
    pub pull: &'static str,
    /// Arguments of `weigh`.
    pub args: Vec<String>,
    /// Number of generators. At least 1.
    pub count: u32,
    /// The port at which the first generator accepts the other generators.
    pub port: u16,
    /// The time after which the cluster ends the pods in any case.
    pub deadline: Duration,
    /// Limits of its processor time and memory, which no usual load reaches.
    pub limits: GeneratorLimits,
    /// The settings of a lab for the pods.
    pub settings: PodSettings,
}

/// The limits of a generator. A namespace may require limits, and no limit should slow down a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorLimits {
    /// Cores.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
}

impl GeneratorLimits {
    /// Returns the limits for a number of threads that send, and a number of variants.
    ///
    /// A thread uses at most one core. One more core is for all other work, such as handshakes, counters of
    /// the kernel and proofs. So a generator cannot use up its processor time within any period of its limit.
    /// The times of the slots need most of the memory: up to 112 MiB for each variant.
    #[must_use]
    pub fn of(threads: u32, variants: usize) -> GeneratorLimits {
        let variants = u32::try_from(variants).unwrap_or(u32::MAX);
        GeneratorLimits {
            cpus: threads.saturating_add(1),
            memory_mib: variants.saturating_mul(128).saturating_add(512),
        }
    }
}

/// The name of the container.
pub const CONTAINER: &str = "generator";
/// The folder in the pods with their input: `job.json`, and the parts of their files.
pub const TOLD_IN: &str = "/etc/weigh";
/// The name of the input in its Secret and in the pods.
const JOB: &str = "job.json";
/// The name of a part of the files in its Secret.
const PART: &str = "part";

/// Returns the name of a part of the files in the pods. `index` counts from 0.
#[must_use]
pub fn part_name(index: u32) -> String {
    format!("files-{index:03}")
}

impl Generators {
    /// Returns the Job.
    #[must_use]
    pub fn job(&self) -> Value {
        let template = self.template();
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.object},
            "spec": {
                "completionMode": "Indexed",
                "completions": self.count,
                "parallelism": self.count,
                // A repeated shard would be sent alone.
                "backoffLimit": 0,
                "activeDeadlineSeconds": self.deadline.as_secs().max(1),
                "ttlSecondsAfterFinished": 600,
                "template": template,
            },
        })
    }

    /// Returns one of the pods of the Job. The cluster can check it before the first round.
    #[must_use]
    pub fn pod(&self) -> Value {
        let job = self.job();
        let mut pod = job["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!(format!("{}-check", self.object));
        pod
    }

    fn template(&self) -> Value {
        let labels = json!({GENERATORS: self.name});
        let mut template = json!({
            "metadata": {"labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE_S,
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "affinity": away_from_systems(GENERATORS),
                "topologySpreadConstraints": [{
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    // The report shows if there are fewer nodes than generators. That is no reason not to
                    // run.
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": labels},
                }],
                "securityContext": never_root(None),
                "containers": [self.container()],
                "volumes": [
                    {"name": "told", "projected": {"sources": self.sources()}},
                    {"name": "work", "emptyDir": {}},
                ],
            },
        });
        apply(&self.settings, &mut template, false);
        template
    }

    /// The Secrets in the folder of the input.
    fn sources(&self) -> Vec<Value> {
        let source = |name: &str, key: &str, path: &str| json!({"secret": {"name": name, "items": [{"key": key, "path": path}]}});
        let parts = (0..self.file_parts)
            .map(|index| source(&self.part_object(index), PART, &part_name(index)));
        let job = source(&self.object, JOB, JOB);
        std::iter::once(job).chain(parts).collect()
    }

    /// The name of the Secret with a part of the files. It is the same in all rounds of a run.
    fn part_object(&self, index: u32) -> String {
        format!("{}-{}", self.name, part_name(index))
    }

    fn container(&self) -> Value {
        json!({
            "name": CONTAINER,
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
            "securityContext": without_rights(),
            "resources": {
                "requests": {"cpu": "100m", "memory": "64Mi"},
                "limits": {
                    "cpu": self.limits.cpus.to_string(),
                    "memory": format!("{}Mi", self.limits.memory_mib),
                },
            },
            "volumeMounts": [
                {"name": "told", "mountPath": TOLD_IN, "readOnly": true},
                {"name": "work", "mountPath": "/work"},
            ],
        })
    }

    /// Returns the Service for the address of the first pod.
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
                // The address exists before the pod is ready. Other pods wait for it by connecting.
                "publishNotReadyAddresses": true,
                "ports": [{"port": self.port, "targetPort": self.port}],
            },
        })
    }

    /// Returns the Secret with the input that all pods of the Job read, from its base64.
    #[must_use]
    pub fn secret(&self, job_base64: &str) -> Value {
        secret(&self.object, JOB, job_base64)
    }

    /// Returns the Secret with a part of the files that all pods of the run read, from its base64.
    #[must_use]
    pub fn part_secret(&self, index: u32, part_base64: &str) -> Value {
        secret(&self.part_object(index), PART, part_base64)
    }

    /// Returns the selector of the generator pods.
    #[must_use]
    pub fn selector(&self) -> String {
        format!("{GENERATORS}={}", self.name)
    }
}

fn secret(name: &str, key: &str, base64: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "immutable": true,
        "data": {key: base64},
    })
}

/// Returns the selector of the pods behind a Service of [`crate::workload`].
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
            file_parts: 2,
            image: "weigh:1".to_owned(),
            pull: "IfNotPresent",
            args: vec!["shard".to_owned()],
            count: 3,
            port: 7100,
            deadline: Duration::from_secs(90),
            limits: GeneratorLimits::of(1, 2),
            settings: PodSettings {
                priority_class: Some("high".to_owned()),
                ..PodSettings::default()
            },
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
            json!({GENERATORS: "g"})
        );
        assert_eq!(generators.pod()["spec"], *pod);
        assert_eq!(generators.pod()["metadata"]["name"], "g-1-check");
        assert_eq!(
            job["spec"]["template"]["metadata"]["labels"][GENERATORS],
            "g"
        );
        assert_eq!(pod["priorityClassName"], "high");
        let limits = &pod["containers"][0]["resources"]["limits"];
        assert_eq!(*limits, json!({"cpu": "2", "memory": "768Mi"}));
        let source = |name: &str, key: &str, path: &str| json!({"secret": {"name": name, "items": [{"key": key, "path": path}]}});
        assert_eq!(
            pod["volumes"][0]["projected"]["sources"],
            json!([
                source("g-1", "job.json", "job.json"),
                source("g-files-000", "part", "files-000"),
                source("g-files-001", "part", "files-001"),
            ])
        );
        assert_eq!(generators.secret("")["metadata"]["name"], "g-1");
        let part = generators.part_secret(1, "AA==");
        assert_eq!(
            (&part["metadata"]["name"], &part["data"]),
            (&json!("g-files-001"), &json!({"part": "AA=="}))
        );
        assert_eq!(
            generators.meeting()["spec"]["selector"]["batch.kubernetes.io/job-completion-index"],
            "0"
        );
    }
}
