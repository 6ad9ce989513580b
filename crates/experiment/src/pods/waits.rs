//! Time limits for pods of a cluster to start.

use std::time::Duration;

/// Time limit for the scheduler to find a node. It reports a full cluster at once, and only a new node helps.
const PLACED_WITHIN: Duration = Duration::from_secs(20);
/// Time limit for a placed pod to start: image pull and volumes.
const STARTED_WITHIN: Duration = Duration::from_secs(90);
/// Time limit for the cluster to create the pods of a workload, after its first refusal.
pub(super) const REFUSED_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for a kubelet to report that a container is ready, besides the time of the system itself.
pub(super) const SEEN_WITHIN: Duration = Duration::from_secs(10);
/// Time after which a warning of a kubelet about a volume or a network does not go away by itself.
pub(super) const TROUBLED_WITHIN: Duration = Duration::from_secs(25);
/// Time of the generators besides the start of their pods, until they have met.
const MEETING: Duration = Duration::from_secs(30);

/// Warnings of a kubelet about a pod that cannot start.
pub(super) const TROUBLES: [&str; 4] = [
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "FailedBinding",
];

/// The time limits of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodWaits {
    /// The time limit of the user, such as 10 minutes for an autoscaler that adds nodes.
    pub given: Option<Duration>,
}

impl PodWaits {
    /// Time limit for a pod to get a node.
    pub(super) fn placed(self) -> Duration {
        self.given.unwrap_or(PLACED_WITHIN)
    }

    /// Time limit for a pod with a node to start.
    pub(super) fn started(self) -> Duration {
        self.given.unwrap_or(STARTED_WITHIN)
    }

    /// Time limit for all pods of a workload to start.
    pub fn all(self) -> Duration {
        self.placed() + self.started()
    }

    /// Time limit for generators to meet. This process sees the causes, and decides before.
    pub fn met(self) -> Duration {
        self.all() + MEETING
    }
}
