//! The pods that a cluster runs for a lab.

use std::collections::BTreeMap;

use model::PodSettings;

/// The settings of pods in a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pods {
    /// The pods that send the load.
    pub generators: PodSettings,
    /// The pods of systems with an image.
    pub systems: PodSettings,
    /// The pods of single systems, by their names. They contain the settings of `systems`.
    pub of: BTreeMap<String, PodSettings>,
    /// The DNS domain of the cluster, without a dot at its ends. `None` if the lab does not set it.
    pub cluster_domain: Option<String>,
}

impl Pods {
    /// The settings of the pods of a system.
    #[must_use]
    pub fn of_system(&self, name: &str) -> &PodSettings {
        self.of.get(name).unwrap_or(&self.systems)
    }
}
