//! `cargo xtask …`: the chores of the repository.

mod aa;
mod attack;
mod bench;
mod calibrate;
mod chores;
mod clock;
mod cluster;
mod command_line;
mod dist;
mod engine;
mod gateway_bench;
mod hex;
mod judged;
mod method;
mod page;
mod process;
mod profile_guided;
mod repository;
mod results;
mod rust_source;
mod shape;
mod slices;
mod test_run;
#[cfg(test)]
mod tidy;

use std::process::ExitCode;

use clap::Parser as _;

/// A mistake is one line and the last, without the backtrace that would bury it.
#[expect(clippy::print_stderr, reason = "the only voice of a chore")]
fn main() -> ExitCode {
    let Err(error) = command_line::Chore::parse().run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}
