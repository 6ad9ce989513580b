//! The pods of a cluster, as a lab describes them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use yaml_with_places::{At, Json};

use super::parts::Switch;
use crate::formats::{HostName, Written};

/// A mapping with texts, such as labels.
type Texts = BTreeMap<String, String>;
/// A mapping with any values.
type Members = BTreeMap<String, Value>;

/// The pods that `weigh` creates in a cluster (`--on kubernetes`). Systems from `manifests` have the pods of
/// their files.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "pods")]
pub(crate) struct PodsFile {
    /// The pods that send the load.
    #[serde(default)]
    pub(crate) generators: PodFile,
    /// The pods of all systems with an `image`.
    #[serde(default)]
    pub(crate) systems: PodFile,
    /// The pods of single systems with an `image`, by the names of the systems: `{of: {database:
    /// {node-selector: {disk: ssd}}}}`. The settings of `systems` stay for the keys that are left out. A member of a
    /// mapping replaces the member of the same name, and `affinity` or a list replaces the whole value.
    #[serde(default)]
    pub(crate) of: BTreeMap<String, PodFile>,
    /// The DNS domain of the cluster. The pods of `manifests` find each other under it. By default it is the
    /// domain in the `/etc/resolv.conf` of `weigh` if `weigh` runs in a pod, or else `cluster.local`.
    pub(crate) cluster_domain: Option<Written<HostName>>,
}

/// The settings of pods. A cluster receives each value unchanged, in the form that its own documentation
/// describes, and refuses unknown members. A mapping keeps the defaults for the members that it leaves out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "pod")]
pub(crate) struct PodFile {
    /// Labels that a node must have: `{kubernetes.io/arch: amd64}`.
    #[schemars(with = "Option<Texts>")]
    pub(crate) node_selector: Option<Json>,
    /// Rules about nodes and other pods, as `affinity` of a pod. They replace the default. By default
    /// generators prefer nodes without systems. A system prefers the nodes that it has in other variants.
    #[schemars(with = "Option<Members>")]
    pub(crate) affinity: Option<Json>,
    /// Taints of nodes that the pods accept.
    #[schemars(with = "Option<Vec<Members>>")]
    pub(crate) tolerations: Option<Json>,
    /// The distribution over nodes and zones, as `topologySpreadConstraints` of a pod. By default generators
    /// are on different nodes if there are enough nodes.
    #[schemars(with = "Option<Vec<Members>>")]
    pub(crate) topology_spread: Option<Json>,
    /// The name of a PriorityClass.
    pub(crate) priority_class: Option<At<String>>,
    /// The name of a RuntimeClass.
    pub(crate) runtime_class: Option<At<String>>,
    /// The name of a ServiceAccount. The pods do not receive its token.
    pub(crate) service_account: Option<At<String>>,
    /// The names of Secrets for the registries of the images.
    pub(crate) image_pull_secrets: Option<Vec<At<String>>>,
    /// Labels of the pods, in addition to the labels of `weigh`.
    #[schemars(with = "Option<Texts>")]
    pub(crate) labels: Option<Json>,
    /// Annotations of the pods.
    #[schemars(with = "Option<Texts>")]
    pub(crate) annotations: Option<Json>,
    /// The `securityContext` of the pod. Generators run as user 65532, never as root, and with the seccomp
    /// profile of the runtime. Systems have this profile. A system with a `user` other than 0 never runs as
    /// root.
    #[schemars(with = "Option<Members>")]
    pub(crate) security_context: Option<Json>,
    /// The `securityContext` of the container. Generators have no capabilities and cannot get more
    /// privileges. The same holds for a system with a `user` other than 0. Other systems keep the
    /// capabilities of the runtime, which many images need.
    #[schemars(with = "Option<Members>")]
    pub(crate) container_security_context: Option<Json>,
    /// The requested resources: `{cpu: 1, memory: 256Mi}`. Generators request 0.1 of a core and 64 MiB. A
    /// system with `limits` requests its limits.
    #[schemars(with = "Option<Members>")]
    pub(crate) requests: Option<Json>,
    /// The limits of the resources. For generators, the limit is one core more than `load.threads`, so that
    /// it slows down no send. Their memory limit is 512 MiB, and 128 MiB more for each variant. The limits of
    /// `cpu` and `memory` of a system belong to its own `limits`.
    #[schemars(with = "Option<Members>")]
    pub(crate) limits: Option<Json>,
    /// Sidecars of a service mesh (Istio, Linkerd, Kuma and Consul). With `off`, labels and annotations
    /// forbid them. With `on`, the namespace decides. Generators have `off` by default, and systems `on`.
    pub(crate) sidecars: Option<Switch>,
}
