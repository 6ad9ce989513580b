//! `weigh man-pages`: a manual page for each command, for packages.

use std::fs;
use std::path::PathBuf;

use experiment::exit::{Exit, Failure};

/// Write a manual page for each command into a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder. `weigh` creates it if it is missing.
    folder: PathBuf,
}

/// Writes the pages of `command`.
///
/// # Errors
///
/// Fails if the folder cannot be written.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<Exit, Failure> {
    let written = fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(command, &args.folder));
    written.map_err(|error| {
        Failure::bad_input(format!(
            "`{}` cannot be written: {error}",
            args.folder.display()
        ))
    })?;
    Ok(Exit::Done)
}
