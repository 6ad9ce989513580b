//! A GraphQL gateway, federated or of merged schemas, with header rules, Rhai scripts and
//! coprocessors.
//!
//! Start reading at [`run`]. `startup` reads the command line and runs the process; `worker` is a
//! thread that serves connections; `front` handles HTTP; `pipeline` is the list of stages of a
//! GraphQL request; `generation` is everything that follows from one configuration.
//!
//! The one idea: a request never leaves the thread that accepted its connection, and everything
//! that can be decided when a configuration is read is decided then.
//!
//! Absent on purpose: GraphQL itself (`gateway-federation`, `gateway-remote`), the extension points
//! (`gateway-extensions`), GraphQL over HTTP (`graphql-http`), the HTTP client (`gateway-upstream`)
//! and the configuration's keys (`gateway-config`).

mod account;
mod admission;
mod apq;
mod authorization;
mod batch;
mod beginning;
mod checking;
mod clock;
mod command_line;
mod compression;
mod connections;
mod cors;
mod csrf;
mod deferred;
mod demand;
mod detached;
mod drain;
mod engine;
mod entrance;
mod environment;
mod execution;
mod exporting;
mod exports;
mod front;
mod generation;
mod health;
mod invalidation;
mod listen;
mod loader;
mod mailbox;
mod metrics;
mod operation_list;
mod outgoing;
mod page;
mod parts;
mod path;
mod pipeline;
mod planning;
mod process_state;
mod progressive_override;
mod query_planning;
mod reload;
mod remotes;
mod reply;
mod rest;
mod serving;
mod sites;
mod sources;
mod spans;
mod startup;
mod subgraphs;
mod subscription;
mod summary;
mod tls;
mod token_keys;
mod understood;
mod worker;

pub use startup::run;
