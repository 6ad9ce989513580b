//! Runs the server from the command line to its stop. Workers share no data that requests write.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use chassis::{ConnectionTable, Worker};
use telemetry::log::LogLevel;

use crate::answer::Handler;
use crate::collected::Collected;
use crate::config::Config;
use crate::seen::Seen;
use crate::subgraph::Subgraphs;

/// Time that a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why the server could not start or had to stop.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another address with --listen")]
    Listen { listen: String, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
}

/// Runs the whole program and returns its exit code.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    chassis::run(
        chassis::parse::<Config>(words),
        |_| LogLevel::Info,
        listen_and_serve,
    )
}

fn listen_and_serve(config: &Config) -> Result<(), ServeError> {
    // Before the workers start, so that a port in use fails the start at once.
    let listener = TcpListener::bind(&config.listen).map_err(|source| ServeError::Listen {
        listen: config.listen.clone(),
        source,
    })?;
    let seen = Arc::new(Seen::new(config.count_headers.clone()));
    let collected = Arc::new(Collected::default());
    let table = ConnectionTable::new(config.connections.most());
    let workers = (0..config.workers())
        .map(|number| start(number, config, &seen, &collected, &table))
        .collect::<io::Result<Vec<_>>>()?;
    let runtime = chassis::runtime()?;
    Ok(chassis::serve(&runtime, listener, &table, workers)?)
}

fn start(
    number: u16,
    config: &Config,
    seen: &Arc<Seen>,
    collected: &Arc<Collected>,
    table: &Arc<ConnectionTable>,
) -> io::Result<Worker> {
    let (config, seen) = (config.clone(), Arc::clone(seen));
    let collected = Arc::clone(collected);
    let limits = config.connections.limits(HEAD_TIMEOUT, config.stop_timeout);
    let connections = Arc::clone(table);
    Worker::start(number, table, limits, None, async move || Handler {
        connections,
        subgraphs: Subgraphs::new(config.limits).into(),
        shard: seen.shard(),
        seen,
        collected,
        delay: config.delay,
        cache_control: config.cache_control,
        body_limit: config.body_limit,
    })
}
