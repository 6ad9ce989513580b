//! Services of a compose file, as one variant needs them.

use std::path::PathBuf;

/// A project of a compose file that is started for a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    /// The compose file.
    pub file: PathBuf,
    /// The service that gets the load, and whose address is that of the system. It is not left out.
    pub service: String,
    /// The port that it listens on within its container, where the lab says so. Never 0.
    pub port: Option<u16>,
    /// Profiles whose services run as well.
    pub profiles: Vec<String>,
    /// Variables for the `${…}` of the file, in the order of the lab; names are unique.
    pub env: Vec<(String, String)>,
    /// Services that are left out; each once.
    pub without: Vec<String>,
    /// What is changed in services; names are unique, and no service of `without` is among them.
    pub services: Vec<ServiceChange>,
}

/// What a variant changes in one service of a compose file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceChange {
    /// The service.
    pub service: String,
    /// Variables of its environment, added or replaced; names are unique.
    pub env: Vec<(String, String)>,
    /// The image that it runs instead of its own.
    pub image: Option<String>,
    /// How many containers of it run, 1 to 64.
    pub replicas: Option<u32>,
}
