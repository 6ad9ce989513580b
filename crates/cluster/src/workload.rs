//! What is weighed, as pods: one pod, or a Deployment where there are several, and a Service before them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::Resource;

/// The label by which a Service finds its pods; its value is the Service's name.
pub const SERVES: &str = "weighbridge/serves";

/// What runs in a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The name of its Service, by which the Service finds its pods: a label of DNS.
    pub name: String,
    /// The name of its pod, or of its Deployment.
    pub object: String,
    /// The image.
    pub image: String,
    /// Whether and when it is pulled: `Always`, `IfNotPresent` or `Never`.
    pub pull: &'static str,
    /// The program instead of the image's entry point; empty for that one.
    pub command: Vec<String>,
    /// Arguments instead of the image's own; empty for those.
    pub args: Vec<String>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// The user and group it runs as, by number; the image's own where absent.
    pub user: Option<i64>,
    /// Where it listens.
    pub port: u16,
    /// When it serves.
    pub probe: Probe,
    /// Folders that are empty at each start.
    pub empty_folders: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// How many of it; one pod where absent.
    pub replicas: Option<u32>,
    /// When the cluster ends its pods, whatever happens.
    pub deadline: Duration,
}

/// How a kubelet finds out that a container serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It accepts connections.
    Listening,
    /// It answers `GET` of this path with a status from 200 to 399: a kubelet knows no other rule.
    Answers {
        /// Path and query.
        path: String,
        /// Whether over TLS; the certificate is not looked at.
        is_encrypted: bool,
    },
}

/// What a pod may use: as much as is set aside for it, so that the cluster calls it Guaranteed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Cores.
    pub cpus: Option<f64>,
    /// Bytes.
    pub memory: Option<u64>,
}

impl Limits {
    fn quantities(self) -> Value {
        let mut quantities = serde_json::Map::new();
        if let Some(cpus) = self.cpus {
            // Thousandths are the finest that a cluster knows. A whole number of cores stays one: only
            // those are pinned.
            quantities.insert(
                "cpu".to_owned(),
                json!(format!("{:.0}m", (cpus * 1e3).ceil())),
            );
        }
        if let Some(memory) = self.memory {
            quantities.insert("memory".to_owned(), json!(memory.to_string()));
        }
        Value::Object(quantities)
    }
}

impl Workload {
    /// The Service before its pods.
    #[must_use]
    pub fn service(&self) -> Value {
        service(&self.name, self.port)
    }

    /// The pod, or the Deployment, and which of both it is.
    #[must_use]
    pub fn object(&self) -> (Resource, Value) {
        let labels = json!({SERVES: self.name});
        let Some(replicas) = self.replicas else {
            let pod = json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": self.object, "labels": labels},
                // What has crashed is told, and not started again as if nothing had been.
                "spec": self.pod_spec("Never"),
            });
            return (Resource::Pods, pod);
        };
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.object, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {SERVES: self.name}},
                "template": {"metadata": {"labels": labels}, "spec": self.pod_spec("Always")},
            },
        });
        (Resource::Deployments, deployment)
    }

    fn pod_spec(&self, restart: &str) -> Value {
        let quantities = self.limits.quantities();
        let mut container = json!({
            "name": "system",
            "image": self.image,
            "imagePullPolicy": self.pull,
            "ports": [{"containerPort": self.port}],
            "env": self.env.iter().map(|(name, value)| json!({"name": name, "value": escaped(value)})).collect::<Vec<_>>(),
            "resources": {"limits": quantities, "requests": quantities},
            "readinessProbe": self.readiness(),
        });
        if !self.command.is_empty() {
            container["command"] = json!(
                self.command
                    .iter()
                    .map(|it| escaped(it))
                    .collect::<Vec<_>>()
            );
        }
        if !self.args.is_empty() {
            container["args"] = json!(self.args.iter().map(|it| escaped(it)).collect::<Vec<_>>());
        }
        let folders = || self.empty_folders.iter().enumerate();
        let mounts = folders()
            .map(|(number, path)| json!({"name": format!("empty-{number}"), "mountPath": path}));
        container["volumeMounts"] = Value::Array(mounts.collect());
        let volumes =
            folders().map(|(number, _)| json!({"name": format!("empty-{number}"), "emptyDir": {}}));
        let volumes = Value::Array(volumes.collect());
        let mut spec = json!({
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": 2,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "containers": [container],
            "volumes": volumes,
        });
        // A Deployment refuses a deadline: its pods end with their owner.
        if restart == "Never" {
            spec["activeDeadlineSeconds"] = json!(self.deadline.as_secs().max(1));
        }
        if let Some(user) = self.user {
            spec["securityContext"] = json!({"runAsUser": user});
        }
        spec
    }

    fn readiness(&self) -> Value {
        let mut probe = match &self.probe {
            Probe::Listening => json!({"tcpSocket": {"port": self.port}}),
            Probe::Answers { path, is_encrypted } => json!({"httpGet": {
                "path": path,
                "port": self.port,
                "scheme": if *is_encrypted { "HTTPS" } else { "HTTP" },
            }}),
        };
        // A whole second is the shortest there is. Once it is ready it is asked seldom: each question
        // is a request beside the load.
        probe["periodSeconds"] = json!(1);
        probe["failureThreshold"] = json!(30);
        probe["timeoutSeconds"] = json!(5);
        probe
    }
}

/// A Service for the pods that say they serve it.
#[must_use]
pub fn service(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "selector": {SERVES: name},
            "ports": [{"port": port, "targetPort": port}],
        },
    })
}

/// Kubernetes replaces `$(NAME)` in commands and variables; text of a user is to stay as it is.
pub(crate) fn escaped(text: &str) -> String {
    text.replace("$(", "$$(")
}

/// A label of DNS made of any words: lower-case letters, digits and `-`, at most `most` characters.
#[must_use]
pub fn dns_label(words: &str, most: usize) -> String {
    let mut label = String::new();
    for c in words.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            label.push(c);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    label.truncate(most);
    let label = label.trim_matches('-');
    match label.is_empty() {
        true => "x".to_owned(),
        false => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        Workload {
            name: "router".to_owned(),
            object: "router-1".to_owned(),
            empty_folders: vec!["/tmp".to_owned()],
            image: "localhost/router:1".to_owned(),
            pull: "IfNotPresent",
            command: Vec::new(),
            args: vec!["--note".to_owned(), "$(HOME)".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            user: Some(1000),
            port: 4000,
            probe: Probe::Listening,
            limits: Limits {
                cpus: Some(0.25),
                memory: Some(1 << 27),
            },
            replicas: None,
            deadline: Duration::from_secs(60),
        }
    }

    #[test]
    fn what_is_set_aside_for_a_pod_is_what_it_may_use() {
        let (resource, pod) = workload().object();
        assert_eq!(resource, Resource::Pods);
        let container = &pod["spec"]["containers"][0];
        let wanted = json!({"cpu": "250m", "memory": "134217728"});
        assert_eq!(container["resources"]["limits"], wanted);
        assert_eq!(container["resources"]["requests"], wanted);
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], 60);
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    }

    #[test]
    fn several_are_a_deployment_whose_pods_the_service_finds() {
        let workload = Workload {
            replicas: Some(4),
            ..workload()
        };
        let (resource, deployment) = workload.object();
        assert_eq!(resource, Resource::Deployments);
        assert_eq!(deployment["spec"]["replicas"], 4);
        let pods = &deployment["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&deployment["spec"]["selector"]["matchLabels"], pods);
        assert_eq!(&workload.service()["spec"]["selector"], pods);
        // It refuses a deadline.
        assert!(deployment["spec"]["template"]["spec"]["activeDeadlineSeconds"].is_null());
    }

    #[test]
    fn text_of_a_user_is_not_replaced_by_the_cluster() {
        let (_, pod) = workload().object();
        assert_eq!(pod["spec"]["containers"][0]["args"][1], "$$(HOME)");
    }

    #[test]
    fn any_words_make_a_label() {
        assert_eq!(
            dns_label("1 instance, on Redis!", 40),
            "1-instance-on-redis"
        );
        assert_eq!(dns_label("é", 40), "x");
        assert_eq!(dns_label("abc-def", 4), "abc");
    }
}
