//! Why manifests are not applied.

/// Why manifests are not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no YAML, or no object of a cluster.
    #[error(
        "`{0}`: expected manifests, objects with `apiVersion`, `kind` and a plain `metadata.name`: {1}"
    )]
    NoObject(String, String),
    /// A kind that gives rights, reaches beyond the run, or of which is not known what it names.
    #[error(
        "`{kind}/{name}` of `{api_version}` is not applied: expected a Deployment, StatefulSet, Pod, Service, ConfigMap or Secret; leave it out with `without: [{kind}]`, or apply it yourself before the run"
    )]
    Kind {
        /// The kind.
        kind: String,
        /// The API group and version.
        api_version: String,
        /// The object's name.
        name: String,
    },
    /// The same kind and name twice.
    #[error("`{0}` is in the files twice; leave one out")]
    Twice(String),
    /// A member that cannot be had.
    #[error("`{object}` has `{what}`: {advice}")]
    Member {
        /// Kind and name.
        object: String,
        /// The member.
        what: String,
        /// Why not, and what to do.
        advice: String,
    },
    /// The Service that gets the load is not in the files.
    #[error("the files have no Service `{0}` to send the load to; they have: {1}")]
    NoService(String, String),
    /// It has no such port, or several.
    #[error("the Service `{0}` has the ports {1}: say with `port` which one gets the load")]
    Port(String, String),
    /// No pod has the labels of its selector.
    #[error("no pod of the files has the labels that the Service `{0}` selects")]
    NoPods(String),
    /// A workload that the lab names is not in the files.
    #[error("the files have no Deployment, StatefulSet or Pod `{0}`; they have: {1}")]
    NoWorkload(String, String),
    /// Several workloads have a name that the lab uses.
    #[error("several workloads are named `{0}`; rename one, or leave one out")]
    Ambiguous(String),
    /// A container that the lab names is not in the workload.
    #[error("`{0}` has no container `{1}`")]
    NoContainer(String, String),
    /// No pods, or too many.
    #[error("the workloads have {0} pods together; expected 1 to 64")]
    Pods(u64),
}
