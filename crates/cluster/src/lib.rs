//! Pods in a Kubernetes cluster for the length of a run.
//!
//! | what | where |
//! |---|---|
//! | the requests that are made, and which permission each needs | [`call`] |
//! | a connection that outlives an API server that is away for a while | [`connection`] |
//! | one owner of all that a run makes, so that nothing is left | [`owner`] |
//! | pods, Deployments and Services of what is weighed | [`workload`] |
//! | manifests of the user instead of these: what is applied, and under which names | [`manifests`] |
//! | the Job whose pods send the load | [`generators`] |
//! | what has become of pods | [`state`] |
//! | processor time and memory, by the kubelet | [`kubelet`] |
//! | what nodes are | [`node`] |
//!
//! It knows nothing of labs or statistics. Absent on purpose: watches. All is asked for again and
//! again, so that an API server or a kubelet that was away changes nothing but the time.

pub mod call;
pub mod connection;
mod error;
pub mod generators;
pub mod kubelet;
pub mod manifests;
pub mod node;
pub mod owner;
pub mod state;
pub mod workload;

pub use connection::{Connection, Place};
pub use error::ClusterError;
pub use owner::Run;
