//! Services of a compose file, as one variant needs them.

use std::path::PathBuf;

/// A project of a compose file that is started for a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    /// Path of the compose file.
    pub file: PathBuf,
    /// The service that receives the load. Its address is the address of the system. It is never in
    /// `without`.
    pub service: String,
    /// The port on which it listens within its container, if the lab sets it. Never 0.
    pub port: Option<u16>,
    /// Profiles of services that also run.
    pub profiles: Vec<String>,
    /// Variables for the `${…}` of the file, in the order of the lab. Names are unique.
    pub env: Vec<(String, String)>,
    /// Services that are left out. Names are unique.
    pub without: Vec<String>,
    /// Changes of services. Names are unique, and no service of `without` is among them.
    pub services: Vec<ServiceChange>,
}

/// The changes of a variant to one service of a compose file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceChange {
    /// Name of the service.
    pub service: String,
    /// Variables of its environment, added or replaced. Names are unique.
    pub env: Vec<(String, String)>,
    /// The image that it runs instead of its own.
    pub image: Option<String>,
    /// Number of containers of it, 1 to 64.
    pub replicas: Option<u32>,
}
