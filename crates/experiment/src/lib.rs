//! Experiments: systems start, prove that they do their work, and get load in rounds. A run becomes a
//! recording.
//!
//! | topic | module |
//! |---|---|
//! | a run of a lab, from the proofs to the last round | [`measure`] |
//! | systems: processes, containers, compose projects, and systems that run already | [`systems`], [`containers`], [`compose`] |
//! | pods of a cluster | [`pods`] |
//! | builds, once for each command | [`build_cache`] |
//! | the recording of a run | [`record`], [`environment`], [`secrets`] |
//! | the output while a run lasts | [`console`], [`progress`], [`published`] |
//! | addresses of targets, and the requests to them | [`address`], [`sending`] |
//! | the end of a run | [`exit`], [`invalid`], [`stop`] |
//!
//! Subcommands, flags and help are absent on purpose. The crate `weigh` has them.

pub mod address;
pub mod build_cache;
mod command_text;
pub mod compose;
mod connections;
pub mod console;
pub mod containers;
pub mod digest;
pub mod environment;
pub mod exit;
pub mod file_url;
pub mod files;
pub mod gates;
mod http_server;
pub mod invalid;
pub mod measure;
mod perf;
pub mod pods;
pub mod progress;
mod prometheus_text;
mod prove;
pub mod published;
pub mod record;
mod runtimes;
mod screen;
pub mod secrets;
pub mod sending;
pub mod served;
pub mod stop;
pub mod systems;
mod waits;
