//! Targets of the counts on the command line, equal for every subcommand that measures.

use experiment::console::Console;
use experiment::exit::Failure;
use experiment::published::{self, Bind, Collector, PublishTargets, Published};
use experiment::served::{self, Loopback, Served};

/// The places that a run publishes its counts to.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PublishArgs {
    /// Serve the counts for Prometheus at http://ADDR/metrics during the run.
    ///
    /// ADDR is a port of 127.0.0.1, or an address with a port. Everyone who reaches the address can read
    /// the counts. See docs/telemetry.md.
    #[arg(long, value_name = "ADDR", help_heading = "Output", hide_short_help = true, value_parser = published::bind)]
    prometheus: Option<Bind>,
    /// Push the counts to an OpenTelemetry collector each second: http://127.0.0.1:4318.
    ///
    /// The format is OTLP over HTTP, in protobuf. A URL without a path gets /v1/metrics. If the collector
    /// is not reachable, `weigh` warns once and continues.
    #[arg(long, value_name = "URL", help_heading = "Output", hide_short_help = true, value_parser = published::collector)]
    otlp: Option<Collector>,
}

impl PublishArgs {
    /// True if a flag names a place.
    pub(crate) fn is_given(&self) -> bool {
        self.prometheus.is_some() || self.otlp.is_some()
    }

    /// Starts to publish. `None` without `--prometheus` and `--otlp`.
    ///
    /// # Errors
    /// When `weigh` cannot listen on the address.
    pub(crate) fn start(&self, console: Console) -> Result<Option<Published>, Failure> {
        let targets = PublishTargets {
            prometheus: self.prometheus,
            otlp: self.otlp.clone(),
        };
        targets.start(console)
    }
}

/// The page of a run that compares variants.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ServeArgs {
    /// Serve the report as a page at http://ADDR/ during the run, renewed after each round.
    ///
    /// ADDR is a port of 127.0.0.1, or an address of loopback with a port. Port 0 takes any free port, and
    /// `weigh` prints the address. The address ends with the run. A browser on this machine uses processor
    /// time each time it loads the page. See docs/telemetry.md.
    #[arg(long, value_name = "ADDR", help_heading = "Output", hide_short_help = true, value_parser = served::loopback)]
    serve: Option<Loopback>,
}

impl ServeArgs {
    /// Starts to serve. `None` without `--serve`.
    ///
    /// # Errors
    /// When `weigh` cannot listen on the address.
    pub(crate) fn start(&self, console: Console) -> Result<Option<Served>, Failure> {
        self.serve
            .map(|address| Served::start(address, console))
            .transpose()
    }
}
