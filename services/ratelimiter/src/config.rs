//! The service's configuration: flags, then environment variables, then a file `.env` in the
//! working folder.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chassis::{ConnectionFlags, HostFlags, TlsFlags};
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory as _, Parser, ValueEnum};

use crate::cors::Origins;
use crate::error_shape::ErrorShape;
use crate::gate::Policy;
use crate::redis_flags::RedisFlags;
use crate::rule::{CountedResults, Mode, Rule};

/// Storage of the failure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    /// Redis if REDIS_URL or REDIS_HOST is set, otherwise memory.
    Auto,
    /// Memory of this process, for a single instance.
    Memory,
    /// Redis, which all instances share.
    Redis,
}

/// Login rate limiter: GraphQL at every path, and /metrics for Prometheus.
///
/// Flags override environment variables, and both override the lines NAME=VALUE of a file `.env` in
/// the working folder.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "ratelimiter",
    version,
    args_override_self = true,
    after_help = "Exit codes: 0 normal stop, 1 cannot serve, 2 wrong flag or variable."
)]
pub(crate) struct Config {
    /// Address to listen on.
    #[arg(long, env = "HOST", value_name = "ADDRESS", default_value = "0.0.0.0")]
    pub(crate) host: std::net::IpAddr,

    /// Port to listen on. With 0, the service uses a free port and prints it.
    #[arg(long, env = "PORT", value_name = "N", default_value_t = 4000)]
    pub(crate) port: u16,

    /// Name of this instance in the response of `serverinfo` [default: the machine's name].
    #[arg(long, env = "RATELIMIT_HOSTNAME", value_name = "NAME")]
    pub(crate) hostname: Option<String>,

    /// Environment of the service. `production` refuses introspection, and `development` uses Redis
    /// on this machine.
    #[arg(long, env = "NODE_ENV", value_name = "NAME")]
    pub(crate) node_env: Option<String>,

    /// Storage of the failure counts.
    #[arg(
        long,
        env = "RATELIMIT_STORE",
        value_name = "KIND",
        default_value = "auto"
    )]
    store: StoreKind,

    #[command(flatten)]
    pub(crate) redis: RedisFlags,

    /// File with rules, in YAML. They replace the rule of the flags. SIGHUP reads the file again.
    #[arg(long, env = "RATELIMIT_RULES", value_name = "FILE",
          conflicts_with_all = ["ban_seconds", "window_seconds", "failures_max", "emails_max", "inclusive"])]
    pub(crate) rules: Option<PathBuf>,

    /// Check the file of rules, and end.
    #[arg(long, requires = "rules")]
    pub(crate) check: bool,

    /// Length of a ban (X), in seconds.
    #[arg(long, env = "RATELIMIT_BANNED_IP_SECONDS", value_name = "X", default_value_t = 90,
          value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    ban_seconds: u64,

    /// Length of the window for failures (Z), in seconds.
    #[arg(long, env = "RATELIMIT_FAILED_REQ_PER_OBSERVED_SECONDS", value_name = "Z",
          default_value_t = 6, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    window_seconds: u64,

    /// Number of failures in the window that are allowed before the current one (Y).
    #[arg(long, env = "RATELIMIT_MAX_FAILED_REQ_IN_OBSERVED_PERIOD", value_name = "Y",
          default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    failures_max: u32,

    /// Number of different e-mails that are allowed (N).
    #[arg(long, env = "RATELIMIT_MAX_FAILED_EMAIL_PER_IP", value_name = "N",
          default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    emails_max: u32,

    /// Rule of counting and answering. `original` behaves as the original and is not safe: any web
    /// page can ban any address. An IPv6 client can also have any number of counters.
    #[arg(
        long,
        env = "RATELIMIT_COMPAT",
        value_name = "RULE",
        default_value = "fixed"
    )]
    compat: Mode,

    /// Ban at Y failures with N e-mails, including the current failure. This is one e-mail and two
    /// failures stricter than the original.
    #[arg(long, env = "RATELIMIT_INCLUSIVE", value_name = "true|false", default_value = "false",
          action = ArgAction::Set)]
    inclusive: bool,

    /// Form of the error for an invalid IP address or e-mail.
    #[arg(
        long,
        env = "RATELIMIT_ERRORS",
        value_name = "SHAPE",
        default_value = "compatible"
    )]
    pub(crate) errors: ErrorShape,

    /// Response if Redis is unavailable or slow.
    #[arg(
        long,
        env = "RATELIMIT_STORE_FAILURE",
        value_name = "POLICY",
        default_value = "open"
    )]
    pub(crate) store_failure: Policy,

    /// Time limit for a decision by Redis, in milliseconds.
    #[arg(long, env = "RATELIMIT_STORE_DEADLINE_MS", value_name = "MS", default_value_t = 50,
          value_parser = clap::value_parser!(u64).range(1..=60_000))]
    store_deadline_ms: u64,

    /// Key for the fingerprints of e-mails. Instances that share one Redis need the same key.
    #[arg(
        long,
        env = "RATELIMIT_EMAIL_KEY",
        value_name = "TEXT",
        hide_env_values = true
    )]
    pub(crate) email_key: Option<String>,

    /// Maximum number of addresses in the memory store, for each rule.
    #[arg(long, env = "RATELIMIT_MAX_ENTRIES", value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u32).range(64..=100_000_000))]
    pub(crate) max_entries: u32,

    /// Number of leading bits of an IPv6 address that share a counter. A customer can choose
    /// addresses freely within a network of 64 bits [default: 64, or 128 with --compat=original].
    #[arg(long, env = "RATELIMIT_IPV6_PREFIX", value_name = "BITS",
          value_parser = clap::value_parser!(u8).range(1..=128))]
    ipv6_prefix: Option<u8>,

    /// Origins of web pages that may use the service from a browser [default: no origin, or all
    /// with --compat=original].
    #[arg(
        long,
        env = "RATELIMIT_CORS_ORIGINS",
        value_name = "ORIGIN,ORIGIN",
        value_delimiter = ','
    )]
    cors_origins: Vec<String>,

    /// Number of threads that serve requests [default: one per processor].
    #[arg(long, env = "WORKERS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    workers: Option<u16>,

    /// Time limit for requests in flight after SIGTERM or SIGINT, in seconds.
    #[arg(long, env = "STOP_TIMEOUT_SECONDS", value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3_600))]
    stop_timeout_seconds: u64,

    #[command(flatten)]
    pub(crate) hosts: HostFlags,

    #[command(flatten)]
    pub(crate) connections: ConnectionFlags,

    #[command(flatten)]
    pub(crate) tls: TlsFlags,
}

impl Config {
    /// Reads flags, environment variables and `.env`.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        chassis::read(words).and_then(Self::checked)
    }

    /// Refuses combinations of flags that are dangerous together.
    fn checked(self) -> Result<Self, clap::Error> {
        if !self.is_original() && self.cors_origins.iter().any(|origin| origin.trim() == "*") {
            let message = "--cors-origins=* would let every web page ban every address; \
                           name the origins";
            return Err(Self::command().error(ErrorKind::InvalidValue, message));
        }
        if self.is_original() && self.rules.is_some() {
            let message = "--compat=original has the one rule of the original; \
                           remove it, or remove --rules";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        if self.store == StoreKind::Auto
            && self.redis.url().is_none()
            && let Some(flag) = self.redis.without_address()
        {
            let message = format!("{flag} has no effect without a Redis; set --redis-url");
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, message));
        }
        Ok(self)
    }

    /// True if the original's behaviour is configured, including its unsafe parts.
    pub(crate) fn is_original(&self) -> bool {
        self.compat == Mode::Original
    }

    /// Bits of an IPv6 address that share a counter.
    pub(crate) fn ipv6_prefix(&self) -> u8 {
        let default = if self.is_original() { 128 } else { 64 };
        self.ipv6_prefix.unwrap_or(default)
    }

    /// The web pages that may use the service.
    pub(crate) fn origins(&self) -> Origins {
        let names = self.cors_origins.iter().map(|origin| origin.trim());
        let names = names.filter(|origin| !origin.is_empty());
        let names: Vec<_> = names.map(str::to_owned).collect();
        // `*` passes the check above only in the original's mode.
        if names.iter().any(|name| name == "*") || (names.is_empty() && self.is_original()) {
            return Origins::Any;
        }
        Origins::Named(names)
    }

    pub(crate) fn rule(&self) -> Rule {
        Rule {
            // Cannot overflow, because the flags allow at most a year.
            ban_ms: self.ban_seconds * 1_000,
            window_ms: self.window_seconds * 1_000,
            failures_max: self.failures_max,
            emails_max: self.emails_max,
            mode: self.compat,
            inclusive: self.inclusive,
            counts: CountedResults::Failed,
        }
    }

    /// The rule's label in metrics: `fixed`, `original`, or `file` for the rules of a file.
    pub(crate) fn rule_name(&self) -> String {
        if self.rules.is_some() {
            return "file".to_owned();
        }
        let value = self.compat.to_possible_value();
        let value = value.expect("no rule is hidden from the command line");
        value.get_name().to_owned()
    }

    /// The address of Redis. `None` for the memory store.
    pub(crate) fn redis_url(&self) -> Option<String> {
        let named = self.redis.url();
        match self.store {
            StoreKind::Memory => None,
            StoreKind::Auto => named,
            StoreKind::Redis => Some(named.unwrap_or_else(|| {
                // The original's defaults: a developer's machine, or the service's name in its cluster.
                let host = match self.node_env.as_deref() {
                    Some("development") => "localhost",
                    _ => "redis-service",
                };
                format!("redis://{host}:6379")
            })),
        }
    }

    pub(crate) fn has_introspection(&self) -> bool {
        self.node_env.as_deref() != Some("production")
    }

    pub(crate) fn store_deadline(&self) -> Duration {
        Duration::from_millis(self.store_deadline_ms)
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
        Config::try_parse_from(["ratelimiter"].iter().chain(words))
    }

    #[test]
    fn the_file_stands_behind_environment_and_flags() {
        let file = "# a comment\nPORT=5\nNODE_ENV = \"development\"\nWORKERS=3\nUNKNOWN=1\nnothing";
        let words = ["ratelimiter", "--workers", "7"]
            .map(OsString::from)
            .to_vec();
        let words = chassis::with_file::<Config>(words, file, |name| name == "PORT");
        let config = Config::try_parse_from(&words).unwrap();
        assert_eq!(config.workers(), 7);
        assert_eq!(config.node_env.as_deref(), Some("development"));
        assert!(
            !words
                .iter()
                .any(|word| word.to_string_lossy().contains("port"))
        );
    }

    #[test]
    fn numbers_that_would_switch_the_limiter_off_are_refused() {
        for wrong in ["NaN", "", "-1", "1.5", "ten"] {
            for flag in [
                "--ban-seconds",
                "--window-seconds",
                "--failures-max",
                "--emails-max",
            ] {
                assert!(
                    read(&[&format!("{flag}={wrong}")]).is_err(),
                    "{flag}={wrong}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_safe_is_asked_for() {
        let named = |names: &[&str]| Origins::Named(names.iter().map(|it| (*it).into()).collect());
        let safe = read(&[]).unwrap();
        assert_eq!((safe.ipv6_prefix(), safe.origins()), (64, named(&[])));
        let original = read(&["--compat=original"]).unwrap();
        assert_eq!(
            (original.ipv6_prefix(), original.origins()),
            (128, Origins::Any)
        );
        let both = read(&[
            "--compat=original",
            "--ipv6-prefix=56",
            "--cors-origins=http://a",
        ]);
        let both = both.unwrap();
        assert_eq!(
            (both.ipv6_prefix(), both.origins()),
            (56, named(&["http://a"]))
        );
        let any = |compat| {
            let words = ["--cors-origins=*", compat];
            read(&words)
                .and_then(Config::checked)
                .map(|it| it.origins())
        };
        assert!(any("--compat=fixed").is_err());
        assert_eq!(any("--compat=original").unwrap(), Origins::Any);
    }

    #[test]
    fn the_store_follows_from_what_is_named() {
        let redis = |words: &[&str]| read(words).unwrap().redis_url();
        assert_eq!(redis(&[]), None);
        assert_eq!(
            redis(&["--redis-host=cache"]).as_deref(),
            Some("redis://cache")
        );
        assert_eq!(
            redis(&["--redis-host=redis://c:1"]).as_deref(),
            Some("redis://c:1")
        );
        let both = ["--redis-host=a", "--redis-url=redis://b/2"];
        assert_eq!(redis(&both).as_deref(), Some("redis://b/2"));
        assert_eq!(redis(&["--store=memory", "--redis-host=a"]), None);
        let named = redis(&["--store=redis"]);
        assert_eq!(named.as_deref(), Some("redis://redis-service:6379"));
        let here = redis(&["--store=redis", "--node-env=development"]);
        assert_eq!(here.as_deref(), Some("redis://localhost:6379"));
    }

    #[test]
    fn settings_that_would_have_no_effect_are_refused() {
        for words in [
            &["--rules=a.yaml", "--ban-seconds=1"][..],
            &["--rules=a.yaml", "--inclusive=false"],
            &["--rules=a.yaml", "--compat=original"],
            &["--redis-password=secret"],
            &["--redis-url=rediss://a", "--redis-cert-file=a"],
            &["--check"],
        ] {
            let told = read(words).and_then(Config::checked).unwrap_err();
            assert!(!told.to_string().contains("secret"), "{told}");
        }
        let fine = ["--rules=a.yaml", "--compat=fixed", "--store-deadline-ms=9"];
        assert_eq!(
            read(&fine).and_then(Config::checked).unwrap().rule_name(),
            "file"
        );
    }
}
