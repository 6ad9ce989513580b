//! A GraphQL gateway, federated or of merged schemas, with header rules, Rhai scripts and
//! coprocessors.
//!
//! Start reading at [`run`]. `process::startup` reads the command line and runs the process.
//! `process::worker` is a thread that serves connections. `http::front` handles HTTP.
//! `graphql::pipeline` is the list of stages of a GraphQL request. `stream` makes answers in parts.
//! `process::generation` is everything that follows from one configuration.
//!
//! The one idea: a request never leaves the thread that accepted its connection, and everything
//! that can be decided when a configuration is read is decided then.
//!
//! Absent on purpose: GraphQL itself (`gateway-federation`, `gateway-remote`), the extension points
//! (`gateway-extensions`), GraphQL over HTTP (`graphql-http`), the HTTP client (`gateway-upstream`)
//! and the configuration's keys (`gateway-config`).

mod graphql;
mod http;
mod process;
mod stream;

pub use process::startup::run;
