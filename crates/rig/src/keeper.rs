//! The keeper: the one process of a run that outlives its owner.

use std::process::ExitCode;

/// Runs the keeper until its standard input closes.
#[must_use]
pub fn main() -> ExitCode {
    unimplemented!()
}
