//! `weigh`: measures the cost of a layer in an API stack.

mod cli;
mod cluster_args;
mod command;
mod consent;
mod debug_log;
mod format;
mod gates;
mod grpc_args;
mod keeper;
mod labs;
mod publish;
mod stream_args;
mod websocket_args;
mod yaml_text;

use std::process::ExitCode;

fn main() -> ExitCode {
    keeper::helper(std::env::args_os()).unwrap_or_else(|| cli::main().into())
}
