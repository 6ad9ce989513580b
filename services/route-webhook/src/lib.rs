//! The webhook of the IntegrationRoute controller: computes the Kubernetes objects of a route.
//!
//! Start reading at [`sync`], a pure function from the request of a reconciliation to its response.
//! [`certificate`] does the same for the certificates of routes. `exchange` is the HTTP layer around them,
//! and `deploy` writes routes into a cluster.

pub mod certificate;
mod clock;
mod config;
mod cors;
mod credentials;
mod deploy;
mod endpoint;
mod etag;
mod exchange;
pub mod json;
mod metrics;
pub mod request;
mod route;
mod serve;
pub mod sync;

pub use serve::run;
