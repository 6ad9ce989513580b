//! Pods in a Kubernetes cluster for the length of a run.
//!
//! | topic | module |
//! |---|---|
//! | the requests to the API, and the permission of each | [`call`] |
//! | a connection that survives short outages of the API server | [`connection`] |
//! | the log of a running container | [`followed_log`] |
//! | the proxy on the way to the API server | `proxy` |
//! | one owner of all objects of a run, so that no object is left | [`owner`] |
//! | pods, Deployments and Services of measured systems | [`workload`] |
//! | manifests of the user instead of these: the applied objects, and their names | [`manifests`] |
//! | objects of service meshes in these manifests | [`mesh`] |
//! | the Job with the pods that send the load | [`generators`] |
//! | pods that pull images before the first round | [`image_pull`] |
//! | the state of pods | [`state`] |
//! | the events of an object | [`event`] |
//! | rules of a namespace that refuse an object | [`rule`] |
//! | the settings of pods, and their defaults | [`pod_settings`] |
//! | processor time and memory, from the kubelet | [`kubelet`] |
//! | the description of nodes | [`node`] |
//!
//! It does not depend on labs or statistics. Absent on purpose: watches. All state is polled, so an outage of
//! an API server or a kubelet only costs time.

pub mod call;
pub mod connection;
mod error;
pub mod event;
pub mod followed_log;
pub mod generators;
pub mod image_pull;
pub mod kubelet;
pub mod manifests;
pub mod mesh;
pub mod node;
pub mod owner;
pub mod pod_settings;
mod proxy;
pub mod rule;
pub mod state;
pub mod workload;

pub use connection::{ApiConnection, ClusterContext};
pub use error::ClusterError;
pub use owner::Run;
