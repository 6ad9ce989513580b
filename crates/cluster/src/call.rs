//! The requests to the API. All are in these lists, and a test checks the RBAC manifest against them.

use std::fmt;

use serde_json::Value;

use crate::mesh::{KINDS, MeshKind};

/// An action on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all objects with a label selector.
    List,
    /// Creates one object.
    Create,
    /// Creates or changes one object by server-side apply, or changes it by a merge.
    Patch,
    /// Removes one object.
    Delete,
}

impl Verb {
    /// Returns the RBAC verb.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Create => "create",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
        }
    }
}

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The owner of a run, and its generators.
    Jobs,
    /// The owner of a round.
    ConfigMaps,
    /// The input of generators. It may contain headers with tokens.
    Secrets,
    /// The addresses of systems.
    Services,
    /// Systems with one instance.
    Pods,
    /// The standard output of a pod.
    PodLogs,
    /// Systems with several instances.
    Deployments,
    /// StatefulSets of the user's manifests.
    StatefulSets,
    /// The reasons why an object does not progress.
    Events,
    /// ServiceAccounts of the user's manifests.
    ServiceAccounts,
    /// Objects of a service mesh in the user's manifests.
    Mesh(MeshKind),
    /// The machines that pods run on.
    Nodes,
    /// The kubelet behind a node.
    NodeProxy,
}

/// Every call of this crate.
pub fn needed() -> impl Iterator<Item = (Resource, &'static [Verb])> {
    // Their end is not awaited, as for Secrets. The cluster removes them with their owner.
    let mesh = KINDS.map(|kind| (Resource::Mesh(kind), &[Verb::Create][..]));
    NEEDED.iter().copied().chain(mesh)
}

/// Every call of this crate, except for objects of a mesh.
const NEEDED: &[(Resource, &[Verb])] = &[
    (
        Resource::Jobs,
        &[Verb::Create, Verb::Patch, Verb::Delete, Verb::List],
    ),
    (
        Resource::ConfigMaps,
        &[Verb::Create, Verb::Delete, Verb::List],
    ),
    (Resource::Secrets, &[Verb::Create]),
    (Resource::Services, &[Verb::Create, Verb::List]),
    (Resource::Pods, &[Verb::Create, Verb::List, Verb::Delete]),
    (Resource::PodLogs, &[Verb::Get]),
    (Resource::Deployments, &[Verb::Create, Verb::List]),
    (Resource::StatefulSets, &[Verb::Create, Verb::List]),
    (Resource::Events, &[Verb::List]),
    (Resource::ServiceAccounts, &[Verb::Create]),
    (Resource::Nodes, &[Verb::Get, Verb::List]),
    (Resource::NodeProxy, &[Verb::Get]),
];

impl Resource {
    /// Returns the API group as in RBAC. Empty for the core group.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Resource::Jobs => "batch",
            Resource::Deployments | Resource::StatefulSets => "apps",
            Resource::Mesh(kind) => kind.group,
            _ => "",
        }
    }

    /// Returns the resource name as in RBAC.
    #[must_use]
    pub fn rbac_name(self) -> &'static str {
        match self {
            Resource::Jobs => "jobs",
            Resource::ConfigMaps => "configmaps",
            Resource::Secrets => "secrets",
            Resource::Services => "services",
            Resource::Pods => "pods",
            Resource::PodLogs => "pods/log",
            Resource::Deployments => "deployments",
            Resource::StatefulSets => "statefulsets",
            Resource::Events => "events",
            Resource::ServiceAccounts => "serviceaccounts",
            Resource::Mesh(kind) => kind.plural,
            Resource::Nodes => "nodes",
            Resource::NodeProxy => "nodes/proxy",
        }
    }

    /// True if it belongs to no namespace and needs a ClusterRole.
    #[must_use]
    pub fn is_of_cluster(self) -> bool {
        matches!(self, Resource::Nodes | Resource::NodeProxy)
    }

    /// Returns the name of one object for messages.
    #[must_use]
    pub fn singular(self) -> &'static str {
        match self {
            Resource::Jobs => "Job",
            Resource::ConfigMaps => "ConfigMap",
            Resource::Secrets => "Secret",
            Resource::Services => "Service",
            Resource::Pods => "pod",
            Resource::PodLogs => "log of pod",
            Resource::Deployments => "Deployment",
            Resource::StatefulSets => "StatefulSet",
            Resource::Events => "event",
            Resource::ServiceAccounts => "ServiceAccount",
            Resource::Mesh(kind) => kind.kind,
            Resource::Nodes => "node",
            Resource::NodeProxy => "kubelet of node",
        }
    }

    /// Returns the path for a new object. Objects of a mesh have their own API version.
    pub(crate) fn path_of_new(self, namespace: &str, object: &Value) -> String {
        match (self, object["apiVersion"].as_str()) {
            (Resource::Mesh(kind), Some(version)) => {
                format!("/apis/{version}/namespaces/{namespace}/{}", kind.plural)
            }
            _ => self.path(namespace, None),
        }
    }

    /// Returns the path of one object, or of all objects.
    pub(crate) fn path(self, namespace: &str, name: Option<&str>) -> String {
        let root = match self.group() {
            "" => "/api/v1".to_owned(),
            group => format!("/apis/{group}/v1"),
        };
        let (plural, below) = match self {
            Resource::PodLogs => ("pods", "/log"),
            Resource::NodeProxy => ("nodes", "/proxy/stats/summary"),
            other => (other.rbac_name(), ""),
        };
        let within = match self.is_of_cluster() {
            true => String::new(),
            false => format!("/namespaces/{namespace}"),
        };
        match name {
            None => format!("{root}{within}/{plural}"),
            Some(name) => format!("{root}{within}/{plural}/{name}{below}"),
        }
    }
}

/// A call for messages, such as `create the pod router-1`.
pub(crate) struct Asked<'a>(pub(crate) Verb, pub(crate) Resource, pub(crate) &'a str);

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked(verb, resource, name) = self;
        let kind = resource.singular();
        match verb {
            Verb::List => write!(f, "list the objects of kind {kind}"),
            verb => write!(f, "{} the {kind} `{name}`", verb.word()),
        }
    }
}
