//! The chores by their names.

use std::process::ExitCode;

use clap::Parser;

use crate::repository::root;
use crate::{
    aa, attack, bench, calibrate, chores, cluster, dist, engine, gateway_bench, method,
    profile_guided, results, shape, slices,
};

/// Chores of the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Chore {
    /// Run everything that CI runs, in the same order: format, lints, all tests.
    Ci,
    /// Check the rules of the house: directions, purity, names, words, sizes.
    Tidy,
    /// Write the generated files again: JSON Schemas and the lab reference.
    Schema,
    /// Write the fingerprint of the code that figures depend on; see CONTRIBUTING.md.
    Method,
    /// Count lines, functions, comments and calls of the sources, by folder.
    Shape,
    /// Hold weigh against other load generators, on the same nginx worker.
    BenchLoad(bench::Args),
    /// Hold `weigh lab` against differences that were planted; the results go into METHODOLOGY.md.
    Aa(aa::Args),
    /// Try lengths of slices for a closed loop side by side: half-widths at equal total time.
    Slices(slices::Args),
    /// Measure what the gateway adds to its origin.
    BenchGateway(gateway_bench::Args),
    /// Let hostile clients at every service, and see whether others are served meanwhile.
    Attack(attack::Args),
    /// Ask a service for hours, at half load, and see whether it takes more and more memory.
    Soak(attack::soak::Args),
    /// Build the book from the pages of the repository: HTML with a search, in target/book.
    Book,
    /// Build what people install: static programs, archives, Debian packages, completions, manual pages.
    Dist(dist::Args),
    /// Build the gateway with what the compiler learns from a run of it, for those who operate it.
    ProfileGuided(profile_guided::Args),
    /// A Kubernetes of one real node on this machine, without a registry of images.
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    /// Start or end a Docker engine in a folder of its own.
    Engine(engine::Args),
    /// Write RESULTS.md of a folder of labs from the recordings committed with it.
    Results(results::Args),
    /// Write the figures that sentences of documents quote from recordings.
    Figures,
    /// Hold the engine against the null server: stall formula, punctuality, cost of a sample.
    Calibrate(calibrate::Args),
}

/// Runs the program. An error is one line at the end, without a backtrace.
#[expect(clippy::print_stderr, reason = "errors go to stderr")]
pub(crate) fn main() -> ExitCode {
    let Err(error) = Chore::parse().run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}

impl Chore {
    /// Does it.
    fn run(self) -> anyhow::Result<()> {
        match self {
            Chore::Ci => chores::ci(),
            Chore::Tidy => chores::tidy(),
            Chore::Schema => chores::schema(),
            Chore::Method => method::stamp(),
            Chore::Shape => shape::shape(),
            Chore::BenchLoad(args) => bench::load(&args),
            Chore::BenchGateway(args) => gateway_bench::run(&args),
            Chore::Book => chores::book(&root().join("target/book")),
            Chore::Dist(args) => dist::run(&args),
            Chore::ProfileGuided(args) => profile_guided::run(&args),
            Chore::Cluster(what) => cluster::run(&what),
            Chore::Engine(args) => engine::run(&args),
            Chore::Results(args) => results::run(&args),
            Chore::Figures => results::figures::write(),
            Chore::Aa(args) => aa::run(&args),
            Chore::Attack(args) => attack::run(&args),
            Chore::Soak(args) => attack::soak::run(&args),
            Chore::Slices(args) => slices::run(&args),
            Chore::Calibrate(args) => calibrate::calibrate(&args),
        }
    }
}
