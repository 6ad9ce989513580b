//! The errors of a cluster.

use crate::rule::Rule;

/// An operation of a cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No cluster is available.
    #[error("no cluster is available: {0}. Choose one with KUBECONFIG and `--context`")]
    Nowhere(String),
    /// The cluster does not allow it.
    #[error(
        "the cluster does not allow weigh to {what}: {message}. deploy/kubernetes/weigh-rbac.yaml grants the required rights"
    )]
    Forbidden {
        /// The request, as a verb and its object.
        what: String,
        /// The message of the cluster.
        message: String,
    },
    /// The API server does not accept the credentials: they are wrong, or have expired.
    #[error(
        "the cluster does not accept the credentials for the request to {what}: {message}. They may have expired. Renew them, or choose others with KUBECONFIG and `--context`"
    )]
    Unknown {
        /// The request, as a verb and its object.
        what: String,
        /// The message of the cluster.
        message: String,
    },
    /// A rule of the namespace or of the cluster does not allow the object. Other rights would not help.
    #[error("{rule} does not allow weigh to {what}: {message}. {}", rule.remedy())]
    Ruled {
        /// The request, as a verb and its object.
        what: String,
        /// The rule.
        rule: Rule,
        /// The message of the cluster, which names the object and the rule.
        message: String,
    },
    /// The cluster refused it.
    #[error("the cluster refused to {what}: {message}")]
    Refused {
        /// The request, as a verb and its object.
        what: String,
        /// The HTTP status, such as 404.
        status: u16,
        /// The message of the cluster.
        message: String,
    },
    /// The API server did not respond for too long.
    #[error(
        "the API server did not answer for {seconds} s. The request was to {what}. The last failure: {last}"
    )]
    Away {
        /// The request, as a verb and its object.
        what: String,
        /// The time of all attempts.
        seconds: u64,
        /// The last failure.
        last: String,
    },
    /// The user stopped the run.
    #[error("stopped during the request to {what}")]
    Stopped {
        /// The request, as a verb and its object.
        what: String,
    },
    /// A response has an unexpected form.
    #[error("the cluster's answer to {what} cannot be read: {reason}")]
    Unreadable {
        /// The request, as a verb and its object.
        what: String,
        /// The parse error, or the missing member.
        reason: String,
    },
    /// Objects of a run are left in the cluster.
    #[error(
        "{count} of weigh's objects are still in the cluster after {seconds} s: {names}. {advice}"
    )]
    Left {
        /// Number of objects.
        count: usize,
        /// The time limit in seconds.
        seconds: u64,
        /// Some of the names.
        names: String,
        /// The command that removes them.
        advice: String,
    },
}

impl ClusterError {
    /// True if the cluster does not take this object, and might take another: a mistake in the object, or a rule
    /// of the namespace.
    #[must_use]
    pub fn is_about_the_object(&self) -> bool {
        matches!(
            self,
            ClusterError::Refused { .. } | ClusterError::Ruled { .. }
        )
    }

    /// True if the requested object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, ClusterError::Refused { status: 404, .. })
    }
}
