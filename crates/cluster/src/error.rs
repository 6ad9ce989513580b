//! What can go wrong with a cluster.

/// Why a cluster did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no cluster to speak to.
    #[error("there is no cluster to speak to: {0}; choose one with KUBECONFIG and `--context`")]
    Nowhere(String),
    /// The cluster does not allow it.
    #[error(
        "the cluster does not allow to {what}: {message}; deploy/kubernetes/weigh-rbac.yaml has what weigh needs"
    )]
    Forbidden {
        /// What was asked for, as a verb and its object.
        what: String,
        /// The cluster's own words.
        message: String,
    },
    /// The cluster refused it.
    #[error("the cluster refused to {what}: {message}")]
    Refused {
        /// What was asked for, as a verb and its object.
        what: String,
        /// The status of HTTP, such as 404.
        status: u16,
        /// The cluster's own words.
        message: String,
    },
    /// The API server gave no answer for too long.
    #[error("the API server was away for {seconds} s: it was asked to {what}; last: {last}")]
    Away {
        /// What was asked for.
        what: String,
        /// For how long it was tried.
        seconds: u64,
        /// The last failure.
        last: String,
    },
    /// The user wants to stop.
    #[error("stopped while the cluster was asked to {what}")]
    Stopped {
        /// What was asked for.
        what: String,
    },
    /// An answer has not the form that it should have.
    #[error("the cluster's answer to {what} cannot be read: {reason}")]
    Unreadable {
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something of a run is left in the cluster.
    #[error(
        "{count} of weigh's objects are still in the cluster after {seconds} s: {names}; {advice}"
    )]
    Left {
        /// How many.
        count: usize,
        /// For how long it was waited.
        seconds: u64,
        /// A few of their names.
        names: String,
        /// How to remove them.
        advice: String,
    },
}

impl ClusterError {
    /// Whether the object that was asked for does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClusterError::Refused { status: 404, .. })
    }
}
