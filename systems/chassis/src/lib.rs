//! What our services on hyper stand on: sockets, threads, signals and the log.
//!
//! One thread accepts and deals connections out in turn, so that few connections spread evenly;
//! each [`Worker`] serves its own on a runtime of its own, so that no connection changes threads and
//! nothing is shared that a service does not share itself. Absent on purpose: routes, and TLS.

mod command_line;
mod connection;
mod door;
pub mod journal;
mod serve;
mod worker;

use std::error::Error;
use std::process::ExitCode;

pub use command_line::{read, with_file, workers};
pub use connection::{Connection, Line};
pub use door::{Door, prepare};
pub use serve::{runtime, serve, stop_signal};
pub use worker::{Desk, Patience, Worker, worker_thread};

/// The whole program: from the command line to a stopped service.
///
/// Ends with 2 when the command line is wrong, with 1 and a line on standard error when `serve`
/// fails, with 0 otherwise.
pub fn run<C, E: Error>(
    config: Result<C, clap::Error>,
    serve: impl FnOnce(&C) -> Result<(), E>,
) -> ExitCode {
    let config = match config {
        Ok(config) => config,
        Err(answer) => {
            // Nobody is left to be told when the stream is closed.
            let _ = answer.print();
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    match serve(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            journal::complain(&error);
            ExitCode::FAILURE
        }
    }
}
