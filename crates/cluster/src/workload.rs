//! A measured system as pods: one pod, or a Deployment for several pods, and a Service in front of them.

use std::collections::BTreeMap;
use std::time::Duration;

use model::PodSettings;
use serde_json::{Value, json};

use crate::call::Resource;
use crate::pod_settings::{
    PART, apply, near_node, near_part, never_root, shielded, without_rights,
};

/// The label for the pod selector of a Service. Its value is the name of the Service.
pub const SERVES: &str = "weighbridge/serves";

/// The name of the container.
pub const CONTAINER: &str = "system";
/// The folder of configuration files in a pod.
pub const FILES_FOLDER: &str = "/weighbridge";
/// Seconds that a pod has to end. Its end is not measured, and each round waits for it.
pub(crate) const GRACE_S: u64 = 1;
/// Highest number of bytes of all files of a ConfigMap.
pub const FILES_BYTES_MAX: usize = 1_000_000;

/// The container of a system, and the settings of its pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The name of its Service, a DNS label. The Service selects its pods by this name.
    pub name: String,
    /// The name of its pod or Deployment.
    pub object: String,
    /// Reference of the container image.
    pub image: String,
    /// The pull policy: `Always`, `IfNotPresent` or `Never`.
    pub pull: &'static str,
    /// The program that replaces the entry point of the image. Empty for the entry point.
    pub command: Vec<String>,
    /// Arguments that replace the arguments of the image. Empty for the arguments of the image.
    pub args: Vec<String>,
    /// Environment variables of the container.
    pub env: BTreeMap<String, String>,
    /// The user and group id. `None` for the user of the image.
    pub user: Option<i64>,
    /// The port that the container listens on.
    pub port: u16,
    /// The readiness probe.
    pub probe: Probe,
    /// Folders that are empty at each start.
    pub empty_folders: Vec<String>,
    /// Configuration files in [`FILES_FOLDER`], by their relative paths.
    pub files: BTreeMap<String, String>,
    /// Requests and limits of the container.
    pub limits: ResourceLimits,
    /// Number of pods. `None` for one pod without a Deployment.
    pub replicas: Option<u32>,
    /// The time after which the cluster ends its pods in any case.
    pub deadline: Duration,
    /// The value of its label [`PART`], equal for all variants. Its pods prefer the nodes of that part.
    pub part: String,
    /// The node that its pod prefers to the nodes of its part. `None` for no such node.
    pub node: Option<String>,
    /// The settings of a lab for the pods.
    pub settings: PodSettings,
}

/// The check that makes a container ready for a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The container accepts connections.
    Listening,
    /// The container responds to `GET` of this path with a status from 200 to 399. A kubelet has no other
    /// rule.
    Answers {
        /// Path and query, beginning with `/`.
        path: String,
        /// True for TLS. The kubelet does not verify the certificate.
        is_encrypted: bool,
    },
}

/// The resources of a pod. Request and limit are equal, so the cluster classifies the pod as Guaranteed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResourceLimits {
    /// Cores, with fractions.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory: Option<u64>,
}

impl ResourceLimits {
    fn quantities(self) -> Value {
        let mut quantities = serde_json::Map::new();
        if let Some(cpus) = self.cpus {
            // Thousandths are the smallest unit in a cluster. A whole number of cores stays whole, because
            // only whole cores are pinned.
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
    /// Returns the Service in front of its pods.
    #[must_use]
    pub fn service(&self) -> Value {
        service(&self.name, self.port)
    }

    /// Returns the ConfigMap with its files. `None` without files.
    #[must_use]
    pub fn config_map(&self) -> Option<Value> {
        if self.files.is_empty() {
            return None;
        }
        // A key of a ConfigMap cannot contain a slash, so it is the position of the file.
        let texts = self.files.values().enumerate();
        let data = texts.map(|(position, text)| (position.to_string(), json!(text)));
        Some(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.object},
            "data": data.collect::<serde_json::Map<_, _>>(),
        }))
    }

    /// The volume of the files, and its mount.
    fn files_volume(&self) -> Option<(Value, Value)> {
        let names = self.files.keys().enumerate();
        let items = names.map(|(key, path)| json!({"key": key.to_string(), "path": path}));
        let items: Vec<Value> = items.collect();
        if items.is_empty() {
            return None;
        }
        let volume = json!({"name": "files", "configMap": {"name": self.object, "items": items}});
        let mount = json!({"name": "files", "mountPath": FILES_FOLDER, "readOnly": true});
        Some((volume, mount))
    }

    /// Returns the pod or Deployment, with its resource.
    #[must_use]
    pub fn object(&self) -> (Resource, Value) {
        let Some(replicas) = self.replicas else {
            // A crash is reported. A restart would hide it.
            let mut pod = self.template("Never");
            pod["apiVersion"] = json!("v1");
            pod["kind"] = json!("Pod");
            pod["metadata"]["name"] = json!(self.object);
            return (Resource::Pods, pod);
        };
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.object, "labels": {SERVES: self.name}},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {SERVES: self.name}},
                "template": self.template("Always"),
            },
        });
        (Resource::Deployments, deployment)
    }

    fn template(&self, restart: &str) -> Value {
        let labels = json!({SERVES: self.name, PART: self.part});
        let mut template = json!({"metadata": {"labels": labels}, "spec": self.pod_spec(restart)});
        apply(&self.settings, &mut template, true);
        // The requests of a system with limits are its limits, so that it stays Guaranteed.
        let resources = &mut template["spec"]["containers"][0]["resources"];
        if let Value::Object(quantities) = self.limits.quantities() {
            for (name, quantity) in quantities {
                resources["requests"][&name] = quantity;
            }
        }
        template
    }

    fn pod_spec(&self, restart: &str) -> Value {
        let quantities = self.limits.quantities();
        let mut container = json!({
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": self.pull,
            "ports": [{"containerPort": self.port}],
            "env": self.env.iter().map(|(name, value)| json!({"name": name, "value": escaped(value)})).collect::<Vec<_>>(),
            "resources": {"limits": quantities, "requests": quantities},
            "readinessProbe": self.readiness(),
        });
        if self.user.is_some_and(|user| user > 0) {
            container["securityContext"] = without_rights();
        }
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
        let volumes =
            folders().map(|(number, _)| json!({"name": format!("empty-{number}"), "emptyDir": {}}));
        let (files, files_mount) = self.files_volume().unzip();
        container["volumeMounts"] = Value::Array(mounts.chain(files_mount).collect());
        let volumes = Value::Array(volumes.chain(files).collect());
        let mut spec = json!({
            "restartPolicy": restart,
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "containers": [container],
            "volumes": volumes,
        });
        // A Deployment refuses a deadline. Its pods end with their owner.
        if restart == "Never" {
            spec["activeDeadlineSeconds"] = json!(self.deadline.as_secs().max(1));
        }
        spec["affinity"] = match &self.node {
            Some(node) => near_node(node),
            None => near_part(&self.part),
        };
        spec["securityContext"] = match self.user {
            Some(user @ 1..) => never_root(Some(user)),
            Some(root) => {
                let mut context = shielded();
                context["runAsUser"] = json!(root);
                context
            }
            // The image may need root. The cluster alone knows its user.
            None => shielded(),
        };
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
        // One second is the shortest period. Once the pod is ready, the probe is rare, because each probe is
        // a request in addition to the load.
        probe["periodSeconds"] = json!(1);
        probe["failureThreshold"] = json!(30);
        probe["timeoutSeconds"] = json!(5);
        probe
    }
}

/// Returns a Service for the pods with its [`SERVES`] label.
#[must_use]
pub fn service(name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "selector": {SERVES: name},
            // HTTP/3 has the same number on another protocol. Two ports need names.
            "ports": [
                {"name": "tcp", "protocol": "TCP", "port": port, "targetPort": port},
                {"name": "udp", "protocol": "UDP", "port": port, "targetPort": port},
            ],
        },
    })
}

/// Escapes `$(NAME)`, which Kubernetes replaces in commands and variables. Text of a user stays unchanged.
pub(crate) fn escaped(text: &str) -> String {
    text.replace("$(", "$$(")
}

/// Returns a DNS label made from any words: lower-case letters, digits and `-`, at most `most` characters.
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
            files: BTreeMap::new(),
            empty_folders: vec!["/tmp".to_owned()],
            image: "localhost/router:1".to_owned(),
            pull: "IfNotPresent",
            command: Vec::new(),
            args: vec!["--note".to_owned(), "$(HOME)".to_owned()],
            env: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
            user: Some(1000),
            port: 4000,
            probe: Probe::Listening,
            limits: ResourceLimits {
                cpus: Some(0.25),
                memory: Some(1 << 27),
            },
            replicas: None,
            deadline: Duration::from_secs(60),
            part: "run-router".to_owned(),
            node: None,
            settings: PodSettings::default(),
        }
    }

    #[test]
    fn a_user_that_is_not_root_has_no_rights_and_an_unknown_user_keeps_them() {
        let contexts = |user: Option<i64>| {
            let (_, pod) = Workload { user, ..workload() }.object();
            let container = &pod["spec"]["containers"][0]["securityContext"];
            (pod["spec"]["securityContext"].clone(), container.clone())
        };
        let (pod, container) = contexts(Some(1000));
        assert_eq!(
            (&pod["runAsNonRoot"], &pod["runAsUser"]),
            (&json!(true), &json!(1000))
        );
        assert_eq!(pod["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(container["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(container["allowPrivilegeEscalation"], false);
        for user in [None, Some(0)] {
            let (pod, container) = contexts(user);
            assert!(pod["runAsNonRoot"].is_null() && container.is_null());
            assert_eq!(pod["seccompProfile"]["type"], "RuntimeDefault");
        }
    }

    #[test]
    fn a_system_has_the_settings_of_the_lab_and_the_limits_of_its_own() {
        let mut system = workload();
        system.settings.requests = Some(json!({"cpu": "1", "ephemeral-storage": "1Gi"}));
        system.settings.labels = Some(json!({"team": "x", SERVES: "other"}));
        let (_, pod) = system.object();
        let resources = &pod["spec"]["containers"][0]["resources"];
        assert_eq!(
            resources["requests"],
            json!({"cpu": "250m", "memory": "134217728", "ephemeral-storage": "1Gi"})
        );
        let labels = json!({"team": "x", SERVES: "router", PART: "run-router"});
        assert_eq!(pod["metadata"]["labels"], labels);
        let near = &pod["spec"]["affinity"]["podAffinity"];
        let near = &near["preferredDuringSchedulingIgnoredDuringExecution"][0];
        let selector = &near["podAffinityTerm"]["labelSelector"]["matchExpressions"][0];
        assert_eq!(selector["values"], json!(["run-router"]));
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
        let selector = json!({SERVES: "router"});
        let pods = &deployment["spec"]["template"]["metadata"]["labels"];
        assert_eq!(pods[SERVES], "router");
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], selector);
        assert_eq!(workload.service()["spec"]["selector"], selector);
        // A Deployment refuses a deadline.
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

    #[test]
    fn files_are_a_config_map_that_the_pod_mounts() {
        let with_files = Workload {
            files: BTreeMap::from([
                ("a.conf".to_owned(), "one".to_owned()),
                ("conf.d/b".to_owned(), "two".to_owned()),
            ]),
            ..workload()
        };
        let map = with_files.config_map().expect("there are files");
        assert_eq!(map["data"], json!({"0": "one", "1": "two"}));
        let (_, pod) = with_files.object();
        let volume = &pod["spec"]["volumes"][1]["configMap"];
        assert_eq!(volume["name"], map["metadata"]["name"]);
        let items = json!([{"key": "0", "path": "a.conf"}, {"key": "1", "path": "conf.d/b"}]);
        assert_eq!(volume["items"], items);
        let mount = &pod["spec"]["containers"][0]["volumeMounts"][1];
        assert_eq!(mount["mountPath"], FILES_FOLDER);
        assert_eq!(workload().config_map(), None);
    }
}
