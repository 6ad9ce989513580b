//! `cargo xtask cluster`: a Kubernetes cluster of one real node on this machine, for tests and for trying
//! `weigh lab --on kubernetes`. It runs `ci/cluster/cluster.sh`, and `./setup kubernetes` runs that script
//! too.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Action on the cluster.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Cluster {
    /// Start the cluster. The first start also builds its missing programs, which takes about ten
    /// minutes.
    Up,
    /// Stop the cluster. Its programs and images stay.
    Down,
    /// Build an image from a program and the libraries that it requires.
    Image {
        /// Name of the image, such as localhost/weigh:1.
        name: String,
        /// Program of the image, such as target/release/weigh.
        program: PathBuf,
    },
}

/// Runs the script with this command.
///
/// # Errors
/// If the script fails.
pub(crate) fn run(what: &Cluster) -> anyhow::Result<()> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/cluster/cluster.sh");
    let mut command = Command::new(script);
    match what {
        Cluster::Up => command.arg("up"),
        Cluster::Down => command.arg("down"),
        Cluster::Image { name, program } => command.arg("program").arg(name).arg(program),
    };
    let ended = command
        .status()
        .with_context(|| format!("{script} starts"))?;
    if !ended.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}
