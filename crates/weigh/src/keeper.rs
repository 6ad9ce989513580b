//! Hidden subcommands: the rig starts this program again as a keeper and as a launcher of systems.

use rig::keeper::OwnerEnd;

use crate::{containers, pods};

/// The hidden subcommand that stops all systems when `weigh` ends.
pub(crate) const KEEPER: &str = "keeper";
/// The hidden subcommand that becomes a system.
pub(crate) const LAUNCH: &str = "launch";

/// Carries out a task of the keeper after the end of a run. The task belongs to a cluster or to a container
/// engine.
///
/// # Errors
/// Fails with the things that remain.
pub(crate) fn run_errand(errand: &str, owner: OwnerEnd) -> Result<(), String> {
    pods::errand::run(errand, owner).unwrap_or_else(|| containers::run_errand(errand, owner))
}
