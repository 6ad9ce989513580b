//! The service's configuration: flags, then environment variables, then a file `.env` in the
//! working folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chassis::ConnectionFlags;
use clap::{ArgAction, Parser, ValueEnum};

use telemetry::log;

use crate::cors::Origins;
use crate::sync::{ResponseFormat, Rules};

/// The webhook of the IntegrationRoute controller: POST /webhook/sync and
/// /webhook/addons/certmanager/sync, PUT /route, GET /status and /metrics.
///
/// Flags win over environment variables, and those over lines NAME=VALUE of a file `.env` in the
/// working folder.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "route-webhook",
    version,
    args_override_self = true,
    after_help = "Exit codes: 0 stopped as asked, 1 could not serve, 2 wrong flag or variable."
)]
pub(crate) struct Config {
    /// Address to listen on; 0.0.0.0 for all interfaces, as a pod needs it.
    #[arg(
        long,
        env = "HOST",
        value_name = "ADDRESS",
        default_value = "127.0.0.1"
    )]
    pub(crate) host: std::net::IpAddr,

    /// Port to listen on; 0 takes a free one and prints it.
    #[arg(long, env = "PORT", value_name = "N", default_value_t = 7080)]
    pub(crate) port: u16,

    /// Image of routes that name none.
    #[arg(
        long,
        env = "INTEGRATION_IMAGE",
        value_name = "IMAGE",
        default_value = "keip-integration"
    )]
    integration_image: String,

    /// Which answers are given: those of today, or those of the first benchmark.
    #[arg(
        long,
        env = "WEBHOOK_COMPAT",
        value_name = "FORMAT",
        default_value = "today"
    )]
    compat: ResponseFormat,

    /// Web pages of these origins may put routes and ask for the status; none when empty.
    #[arg(
        long,
        env = "CORS_ALLOWED_ORIGINS",
        value_name = "ORIGIN,ORIGIN",
        default_value = "",
        hide_default_value = true
    )]
    cors_allowed_origins: String,

    /// The cluster that PUT /route speaks to [default: what kubectl would take, else the cluster
    /// that this runs in].
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// File with the token that PUT /route asks for, as `Authorization: Bearer TOKEN`; read anew
    /// for each request. Without it, PUT /route is served on loopback only.
    #[arg(long, env = "ROUTE_TOKEN_FILE", value_name = "FILE")]
    pub(crate) route_token_file: Option<PathBuf>,

    /// Namespaces that PUT /route may write to; * for all.
    #[arg(
        long,
        env = "ROUTE_NAMESPACES",
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = "default"
    )]
    pub(crate) route_namespaces: Vec<String>,

    /// Least level of the log.
    #[arg(
        long,
        env = "LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info",
        ignore_case = true
    )]
    log_level: LogLevel,

    /// Log every refused request, too; the same as --log-level=debug.
    #[arg(long, env = "DEBUG", value_name = "true|false", default_value = "false",
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    debug: bool,

    /// Largest body, in bytes.
    #[arg(long, env = "BODY_LIMIT", value_name = "BYTES", default_value_t = 4 << 20,
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    body_limit: u32,

    /// Threads that serve requests [default: one for each processor, or for each that a limit of
    /// processor time leaves].
    #[arg(long, env = "WORKERS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    workers: Option<u16>,

    /// Time that requests in flight have after SIGTERM or SIGINT, in seconds.
    #[arg(long, env = "STOP_TIMEOUT_SECONDS", value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3_600))]
    stop_timeout_seconds: u64,

    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,
}

/// The least level of a line that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    /// Every refused request.
    Debug,
    /// Start and stop.
    Info,
    /// Failures that may not happen again.
    Warning,
    /// Failures that end the service.
    Error,
}

impl Config {
    /// Reads flags, environment variables and `.env`.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        chassis::read(words)
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            format: self.compat,
            image: self.integration_image.clone(),
        }
    }

    pub(crate) fn origins(&self) -> Origins {
        Origins::read(&self.cors_allowed_origins)
    }

    pub(crate) fn log_level(&self) -> log::LogLevel {
        if self.debug {
            log::LogLevel::Debug
        } else {
            match self.log_level {
                LogLevel::Debug => log::LogLevel::Debug,
                LogLevel::Info => log::LogLevel::Info,
                LogLevel::Warning => log::LogLevel::Warn,
                LogLevel::Error => log::LogLevel::Error,
            }
        }
    }

    pub(crate) fn body_limit(&self) -> usize {
        usize::try_from(self.body_limit).expect("`usize` has 32 bits or more")
    }

    pub(crate) fn stop_timeout(&self) -> Duration {
        Duration::from_secs(self.stop_timeout_seconds)
    }

    /// Number of threads that serve requests.
    pub(crate) fn workers(&self) -> u16 {
        chassis::workers(self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Config, clap::Error> {
        Config::try_parse_from(["route-webhook"].iter().chain(words))
    }

    #[test]
    fn the_file_stands_behind_environment_and_flags() {
        let file =
            "# a comment\nPORT=5\nINTEGRATION_IMAGE = \"mine\"\nWORKERS=3\nUNKNOWN=1\nnothing";
        let words = ["route-webhook", "--workers", "7"]
            .map(OsString::from)
            .to_vec();
        let words = chassis::with_file::<Config>(words, file, |name| name == "PORT");
        let config = Config::try_parse_from(&words).unwrap();
        assert_eq!(config.workers(), 7);
        assert_eq!(config.rules().image, "mine");
        assert!(
            !words
                .iter()
                .any(|word| word.to_string_lossy().contains("port"))
        );
    }

    #[test]
    fn debug_is_a_level_of_the_log() {
        assert_eq!(read(&[]).unwrap().log_level(), log::LogLevel::Info);
        assert_eq!(
            read(&["--debug"]).unwrap().log_level(),
            log::LogLevel::Debug
        );
        assert_eq!(
            read(&["--debug=false"]).unwrap().log_level(),
            log::LogLevel::Info
        );
        assert_eq!(
            read(&["--log-level=WARNING"]).unwrap().log_level(),
            log::LogLevel::Warn
        );
        assert!(read(&["--log-level=loud"]).is_err());
        assert!(read(&["--body-limit=0"]).is_err());
        assert!(read(&["--body-limit=1073741825"]).is_err());
    }
}
