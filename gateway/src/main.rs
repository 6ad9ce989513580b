//! A federated GraphQL gateway with header rules, Rhai scripts and coprocessors.

use std::process::ExitCode;

/// Each worker allocates and frees many small values. mimalloc gives each thread a heap of its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    gateway::run(std::env::args_os())
}
