//! `cargo xtask cluster`: a Kubernetes cluster of real nodes on this machine, for tests and for trying
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
    Up {
        /// Number of nodes: 1, 2 or 3. By default 1, or all nodes of a cluster that is up already.
        #[arg(long, value_name = "NODES", value_parser = clap::value_parser!(u32).range(1..=3))]
        nodes: Option<u32>,
        /// Addresses of nodes, pods and Services. `ipv6` is a cluster without IPv4, and `dual` has IPv4 first. By
        /// default ipv4.
        #[arg(long, value_name = "FAMILY", value_parser = ["ipv4", "ipv6", "dual"])]
        family: Option<String>,
        /// The DNS domain of the cluster, such as corp.internal. By default cluster.local.
        #[arg(long, value_name = "DOMAIN")]
        domain: Option<String>,
    },
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
        Cluster::Up {
            nodes,
            family,
            domain,
        } => {
            command.arg("up").args(nodes.map(|it| it.to_string()));
            for (option, value) in [("--family", family), ("--domain", domain)] {
                if let Some(value) = value {
                    command.args([option, value]);
                }
            }
            &mut command
        }
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
