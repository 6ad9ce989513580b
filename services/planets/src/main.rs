//! The origin of the router labs: two federation subgraphs that count their requests.
//!
//! One process, one port: `/locations` and `/reviews` are the subgraphs, and `/seen` reports their requests.
//! The data never change, so a computed response stays valid. For labs about telemetry it is also a
//! collector, and `/collected` reports the received telemetry.

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
