//! The frame of our services on hyper: sockets, threads, signals and connection limits.
//!
//! One thread accepts connections and assigns them in turn, so that a few connections spread evenly. Each
//! [`Worker`] serves its connections on its own runtime. A connection never changes threads, and workers
//! share only the data that the service itself shares. Routes are absent on purpose.
//!
//! A [`ConnectionTable`] limits the number of connections. A [`Tracker`] on each worker closes connections of
//! slow clients. The gateway, which accepts connections itself, uses both, and so do the servers on actix-web
//! and ntex. [`TrackedIo`] is a socket for all of them, and [`Tracked::attend`] drives connections that are
//! not hyper's.

mod accept;
mod client;
mod clock;
mod command_line;
mod connection;
mod connection_table;
mod cors;
mod hosts;
mod limits;
mod listener;
mod request_id;
mod runtime;
mod serve;
mod tls;
mod tracker;
mod worker;

use std::error::Error;
use std::process::ExitCode;

use telemetry::log::LogLevel;

pub use accept::{accept, pause_after, pause_in_crowd};
pub use client::ClientNetwork;
pub use command_line::{TimeError, parse, read, time, with_file, without_empty_variables, workers};
pub use connection::{ClientConnection, ConnectionHandle};
pub use connection_table::{ConnectionRefusal, ConnectionTable, Slot};
pub use cors::{AllowedOrigins, CorsFlags, CorsHeader, add_cors};
pub use hosts::{ForeignHost, HostFlags, Hosts};
pub use limits::{
    ConnectionFlags, HTTP2_PING_INTERVAL, HTTP2_PING_TIMEOUT, HTTP2_STREAMS, Most, ServerLimits,
    Timeouts, descriptors,
};
pub use listener::{Listener, prepare};
pub use request_id::{REQUEST_ID, is_request_id, request_id, set_request_id};
pub use runtime::runtime;
pub use serve::{scheme, serve, stop_signal};
pub use tls::{
    HTTP1, HTTP1_AND_2, ListenerTls, NamedPem, ServerIdentity, ServerSocket, TlsError, TlsFlags,
    beginning_tls, server_config,
};
pub use tracker::{Exchange, Portion, Tracked, TrackedBody, TrackedIo, Tracker, Work, count_rests};
pub use worker::{Handler, Worker, worker_thread};

/// Runs the whole program, from the command line to a stopped service.
///
/// The log is opened at `log_level` before `serve` begins. The exit code is 2 for a wrong command line and 1
/// if `serve` fails, with a line on standard error. Otherwise it is 0.
pub fn run<C, E: Error>(
    config: Result<C, clap::Error>,
    log_level: impl FnOnce(&C) -> LogLevel,
    serve: impl FnOnce(&C) -> Result<(), E>,
) -> ExitCode {
    let config = match config {
        Ok(config) => config,
        Err(answer) => {
            // If the stream is closed, there is nowhere left to report it.
            let _ = answer.print();
            // clap uses two codes, 0 and 2. Both fit.
            return ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2));
        }
    };
    // Opened only now, because the level is part of the command line.
    telemetry::log::open(log_level(&config));
    match serve(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::complain(&error);
            ExitCode::FAILURE
        }
    }
}
