//! The configuration of a server, by flags or environment variables.
//!
//! `Args` contains the options as typed, and `Config` the checked values. Both servers use the same options.

mod quantity;

use std::ffi::OsString;
use std::time::Duration;

use chassis::{ConnectionFlags, CorsFlags, TlsFlags};
use clap::{Args as _, Command, FromArgMatches as _};
use telemetry::log::LogLevel;

use crate::identity::Identity;

/// The command line. Every flag has an environment variable of the same name.
#[derive(Debug, clap::Args)]
struct Args {
    /// Address and port to listen on. With port 0, the service uses a free port and prints it.
    #[arg(long, env, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = quantity::host_and_port)]
    listen: String,

    /// Number of threads that serve requests [default: one per processor].
    #[arg(long, env, value_name = "N", value_parser = quantity::workers)]
    workers: Option<usize>,

    /// Maximum size of a request body, such as 64KiB or 1MiB. A larger body receives status 413.
    #[arg(long, env, value_name = "SIZE", default_value = "1MiB", value_parser = quantity::size)]
    body_limit: u64,

    /// Time limit for a client to send a request, such as 10s or 1m.
    #[arg(long, env, value_name = "TIME", default_value = "10s", value_parser = quantity::time_limit)]
    request_timeout: Duration,

    /// Time limit for requests in flight after SIGTERM or SIGINT.
    #[arg(long, env, value_name = "TIME", default_value = "10s", value_parser = quantity::time_limit)]
    stop_timeout: Duration,

    /// Level of the log on standard error, which contains one JSON object per line.
    #[arg(long, env, value_name = "LEVEL", default_value = "info")]
    log: LogLevel,

    #[command(flatten)]
    connections: ConnectionFlags,

    #[command(flatten)]
    tls: TlsFlags,

    #[command(flatten)]
    cors: CorsFlags,
}

/// The checked options of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Host and port, as typed.
    pub listen: String,
    /// Number of threads that serve requests, from 1 to 512.
    pub workers: usize,
    /// Maximum size of a request body, in bytes.
    pub body_limit: u64,
    /// Time to send a request, in whole seconds, at least one.
    pub request_timeout: Duration,
    /// Time for requests in flight when stopping, in whole seconds, at least one.
    pub stop_timeout: Duration,
    /// The level of the log.
    pub log: LogLevel,
    /// Limits for the number of connections and for their clients.
    pub connections: ConnectionFlags,
    /// Certificate and key, if clients need TLS.
    pub tls: TlsFlags,
    /// The web pages that may use the server.
    pub cors: CorsFlags,
}

impl Config {
    /// Reads a command line, and the environment for options that it leaves out. The first word is the name
    /// of the program.
    ///
    /// # Errors
    /// Fails if a value is wrong, and for `--help` and `--version`. `exit` of the error prints its text and
    /// ends the process with the right code: 2 for a wrong value, 0 for help and version.
    pub fn from_command_line(
        identity: &Identity,
        words: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let command = chassis::without_empty_variables(command(identity));
        let matches = command.try_get_matches_from(words)?;
        Ok(Args::from_arg_matches(&matches)?.into())
    }

    /// Number of connections per worker at which the HTTP library stops accepting.
    ///
    /// In total this is a few more than the maximum, so that connections beyond it are refused and do not
    /// wait. It is far below the file descriptors of the process.
    #[must_use]
    pub fn accepted_by_worker(&self) -> usize {
        let total = self.connections.most().total;
        (total + (total / 8).max(1)).div_ceil(self.workers)
    }
}

fn command(identity: &Identity) -> Command {
    // The comment on `Args` is for readers of this file, so the program's own description replaces it.
    Args::augment_args(Command::new(identity.name))
        .version(identity.versions)
        .about("A GraphQL server at /graphql, with /health and /metrics.")
        .after_help("Exit codes: 0 normal stop, 1 cannot serve, 2 wrong flag or variable.")
}

impl From<Args> for Config {
    fn from(args: Args) -> Self {
        // If the system does not report its processors, there is one worker.
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let one_for_each = || processors().min(quantity::WORKERS_MAX);
        Self {
            listen: args.listen,
            workers: args.workers.unwrap_or_else(one_for_each),
            body_limit: args.body_limit,
            request_timeout: args.request_timeout,
            stop_timeout: args.stop_timeout,
            log: args.log,
            connections: args.connections,
            tls: args.tls,
            cors: args.cors,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::identity::JUNIPER_NTEX;

    fn read(flags: &[&str]) -> Result<Config, String> {
        let words = ["program"].iter().chain(flags).map(OsString::from);
        Config::from_command_line(&JUNIPER_NTEX, words).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read_with_their_units() {
        let config = read(&[
            "--listen=[::1]:0",
            "--workers=3",
            "--body-limit=64KiB",
            "--request-timeout=15s",
            "--idle-timeout=500ms",
            "--write-timeout=3s",
            "--max-connections=10",
            "--max-connections-per-address=4",
            "--stop-timeout=1m",
            "--log=off",
        ]);
        let expected = Config {
            listen: "[::1]:0".to_owned(),
            workers: 3,
            body_limit: 65_536,
            request_timeout: Duration::from_secs(15),
            stop_timeout: Duration::from_secs(60),
            log: LogLevel::Off,
            connections: ConnectionFlags {
                max_connections: NonZeroU32::new(10),
                max_connections_per_address: NonZeroU32::new(4),
                idle_timeout: Duration::from_millis(500),
                write_timeout: Duration::from_secs(3),
            },
            tls: TlsFlags::default(),
            cors: CorsFlags::default(),
        };
        assert_eq!(expected.accepted_by_worker(), 4);
        assert_eq!(config, Ok(expected));
    }

    #[test]
    fn a_wrong_flag_is_named_with_what_was_expected() {
        let wrong = [
            "--listen=8080",
            "--listen=host:99999",
            "--workers=0",
            "--workers=many",
            "--body-limit=-1",
            "--body-limit=1MB",
            "--request-timeout=10",
            "--request-timeout=0s",
            "--idle-timeout=75",
            "--log=loud",
        ];
        let told: Vec<String> = wrong
            .iter()
            .map(|flag| read(&[flag]).unwrap_err())
            .map(|text| text.lines().next().unwrap().to_owned())
            .collect();
        insta::assert_snapshot!(told.join("\n"), @"
        error: invalid value '8080' for '--listen <HOST:PORT>': expected a host and a port, such as 127.0.0.1:8080 or [::1]:8080
        error: invalid value 'host:99999' for '--listen <HOST:PORT>': expected a host and a port, such as 127.0.0.1:8080 or [::1]:8080
        error: invalid value '0' for '--workers <N>': expected a whole number from 1 to 512
        error: invalid value 'many' for '--workers <N>': expected a whole number from 1 to 512
        error: invalid value '-1' for '--body-limit <SIZE>': expected a whole number and a unit (B, KiB, MiB), such as 1MiB
        error: invalid value '1MB' for '--body-limit <SIZE>': expected a whole number and a unit (B, KiB, MiB), such as 1MiB
        error: invalid value '10' for '--request-timeout <TIME>': expected a whole number and a unit (s, m), such as 10s
        error: invalid value '0s' for '--request-timeout <TIME>': expected at least 1s
        error: invalid value '75' for '--idle-timeout <TIME>': expected a whole number and a unit (ms, s), such as 500ms
        error: invalid value 'loud' for '--log <LEVEL>'
        ");
    }

    #[test]
    fn every_flag_has_a_variable_of_the_same_name() {
        for argument in command(&JUNIPER_NTEX).get_arguments() {
            let flag = argument.get_long().unwrap();
            let variable = argument.get_env().unwrap().to_str().unwrap();
            assert_eq!(variable, flag.to_uppercase().replace('-', "_"));
        }
    }

    #[test]
    fn the_version_names_the_libraries() {
        let text = read(&["--version"]).unwrap_err();
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
        for name in ["graphql-server-juniper-ntex ", "(juniper ", ", ntex "] {
            assert!(text.contains(name), "no `{name}` in {text}");
        }
    }
}
