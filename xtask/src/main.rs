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
mod judged;
mod method;
mod page;
mod process;
mod results;
mod rust_source;
mod shape;
mod slices;
#[cfg(test)]
mod tidy;

use clap::Parser;

fn main() -> anyhow::Result<()> {
    command_line::Chore::parse().run()
}
