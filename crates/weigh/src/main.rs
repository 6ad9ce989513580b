//! `weigh`: measures the cost of a layer in an API stack.

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
    keeper::helper(std::env::args_os()).unwrap_or_else(|| cli::main().into())
}
