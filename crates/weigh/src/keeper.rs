//! Hidden subcommands: the rig starts this program again as a keeper and as a launcher of systems.

use std::env::ArgsOs;
use std::process::ExitCode;

use experiment::{containers, pods};
use rig::keeper::OwnerEnd;

/// The hidden subcommand that stops all systems when `weigh` ends.
const KEEPER: &str = "keeper";
/// The hidden subcommand that replaces itself with a system's program.
const LAUNCH: &str = "launch";

/// Runs a helper of the rig if the arguments name one. The helpers are part of this program, so that a user
/// installs one file.
pub(crate) fn helper(mut arguments: ArgsOs) -> Option<ExitCode> {
    match arguments.nth(1)?.to_str()? {
        KEEPER => Some(rig::keeper::main(run_cleanup_task)),
        LAUNCH => Some(rig::launch::main(arguments)),
        _ => None,
    }
}

/// Runs a cleanup task of the keeper after the end of a run. The task belongs to a cluster or to a container
/// engine.
///
/// # Errors
/// The objects that remain.
fn run_cleanup_task(cleanup_task: &str, owner: OwnerEnd) -> Result<(), String> {
    pods::cleanup_task::run(cleanup_task, owner)
        .unwrap_or_else(|| containers::run_cleanup_task(cleanup_task, owner))
}
