//! The origin of the router labs: two federation subgraphs that count what they saw.
//!
//! One process, one port: `/locations` and `/reviews` are the subgraphs, `/seen` reports what they
//! were asked. The data never change, so an answer that was computed once stays right. For labs about
//! telemetry it is a collector as well, and `/collected` reports what came.

mod answer;
mod collected;
mod config;
mod locations;
mod reviews;
mod seen;
mod serve;
mod subgraph;
mod universe;

use std::process::ExitCode;

fn main() -> ExitCode {
    serve::run(std::env::args_os())
}
