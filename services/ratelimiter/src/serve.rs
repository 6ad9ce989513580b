//! Runs the server from the command line to its stop.
//!
//! Each worker has one connection to Redis. Workers share only the memory store and the counters.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use chassis::{ConnectionTable, Hosts, ListenerTls, TlsError, Worker};
use redis_link::{Link, RedisTarget};
use telemetry::log::LogLevel;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::Config;
use crate::email::FingerprintKey;
use crate::exchange::Handler;
use crate::gate::Gate;
use crate::metrics::Metrics;
use crate::redis_flags::RedisFlagsError;
use crate::redis_store::RedisStore;
use crate::rules::LiveRules;
use crate::rules::file::{self, RulesError};
use crate::{clock, graphql};

/// Time that a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the first connection to Redis may delay the start.
const FIRST_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Names of the stores in the log and the metrics.
const MEMORY: &str = "memory";
const REDIS: &str = "redis";

/// The reason why the service could not start or had to stop.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("cannot listen on `{listen}`: {source}; choose another with --host and --port")]
    Listen {
        listen: SocketAddr,
        source: io::Error,
    },
    #[error("cannot serve: {0}")]
    Serve(#[from] io::Error),
    #[error(transparent)]
    Redis(#[from] RedisFlagsError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the system gave no random bytes for the key of fingerprints; set RATELIMIT_EMAIL_KEY")]
    NoRandomness,
}

/// Runs the whole program and returns its exit code.
#[must_use]
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    chassis::run(
        Config::read(words),
        |_| LogLevel::Info,
        |config| match &config.rules {
            Some(path) if config.check => {
                let rules = file::read(path)?;
                telemetry::announce(&format!("rules: {}, mistakes: 0", rules.len()));
                Ok(())
            }
            _ => listen_and_serve(config),
        },
    )
}

fn listen_and_serve(config: &Config) -> Result<(), ServeError> {
    let listen = SocketAddr::new(config.host, config.port);
    // Before the stores are opened, so that a port in use fails the start at once.
    let listener =
        TcpListener::bind(listen).map_err(|source| ServeError::Listen { listen, source })?;
    let tls = config.tls.open(chassis::HTTP1_AND_2)?;
    let setup = Setup::new(config)?;
    let runtime = chassis::runtime()?;
    // Before the workers start, because without a handler SIGHUP ends the process. Without a file, it still
    // does.
    let hangups = match setup.rules.file() {
        Some(_) => Some(runtime.block_on(async { signal(SignalKind::hangup()) })?),
        None => None,
    };
    let table = ConnectionTable::new(config.connections.most());
    let workers = (0..config.workers())
        // One gate per worker, because each worker has its own connection to Redis.
        .map(|number| start(number, setup.gate(), config, &table, tls.as_ref()))
        .collect::<Result<Vec<_>, ServeError>>()?;
    // On the main thread, which is idle between connections.
    if let Some(hangups) = hangups {
        runtime.spawn_local(reload(Arc::clone(&setup.rules), hangups));
    }
    if setup.redis.is_none() {
        runtime.spawn_local(sweep(Arc::clone(&setup.rules)));
    }
    tracing::info!(store = setup.store_name(), "counting");
    Ok(chassis::serve(&runtime, listener, &table, workers)?)
}

fn start(
    number: u16,
    gate: Gate,
    config: &Config,
    table: &Arc<ConnectionTable>,
    tls: Option<&ListenerTls>,
) -> Result<Worker, ServeError> {
    let executor = graphql::Executor::new(gate.clone(), config);
    let origins = config.origins();
    let hosts = Hosts::of(config.host, &config.hosts);
    let limits = config
        .connections
        .limits(HEAD_TIMEOUT, config.stop_timeout());
    let connections = Arc::clone(table);
    let prepare = async move || {
        if let Some(store) = &gate.redis {
            store.connect();
            // Without Redis the policy decides.
            store.ready(FIRST_CONNECT_TIMEOUT).await;
        }
        Handler {
            metrics: Arc::clone(&gate.metrics),
            hosts,
            executor,
            origins,
            connections,
        }
    };
    Ok(Worker::start(number, table, limits, tls, prepare)?)
}

/// The shared parts of all workers' gates.
struct Setup<'a> {
    config: &'a Config,
    redis: Option<RedisTarget>,
    rules: Arc<LiveRules>,
    key: FingerprintKey,
    metrics: Arc<Metrics>,
}

impl<'a> Setup<'a> {
    fn new(config: &'a Config) -> Result<Self, ServeError> {
        let redis = config.redis_url();
        let redis = redis.map(|url| config.redis.target(&url)).transpose()?;
        let entries_max = usize::try_from(config.max_entries).expect("`usize` has 32 bits or more");
        let store = if redis.is_some() { REDIS } else { MEMORY };
        let metrics = Arc::new(Metrics::of(store, config.rule_name()));
        let rules = LiveRules::open(
            config.rules.as_deref(),
            config.rule(),
            redis.is_none().then_some(entries_max),
            Arc::clone(&metrics),
        )?;
        let key = match (&config.email_key, &redis) {
            // The configured text first. Otherwise a random key, if no other instance must use the same key.
            (Some(text), _) => FingerprintKey::from_text(text),
            (None, None) => FingerprintKey::random().ok_or(ServeError::NoRandomness)?,
            (None, Some(_)) => {
                let advice = "set RATELIMIT_EMAIL_KEY, the same for all instances; without it, \
                              a reader of Redis can guess e-mails";
                tracing::warn!(advice, "fingerprints without a secret");
                FingerprintKey::from_text("")
            }
        };
        let key = if config.is_original() {
            let advice = "use --compat=original for comparisons only: any web page can ban any \
                          address, and a client of IPv6 has any number of counters";
            tracing::warn!(advice, "counting and answering as the original");
            key.telling_case()
        } else {
            key
        };
        Ok(Self {
            config,
            redis,
            rules: Arc::new(rules),
            key,
            metrics,
        })
    }

    fn store_name(&self) -> &'static str {
        if self.redis.is_some() { REDIS } else { MEMORY }
    }

    /// Creates the gate of one worker.
    fn gate(&self) -> Gate {
        let deadline = self.config.store_deadline();
        let redis = self.redis.clone().map(Link::to);
        Gate {
            redis: redis.map(|link| RedisStore::new(link, deadline)),
            policy: self.config.store_failure,
            key: self.key.clone(),
            ipv6_prefix: self.config.ipv6_prefix(),
            finds_ipv4: !self.config.is_original(),
            rules: Arc::clone(&self.rules),
            metrics: Arc::clone(&self.metrics),
        }
    }
}

async fn sweep(rules: Arc<LiveRules>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        rules.sweep(clock::now_ms());
    }
}

/// Reads the file of rules again at each SIGHUP.
async fn reload(rules: Arc<LiveRules>, mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        if let Some(path) = rules.file() {
            rules.reload(path);
        }
    }
}
