//! A federated GraphQL gateway with header rules, Rhai scripts and coprocessors.

use std::process::ExitCode;

/// Workers allocate and free many small things in turn, each in heaps of its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gateway::run(std::env::args_os())
}
