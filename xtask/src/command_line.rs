//! The command line of the tasks.

use std::process::ExitCode;

use clap::Parser;

use crate::repository::root;
use crate::{
    aa, attack, bench, calibrate, chores, cluster, dist, engine, gateway_bench, layers, method,
    profile_guided, quick, release, results, shape, slices,
};

/// Tasks for developers of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Run all checks of CI in the same order: format, lints, all tests.
    Ci,
    /// Check the current change in a few minutes: format, rules, and lints and tests of the changed
    /// crates.
    Quick(quick::Args),
    /// Check the rules of the repository: dependencies between files, purity, names, words, sizes.
    Tidy,
    /// Update the generated files: JSON Schemas and the lab reference.
    Schema,
    /// Update the fingerprint of the code that determines figures (see CONTRIBUTING.md).
    Method,
    /// Count lines, functions, comments and calls of the sources by folder.
    Shape,
    /// Compare `weigh load` with other load generators on the same nginx worker.
    BenchLoad(bench::Args),
    /// Compare `weigh load` with other load generators by the number of cores and connections.
    BenchScaling(bench::scaling::Args),
    /// Check `weigh lab` with planted differences. With `--write`, the results go into
    /// METHODOLOGY.md.
    Aa(aa::Args),
    /// Compare slice lengths of a closed loop side by side, by the half-widths at equal total time.
    Slices(slices::Args),
    /// Measure the overhead of the gateway over its origin.
    BenchGateway(gateway_bench::Args),
    /// Attack every service with hostile clients, and check whether other clients still receive
    /// responses.
    Attack(attack::Args),
    /// Send requests to a service for hours at half load, and check whether its memory grows.
    Soak(attack::soak::Args),
    /// Build the book from the pages of the repository, as HTML with a search, in target/book.
    Book,
    /// Build the files of a release: static programs, archives, Debian packages, completions,
    /// manual pages.
    Dist(dist::Args),
    /// Check that a version can be released, build its files, and print the next steps.
    Release(release::Args),
    /// Build the gateway with profile-guided optimization, for users who operate it.
    ProfileGuided(profile_guided::Args),
    /// Manage a Kubernetes cluster of one to three real nodes on this machine, without an image registry.
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    /// Start or stop a Docker engine in its own folder.
    Engine(engine::Args),
    /// Update RESULTS.md of a folder of labs from its committed recordings.
    Results(results::Args),
    /// Update the figures that documents quote from recordings.
    Figures,
    /// Update the page with the costs of all layers from the recordings of `labs/layers`.
    Layers,
    /// Calibrate the load engine on the null server: stall formula, punctuality, cost of a sample.
    Calibrate(calibrate::Args),
}

/// Runs the program. An error is printed as one line at the end, without a backtrace.
#[expect(clippy::print_stderr, reason = "errors go to stderr")]
pub(crate) fn main() -> ExitCode {
    let Err(error) = Chore::parse().run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}

impl Chore {
    /// Runs the task.
    fn run(self) -> anyhow::Result<()> {
        match self {
            Chore::Ci => chores::ci(),
            Chore::Quick(args) => quick::run(&args),
            Chore::Tidy => chores::tidy(),
            Chore::Schema => chores::schema(),
            Chore::Method => method::stamp(),
            Chore::Shape => shape::shape(),
            Chore::BenchLoad(args) => bench::load(&args),
            Chore::BenchScaling(args) => bench::scaling::run(&args),
            Chore::BenchGateway(args) => gateway_bench::run(&args),
            Chore::Book => chores::book(&root().join("target/book")),
            Chore::Dist(args) => dist::run(&args),
            Chore::Release(args) => release::run(&args),
            Chore::ProfileGuided(args) => profile_guided::run(&args),
            Chore::Cluster(what) => cluster::run(&what),
            Chore::Engine(args) => engine::run(&args),
            Chore::Results(args) => results::run(&args),
            Chore::Figures => results::figures::write(),
            Chore::Layers => layers::write(),
            Chore::Aa(args) => aa::run(&args),
            Chore::Attack(args) => attack::run(&args),
            Chore::Soak(args) => attack::soak::run(&args),
            Chore::Slices(args) => slices::run(&args),
            Chore::Calibrate(args) => calibrate::calibrate(&args),
        }
    }
}
