//! The pods that a cluster runs for a lab.

use serde_json::Value;

/// The settings of pods in a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pods {
    /// The pods that send the load.
    pub generators: PodSettings,
    /// The pods of systems with an image.
    pub systems: PodSettings,
    /// The DNS domain of the cluster, without a dot at its ends. `None` if the lab does not set it.
    pub cluster_domain: Option<String>,
}

/// Settings of pods, in the form of the API of a cluster. `None` keeps the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSettings {
    /// `nodeSelector`, a mapping.
    pub node_selector: Option<Value>,
    /// `affinity`, a mapping.
    pub affinity: Option<Value>,
    /// `tolerations`, a list.
    pub tolerations: Option<Value>,
    /// `topologySpreadConstraints`, a list.
    pub topology_spread: Option<Value>,
    /// `priorityClassName`.
    pub priority_class: Option<String>,
    /// `runtimeClassName`.
    pub runtime_class: Option<String>,
    /// `serviceAccountName`.
    pub service_account: Option<String>,
    /// The names in `imagePullSecrets`.
    pub image_pull_secrets: Vec<String>,
    /// Labels, a mapping of texts.
    pub labels: Option<Value>,
    /// Annotations, a mapping of texts.
    pub annotations: Option<Value>,
    /// `securityContext` of the pod, a mapping.
    pub security_context: Option<Value>,
    /// `securityContext` of the container, a mapping.
    pub container_security_context: Option<Value>,
    /// `resources.requests`, a mapping.
    pub requests: Option<Value>,
    /// `resources.limits`, a mapping.
    pub limits: Option<Value>,
    /// True if a mesh may add its containers. `None` for the default.
    pub sidecars: Option<bool>,
}
