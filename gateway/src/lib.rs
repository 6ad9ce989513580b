//! A GraphQL gateway, federated or of merged schemas, with header rules, Rhai scripts and coprocessors.
//!
//! Start reading at [`run`]. `process::startup` reads the command line and runs the process.
//! `process::worker` is a thread that serves connections. `http::front` handles HTTP. `graphql::pipeline` is
//! the list of stages of a GraphQL request. `stream` produces responses in several parts.
//! `merged` is the part of the program for merged schemas.
//! `process::generation` is all data that is built from one configuration.
//!
//! A request never leaves the thread that accepted its connection. All decisions that depend only on the
//! configuration are made when it is read.
//!
//! Absent on purpose: GraphQL itself (`gateway-federation`, `gateway-remote`), the extension points
//! (`gateway-extensions`), GraphQL over HTTP (`graphql-http`), the HTTP client (`gateway-upstream`) and the
//! configuration's keys (`gateway-config`).

mod graphql;
mod http;
mod merged;
mod process;
mod stream;

pub use process::startup::run;
