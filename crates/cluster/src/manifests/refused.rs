//! The reasons to refuse manifests.

/// The reason to refuse manifests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A file is not YAML, or contains no object of a cluster.
    #[error(
        "`{0}`: expected manifests, objects with `apiVersion`, `kind` and a plain `metadata.name`: {1}"
    )]
    NoObject(String, String),
    /// A kind that grants rights, affects more than the run, or names unknown objects.
    #[error(
        "`{kind}/{name}` of `{api_version}` is not applied: expected a Deployment, StatefulSet, Pod, Service, ConfigMap, Secret, ServiceAccount or an object of a mesh. Leave it out with `without: [{kind}]`, or apply it yourself before the run"
    )]
    Kind {
        /// Kind of the object.
        kind: String,
        /// API group and version of the object.
        api_version: String,
        /// Name of the object.
        name: String,
    },
    /// Several reasons.
    #[error("{}", all_of(.0))]
    Several(Vec<Refused>),
    /// The same kind and name twice.
    #[error("`{0}` is in the files twice. Remove one of them")]
    Twice(String),
    /// A member that is not allowed.
    #[error("`{object}` has `{what}`: {advice}")]
    Member {
        /// Kind and name.
        object: String,
        /// The member that is not allowed.
        what: String,
        /// The reason and the advice.
        advice: String,
    },
    /// The Service that receives the load is not in the files.
    #[error("the files have no Service `{0}` for the load. They contain: {1}")]
    NoService(String, String),
    /// The Service has no such port, or several ports.
    #[error(
        "the Service `{0}` has the ports {1}. Write the port that receives the load under `port`"
    )]
    Port(String, String),
    /// No pod has the labels of its selector.
    #[error("no pod of the files has the labels that the Service `{0}` selects")]
    NoPods(String),
    /// A workload that the lab names is not in the files.
    #[error("the files have no Deployment, StatefulSet or Pod `{0}`. They contain: {1}")]
    NoWorkload(String, String),
    /// Several workloads have a name that the lab uses.
    #[error("several workloads are named `{0}`. Rename one, or leave one out")]
    Ambiguous(String),
    /// A container that the lab names is not in the workload.
    #[error("`{0}` has no container `{1}`")]
    NoContainer(String, String),
    /// No pods, or too many.
    #[error("expected 1 to 64 pods in all workloads, found {0}")]
    Pods(u64),
}

/// Returns all reasons. Kinds that are not applied have one remedy together.
fn all_of(refused: &[Refused]) -> String {
    let (mut objects, mut kinds, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for one in refused {
        match one {
            Refused::Kind {
                kind,
                api_version,
                name,
            } => {
                objects.push(format!("`{kind}/{name}` of `{api_version}`"));
                if !kinds.contains(kind) {
                    kinds.push(kind.clone());
                }
            }
            other => rest.push(other.to_string()),
        }
    }
    if !objects.is_empty() {
        let advice = format!(
            "not applied are {}: expected Deployments, StatefulSets, Pods, Services, ConfigMaps, Secrets, ServiceAccounts and objects of a mesh. Leave the others out with `without: [{}]`, or apply them yourself before the run",
            objects.join(", "),
            kinds.join(", ")
        );
        rest.insert(0, advice);
    }
    rest.join("\n")
}
