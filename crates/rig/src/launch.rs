//! The launcher: what a system's process is before it is the system.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the launcher with the arguments that the rig appended to
/// [`crate::KeeperCommand::launch`].
#[must_use]
pub fn main(_args: impl IntoIterator<Item = OsString>) -> ExitCode {
    unimplemented!()
}
