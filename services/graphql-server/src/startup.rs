//! Starts a server from its command line, and stops it on a signal.
//!
//! The two programs only differ in `serve`.

use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use chassis::{ConnectionTable, ListenerTls, TlsError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::Config;
use crate::identity::Identity;
use crate::metrics::Metrics;

/// The shared state that every worker of a server starts with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The options of the server.
    pub config: Config,
    /// The counters of all workers.
    pub metrics: Arc<Metrics>,
    /// The connections of all workers.
    pub table: Arc<ConnectionTable>,
    /// The certificate, if clients need TLS.
    pub tls: Option<ListenerTls>,
}

/// Runs the whole program: reads the command line, listens, and serves until stopped.
///
/// `serve` receives a socket that already accepts connections. It returns after the server has stopped. See
/// [`stop_on_signal`].
pub fn run(
    identity: Identity,
    serve: impl FnOnce(TcpListener, Setup) -> io::Result<()>,
) -> ExitCode {
    let config = match Config::from_command_line(&identity, std::env::args_os()) {
        Ok(config) => config,
        Err(answer) => {
            // If the stream is closed, there is nowhere left to report it.
            let _ = answer.print();
            // clap uses two codes, 0 and 2. Both fit.
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    match listen_and_serve(identity, config, serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// The reason why the server could not start or had to stop.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another address with --listen")]
    Listen { listen: String, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn listen_and_serve(
    identity: Identity,
    config: Config,
    serve: impl FnOnce(TcpListener, Setup) -> io::Result<()>,
) -> Result<(), ServeError> {
    telemetry::log::open(config.log);
    // The servers speak HTTP/1.1 only.
    let tls = config.tls.open(chassis::HTTP1)?;
    let bound = TcpListener::bind(&config.listen)
        // Connections inherit these options.
        .and_then(|listener| chassis::prepare(&listener).map(|()| listener))
        // Read only now, because the system chooses the port if it was 0.
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|source| ServeError::Listen {
        listen: config.listen.clone(),
        source,
    })?;
    // Already true before any worker runs, because the system queues connections after `bind`.
    let scheme = chassis::scheme(tls.is_some());
    telemetry::announce(&format!("listening on {scheme}://{address}"));
    tracing::info!(
        server = identity.name,
        version = identity.version,
        graphql = identity.graphql,
        http = identity.http,
        %address,
        workers = config.workers,
        "started"
    );
    let table = ConnectionTable::new(config.connections.most());
    let setup = Setup {
        config,
        metrics: Arc::new(Metrics::new(identity, Arc::clone(&table))),
        table,
        tls,
    };
    serve(listener, setup).map_err(ServeError::Serve)?;
    tracing::info!("stopped");
    Ok(())
}

/// Calls `stop` at the first SIGTERM or SIGINT. The second signal ends the process at once.
///
/// # Errors
/// Fails if the signal handlers cannot be installed.
pub fn stop_on_signal(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    // A separate thread, so that a second signal works even if the server hangs while it stops.
    let wait = move || {
        let mut arriving = signals.forever();
        let mut next_name = || match arriving.next() {
            Some(SIGINT) => "SIGINT",
            // The iterator yields the two registered signals and does not end.
            _ => "SIGTERM",
        };
        // Received before the log line, because fields of a disabled line are not evaluated.
        let signal = next_name();
        tracing::info!(signal, "stopping");
        stop();
        let signal = next_name();
        tracing::error!(signal, "aborted");
        // `exit`, because the thread of `main` may hang.
        std::process::exit(1);
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(())
}
