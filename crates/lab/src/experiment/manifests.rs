//! Manifests of the user, as one variant needs them.

use std::path::PathBuf;

/// Objects of a cluster that are created for a variant, from files of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests {
    /// The files, in the order of the lab. Never empty.
    pub files: Vec<PathBuf>,
    /// The Service that receives the load. Its address is the address of the system.
    pub service: String,
    /// The port of that Service, if the lab sets it. Never 0.
    pub port: Option<u16>,
    /// The workload with the pods to count. All workloads if `None`.
    pub workload: Option<String>,
    /// Objects that are left out, as `KIND` or `KIND/NAME`. Each appears once.
    pub without: Vec<String>,
    /// Changes of workloads. Names are unique.
    pub changes: Vec<WorkloadChange>,
}

/// The changes of a variant to one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadChange {
    /// The name of the Deployment, StatefulSet or Pod.
    pub workload: String,
    /// The container in its pods. The first container if `None`.
    pub container: Option<String>,
    /// Variables of that container, added or replaced. Names are unique.
    pub env: Vec<(String, String)>,
    /// The image that it runs instead of its own.
    pub image: Option<String>,
    /// Number of pods of it, 1 to 64.
    pub replicas: Option<u32>,
}
