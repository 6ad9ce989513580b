//! `weigh`: tells what a layer of an API stack costs.

mod address;
mod build_cache;
mod cli;
mod command;
mod compose;
mod console;
mod containers;
mod debug_log;
mod environment;
mod exit;
mod files;
mod format;
mod gates;
mod labs;
mod measure;
mod perf;
mod pods;
mod progress;
mod prove;
mod published;
mod record;
mod screen;
mod sending;
mod stop;
mod systems;
mod yaml_text;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    // The two helpers of the rig are this program again, so that one binary is
    // all there is to install. They are dispatched before anything else runs.
    match arguments.nth(1).as_deref().and_then(|word| word.to_str()) {
        Some(systems::KEEPER) => rig::keeper::main(run_errand),
        Some(systems::LAUNCH) => rig::launch::main(arguments),
        _ => cli::main().into(),
    }
}

/// What the keeper does when a run has ended: each errand is of a cluster or of a container engine.
fn run_errand(errand: &str, owner: rig::keeper::OwnerEnd) -> Result<(), String> {
    pods::errand::run(errand, owner).unwrap_or_else(|| containers::run_errand(errand, owner))
}
