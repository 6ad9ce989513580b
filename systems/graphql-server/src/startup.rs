//! From the command line to a listening socket, and from a signal to a stopped server.
//!
//! The two programs differ in what `serve` does in between.

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::{Config, LogLevel};
use crate::identity::Identity;
use crate::journal::Journal;
use crate::metrics::Metrics;

/// What every worker of a server is set up with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What was chosen.
    pub config: Config,
    /// The log.
    pub journal: Journal,
    /// Where workers count.
    pub metrics: Arc<Metrics>,
}

/// The whole program: reads the command line, listens, serves until stopped.
///
/// `serve` gets a socket that clients can connect to already. It returns once the server has
/// stopped; see [`stop_on_signal`].
pub fn run(
    identity: Identity,
    serve: impl FnOnce(TcpListener, Setup) -> io::Result<()>,
) -> ExitCode {
    let config = match Config::from_command_line(&identity, std::env::args_os()) {
        Ok(config) => config,
        Err(answer) => {
            // Nobody is left to be told when the stream is closed.
            let _ = answer.print();
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    match listen_and_serve(identity, config, serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why nothing was served, or no longer.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another address with --listen")]
    Listen { listen: String, source: io::Error },
    #[error("cannot serve: {0}")]
    Serve(io::Error),
}

fn listen_and_serve(
    identity: Identity,
    config: Config,
    serve: impl FnOnce(TcpListener, Setup) -> io::Result<()>,
) -> Result<(), ServeError> {
    let journal = Journal::open(config.log);
    let bound = TcpListener::bind(&config.listen)
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|source| ServeError::Listen {
        listen: config.listen.clone(),
        source,
    })?;
    announce(&format!("listening on http://{address}"));
    let fields = [
        ("server", identity.name.into()),
        ("version", identity.version.into()),
        ("graphql", identity.graphql.into()),
        ("http", identity.http.into()),
        ("address", address.to_string().into()),
        ("workers", config.workers.into()),
    ];
    journal.write(LogLevel::Info, "started", &fields);
    let setup = Setup {
        config,
        journal,
        metrics: Arc::new(Metrics::new(identity)),
    };
    serve(listener, setup).map_err(ServeError::Serve)?;
    journal.write(LogLevel::Info, "stopped", &[]);
    Ok(())
}

/// One line on standard output, for the person or the program that started the server.
fn announce(line: &str) {
    // Serving goes on when nobody reads standard output.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Calls `stop` at the first SIGTERM or SIGINT. The second one ends the process at once.
///
/// # Errors
/// When the signals cannot be caught.
pub fn stop_on_signal(journal: Journal, stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let wait = move || {
        let mut arriving = signals.forever();
        let mut next_name = || match arriving.next() {
            Some(SIGINT) => Value::from("SIGINT"),
            _ => Value::from("SIGTERM"),
        };
        journal.write(LogLevel::Info, "stopping", &[("signal", next_name())]);
        stop();
        let signal = next_name();
        journal.write(LogLevel::Error, "aborted", &[("signal", signal)]);
        std::process::exit(1);
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)?;
    Ok(())
}
