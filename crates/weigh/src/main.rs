//! `weigh`: tells what a layer of an API stack costs.

mod address;
mod build_cache;
mod cli;
mod command;
mod command_text;
mod compose;
mod console;
mod containers;
mod debug_log;
mod digest;
mod environment;
mod exit;
mod files;
mod format;
mod gates;
mod invalid;
mod keeper;
mod labs;
mod measure;
mod perf;
mod pods;
mod progress;
mod prometheus_text;
mod prove;
mod published;
mod record;
mod screen;
mod secrets;
mod sending;
mod stop;
mod systems;
mod yaml_text;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    // The helpers of the rig are this program again, so that one binary is all there is to install.
    match arguments.nth(1).as_deref().and_then(|word| word.to_str()) {
        Some(keeper::KEEPER) => rig::keeper::main(keeper::run_errand),
        Some(keeper::LAUNCH) => rig::launch::main(arguments),
        _ => cli::main().into(),
    }
}
