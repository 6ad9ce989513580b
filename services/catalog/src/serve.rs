//! Runs the server from the command line to its stop.
//!
//! Each worker has its own connections to the database. Workers share only the counters and the writing
//! thread of SQLite.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use chassis::{ConnectionTable, Hosts, ListenerTls, TlsError, Worker};
use telemetry::log::LogLevel;
use tokio::runtime::LocalRuntime;

use crate::config::Config;
use crate::exchange::Handler;
use crate::metrics::Metrics;
use crate::store::{OpenError, Prepared, Store};

/// The reason why the service could not start or had to stop.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another address with --listen")]
    Listen { listen: String, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
    #[error("{0}; choose another database with --database-url")]
    Open(#[from] OpenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Runs the whole program and returns its exit code.
#[must_use]
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    chassis::run(
        chassis::parse::<Config>(words),
        |_| LogLevel::Info,
        prepare_and_serve,
    )
}

fn prepare_and_serve(config: &Config) -> Result<(), ServeError> {
    let runtime = chassis::runtime()?;
    if config.prepare {
        runtime.block_on(Prepared::new(config))?.close();
        return Ok(());
    }
    // The port is bound first. Creating the tables may take minutes, which would be wasted if the port is in
    // use.
    let listener = TcpListener::bind(&config.listen).map_err(|source| ServeError::Listen {
        listen: config.listen.clone(),
        source,
    })?;
    let tls = config.tls.open(chassis::HTTP1_AND_2)?;
    let prepared = runtime.block_on(Prepared::new(config))?;
    let served = serve(config, &runtime, listener, &prepared, tls.as_ref());
    prepared.close();
    served
}

fn serve(
    config: &Config,
    runtime: &LocalRuntime,
    listener: TcpListener,
    prepared: &Prepared,
    tls: Option<&ListenerTls>,
) -> Result<(), ServeError> {
    let metrics = Arc::new(Metrics::new(&config.count_headers));
    let table = ConnectionTable::new(config.connections.most());
    let times = (config.request_timeout, config.stop_timeout);
    let limits = config.connections.limits(times.0, times.1);
    let hosts = Hosts::of(listener.local_addr()?.ip(), &config.hosts);
    let mut workers = Vec::new();
    let mut kind = "";
    for number in 0..config.workers() {
        let store = Store::open(prepared, config, &metrics)?;
        kind = store.kind();
        let handler = Handler::new(store, &metrics, &table, config, &hosts);
        let prepare = async move || {
            // Opens a connection, so that the first request need not wait for one. `/health` reports errors
            // of the database.
            let _ = handler.store.check().await;
            handler
        };
        workers.push(Worker::start(number, &table, limits, tls, prepare)?);
    }
    tracing::info!(database = kind, "answering from");
    Ok(chassis::serve(runtime, listener, &table, workers)?)
}
