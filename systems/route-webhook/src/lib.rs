//! The webhook of the IntegrationRoute controller: what a route should consist of in Kubernetes.
//!
//! Start reading at [`sync`], which decides: a pure function from the request of a reconciliation to
//! its answer, as [`certificate`] is for the certificates of routes. `exchange` is the HTTP around
//! them, and `deploy` puts routes into a cluster.

pub mod certificate;
mod clock;
mod config;
mod cors;
mod deploy;
mod endpoint;
mod exchange;
pub mod json;
mod metrics;
pub mod request;
mod route;
mod serve;
pub mod sync;

pub use serve::run;
