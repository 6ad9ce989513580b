//! Manifests of the user, as one variant needs them.

use std::path::PathBuf;

/// Objects of a cluster that are made for a variant, as files of the user say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests {
    /// The files, in the order of the lab. Never empty.
    pub files: Vec<PathBuf>,
    /// The Service that gets the load, and whose address is that of the system.
    pub service: String,
    /// The port of that Service, where the lab says so. Never 0.
    pub port: Option<u16>,
    /// The workload whose pods are counted; all of them where absent.
    pub workload: Option<String>,
    /// What is left out: `KIND`, or `KIND/NAME`; each once.
    pub without: Vec<String>,
    /// What is changed in workloads; names are unique.
    pub changes: Vec<WorkloadChange>,
}

/// What a variant changes in one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadChange {
    /// The name of the Deployment, StatefulSet or Pod.
    pub workload: String,
    /// The container in its pods; the first one where absent.
    pub container: Option<String>,
    /// Variables of that container, added or replaced; names are unique.
    pub env: Vec<(String, String)>,
    /// The image that it runs instead of its own.
    pub image: Option<String>,
    /// How many pods of it run, 1 to 64.
    pub replicas: Option<u32>,
}
