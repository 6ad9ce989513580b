//! The service's configuration: flags, then environment variables, then a file `.env` in the
//! working folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chassis::{ConnectionFlags, TlsFlags};
use clap::{ArgAction, Parser, ValueEnum};

use telemetry::log;

use crate::cors::Origins;
use crate::sync::{ResponseFormat, Rules};

/// Webhook of the IntegrationRoute controller.
///
/// Paths: /webhook/sync and /webhook/addons/certmanager/sync (POST), /route (PUT), /status and
/// /metrics (GET).
///
/// Flags override environment variables, and both override the lines NAME=VALUE of a file `.env` in
/// the working folder.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "route-webhook",
    version,
    args_override_self = true,
    after_help = "Exit codes: 0 normal stop, 1 cannot serve, 2 wrong flag or variable."
)]
pub(crate) struct Config {
    /// Address to listen on. A pod needs 0.0.0.0, which means all interfaces.
    #[arg(
        long,
        env = "HOST",
        value_name = "ADDRESS",
        default_value = "127.0.0.1"
    )]
    pub(crate) host: std::net::IpAddr,

    /// Port to listen on. With 0, the service uses a free port and prints it.
    #[arg(long, env = "PORT", value_name = "N", default_value_t = 7080)]
    pub(crate) port: u16,

    /// Image for routes that do not name an image.
    #[arg(
        long,
        env = "INTEGRATION_IMAGE",
        value_name = "IMAGE",
        default_value = "keip-integration"
    )]
    integration_image: String,

    /// Format of the responses.
    #[arg(
        long,
        env = "WEBHOOK_COMPAT",
        value_name = "FORMAT",
        default_value = "today"
    )]
    compat: ResponseFormat,

    /// Origins of web pages that may put routes and read the status. An empty list allows no web
    /// page.
    #[arg(
        long,
        env = "CORS_ALLOWED_ORIGINS",
        value_name = "ORIGIN,ORIGIN",
        default_value = "",
        hide_default_value = true
    )]
    cors_allowed_origins: String,

    /// Configuration file of the cluster for PUT /route [default: the file that kubectl uses,
    /// otherwise the cluster of this pod].
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// File with the token that PUT /route requires as `Authorization: Bearer TOKEN`. The service
    /// reads it for every request. Without this file, PUT /route is available on loopback only.
    #[arg(long, env = "ROUTE_TOKEN_FILE", value_name = "FILE")]
    pub(crate) route_token_file: Option<PathBuf>,

    /// File with the token that calls of the hooks require as `Authorization: Bearer TOKEN`. The
    /// service reads it for every call.
    #[arg(long, env = "BEARER_TOKEN_FILE", value_name = "FILE")]
    pub(crate) bearer_token_file: Option<PathBuf>,

    /// File with USER:PASSWORD that calls of the hooks require as `Authorization: Basic`. With both
    /// files, each is enough.
    #[arg(long, env = "BASIC_CREDENTIALS_FILE", value_name = "FILE")]
    pub(crate) basic_credentials_file: Option<PathBuf>,

    /// Send an `ETag` with answers of the hooks, and 304 if `If-None-Match` has it.
    #[arg(long, env = "ETAGS", value_name = "true|false", default_value = "false",
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    pub(crate) etags: bool,

    /// Namespaces that PUT /route may change. `*` allows all namespaces.
    #[arg(
        long,
        env = "ROUTE_NAMESPACES",
        value_name = "NAME,NAME",
        value_delimiter = ',',
        default_value = "default"
    )]
    pub(crate) route_namespaces: Vec<String>,

    /// Minimum level of the log.
    #[arg(
        long,
        env = "LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info",
        ignore_case = true
    )]
    log_level: LogLevel,

    /// Log every refused request too, as with --log-level=debug.
    #[arg(long, env = "DEBUG", value_name = "true|false", default_value = "false",
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    debug: bool,

    /// Maximum size of a request body, in bytes.
    #[arg(long, env = "BODY_LIMIT", value_name = "BYTES", default_value_t = 4 << 20,
          value_parser = clap::value_parser!(u32).range(1..=1 << 30))]
    body_limit: u32,

    /// Number of threads that serve requests [default: one per processor, or per processor that the
    /// CPU limit allows].
    #[arg(long, env = "WORKERS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    workers: Option<u16>,

    /// Time limit for requests in flight after SIGTERM or SIGINT, in seconds.
    #[arg(long, env = "STOP_TIMEOUT_SECONDS", value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3_600))]
    stop_timeout_seconds: u64,

    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,

    #[command(flatten)]
    pub(crate) tls: TlsFlags,
}

/// Minimum level of a logged line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogLevel {
    /// Every refused request.
    Debug,
    /// Start and stop.
    Info,
    /// Failures that may be temporary.
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
