//! The store that instances share: one script on Redis, one round trip for each decision.
//!
//! A worker has one connection; decisions of concurrent requests are pipelined over it, so those
//! of one request keep their order. A task of its own connects, and again when the connection is
//! lost; meanwhile decisions fail at once instead of queueing, and the policy answers.
//!
//! The state of an address is one key, `rl:{ADDRESS}`, whose braces make it a hash tag: a cluster
//! needs nothing more. The time is Redis's, so instances need not agree on theirs.
//!
//! Absent on purpose: redirections of a cluster (a proxy or a cluster-aware balancer follows
//! them) and TLS to Redis.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, RedisError, Script, ServerErrorKind};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::address::Address;
use crate::rule::{Decision, Event, Mode, Rule};

/// Time for connecting, greeting included. With [`RETRY_PAUSE`], well below a second.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// So many decisions in a row past their deadline, and the connection is taken for dead.
const SILENCE_MAX: u32 = 16;

/// Why Redis did not decide.
#[derive(Debug, thiserror::Error)]
pub enum RedisStoreError {
    /// The address of Redis makes no sense.
    #[error("cannot use the address of Redis: {0}; expected redis://HOST:PORT/DATABASE")]
    Address(RedisError),
    /// There is no connection at the moment.
    #[error("not connected to Redis")]
    NotConnected,
    /// Redis did not answer in time. It may still count the event.
    #[error("Redis did not answer within {0:?}")]
    TimedOut(Duration),
    /// Redis answered with an error, or the connection broke.
    #[error("Redis: {0}")]
    Failed(RedisError),
}

/// Redis, as one worker sees it. Clones share the connection.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    rule: Rule,
    deadline: Duration,
}

struct Link {
    client: Client,
    script: Script,
    source: &'static str,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Told when the connection is lost.
    lost: Notify,
    /// Told when there is a connection.
    connected: Notify,
    silent: AtomicU32,
}

impl RedisStore {
    /// A store that is not connected yet; see [`RedisStore::keep_connected`].
    ///
    /// # Errors
    /// `url` is no address of a Redis.
    pub fn new(url: &str, rule: Rule, deadline: Duration) -> Result<Self, RedisStoreError> {
        let source = include_str!("redis_store/decide.lua");
        let link = Link {
            client: Client::open(url).map_err(RedisStoreError::Address)?,
            script: Script::new(source),
            source,
            connection: Mutex::default(),
            lost: Notify::new(),
            connected: Notify::new(),
            silent: AtomicU32::new(0),
        };
        Ok(Self {
            link: Arc::new(link),
            rule,
            deadline,
        })
    }

    /// Connects, and connects again whenever the connection is lost; ends with its task.
    pub async fn keep_connected(self) {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            // No limit here: each decision has its own deadline, and a late answer must still be
            // read off the connection.
            .set_response_timeout(None);
        let mut was_told = false;
        loop {
            let connecting = self
                .link
                .client
                .get_multiplexed_async_connection_with_config(&config);
            match timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(Ok(connection)) => {
                    self.link.set(Some(connection));
                    tracing::info!("connected to Redis");
                    was_told = false;
                    self.link.connected.notify_waiters();
                    self.link.lost.notified().await;
                    tracing::warn!("lost Redis");
                }
                // Said once per outage; the loop tries ten times a second.
                Ok(Err(error)) if !was_told => {
                    was_told = true;
                    tracing::warn!(%error, "no Redis");
                }
                _ => {}
            }
            // Also after a connection was lost, or a Redis that accepts and closes would be
            // connected to without a pause.
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Waits for a connection, but not longer than `patience`.
    pub async fn ready(&self, patience: Duration) -> bool {
        // Before the look: a connection made between the look and the wait would otherwise not be
        // noticed.
        let connected = self.link.connected.notified();
        self.link.get().is_some() || timeout(patience, connected).await.is_ok()
    }

    /// Decides one event by Redis's clock.
    ///
    /// # Errors
    /// Redis did not decide; in the case of `TimedOut` it may have counted the event.
    pub async fn decide(
        &self,
        address: Address,
        event: Event,
        email: u64,
    ) -> Result<Decision, RedisStoreError> {
        self.decide_at(address, None, event, email).await
    }

    /// Decides one event at a time that the caller gives, in milliseconds.
    ///
    /// # Errors
    /// As [`RedisStore::decide`].
    pub async fn decide_at(
        &self,
        address: Address,
        now: Option<u64>,
        event: Event,
        email: u64,
    ) -> Result<Decision, RedisStoreError> {
        let Some(mut connection) = self.link.get() else {
            return Err(RedisStoreError::NotConnected);
        };
        let arguments = self.arguments(address, now, event, email);
        match timeout(self.deadline, self.link.run(&mut connection, &arguments)).await {
            Ok(Ok((limited, starts_ban))) => {
                self.link.silent.store(0, Ordering::Relaxed);
                Ok(Decision {
                    is_limited: limited,
                    starts_ban,
                })
            }
            Ok(Err(error)) => {
                // An error of the script or of Redis's memory says nothing about the connection.
                if error.is_unrecoverable_error() || error.is_io_error() {
                    self.link.lose();
                }
                Err(RedisStoreError::Failed(error))
            }
            Err(_) => {
                // One slow answer is no dead connection; sixteen in a row are.
                if self.link.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENCE_MAX {
                    self.link.lose();
                }
                Err(RedisStoreError::TimedOut(self.deadline))
            }
        }
    }

    /// Everything after the script: the number of keys, the key, and what `decide.lua` lists.
    fn arguments(
        &self,
        address: Address,
        now: Option<u64>,
        event: Event,
        email: u64,
    ) -> [String; 12] {
        let rule = &self.rule;
        let mode = match rule.mode {
            Mode::Fixed => "fixed",
            Mode::Original => "original",
        };
        let event = match event {
            Event::Failed => "1",
            Event::Succeeded => "0",
        };
        [
            "1".to_owned(),
            // Braces make the address the hash tag of a cluster.
            format!("rl:{{{address}}}"),
            event.to_owned(),
            // Hexadecimal, because Lua's numbers are floats and would lose bits of 64.
            format!("{email:016x}"),
            rule.ban_ms.to_string(),
            rule.window_ms.to_string(),
            rule.failures_max.to_string(),
            rule.emails_max.to_string(),
            rule.memory_ms().to_string(),
            mode.to_owned(),
            u8::from(rule.inclusive).to_string(),
            now.map(|now| now.to_string()).unwrap_or_default(),
        ]
    }
}

impl Link {
    async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        arguments: &[String],
    ) -> Result<(bool, bool), RedisError> {
        let known = command("EVALSHA", self.script.get_hash(), arguments)
            .query_async(connection)
            .await;
        match known {
            // A Redis that was restarted has forgotten the script; the text is sent once more.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                command("EVAL", self.source, arguments)
                    .query_async(connection)
                    .await
            }
            other => other,
        }
    }

    fn get(&self) -> Option<MultiplexedConnection> {
        let connection = self.connection.lock();
        connection.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, connection: Option<MultiplexedConnection>) {
        self.silent.store(0, Ordering::Relaxed);
        *self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = connection;
    }

    /// Drops the connection, once for all the decisions that were under way on it.
    fn lose(&self) {
        let connection = self.connection.lock();
        // Taken once: many decisions fail together, and one notice is enough.
        let lost = connection.unwrap_or_else(PoisonError::into_inner).take();
        if lost.is_some() {
            self.lost.notify_one();
        }
    }
}

fn command(name: &str, script: &str, arguments: &[String]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(arguments);
    command
}
