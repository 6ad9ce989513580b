//! The requests that are made of the API: every one is in these lists, which the RBAC manifest is
//! checked against.

use std::fmt;

/// What is done to objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One is read.
    Get,
    /// All are read, with a selector of labels.
    List,
    /// One is made.
    Create,
    /// One is made or changed by server-side apply, or changed by a merge.
    Patch,
    /// One is removed.
    Delete,
}

impl Verb {
    /// Its word in RBAC.
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

/// Which objects it is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// The owner of a run, and its generators.
    Jobs,
    /// The owner of a round.
    ConfigMaps,
    /// What generators are told: it may hold headers with tokens.
    Secrets,
    /// Where systems are reached.
    Services,
    /// Systems of one instance.
    Pods,
    /// What a pod has written to its standard output.
    PodLogs,
    /// Systems of several instances.
    Deployments,
    /// Those of the user's own manifests.
    StatefulSets,
    /// What pods run on.
    Nodes,
    /// The kubelet behind a node.
    NodeProxy,
}

/// Every call that this crate makes.
pub const NEEDED: &[(Resource, &[Verb])] = &[
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
    (Resource::Pods, &[Verb::Create, Verb::List]),
    (Resource::PodLogs, &[Verb::Get]),
    (Resource::Deployments, &[Verb::Create, Verb::List]),
    (Resource::StatefulSets, &[Verb::Create, Verb::List]),
    (Resource::Nodes, &[Verb::Get]),
    (Resource::NodeProxy, &[Verb::Get]),
];

impl Resource {
    /// API group, as RBAC names it: empty for the core.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Resource::Jobs => "batch",
            Resource::Deployments | Resource::StatefulSets => "apps",
            _ => "",
        }
    }

    /// Its name in RBAC.
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
            Resource::Nodes => "nodes",
            Resource::NodeProxy => "nodes/proxy",
        }
    }

    /// Whether it lies in no namespace, so that a ClusterRole is needed for it.
    #[must_use]
    pub fn is_of_cluster(self) -> bool {
        matches!(self, Resource::Nodes | Resource::NodeProxy)
    }

    /// One of them, as a person calls it.
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
            Resource::Nodes => "node",
            Resource::NodeProxy => "kubelet of node",
        }
    }

    /// The path of one of them, or of all.
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

/// `create the pod router-1`
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
