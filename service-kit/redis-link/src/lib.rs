//! One connection to Redis that reconnects by itself, with deadlines for commands.
//!
//! Commands of concurrent requests are pipelined over the connection in their order. A separate task
//! connects, and reconnects after the connection is lost. Meanwhile commands fail at once instead of
//! queueing.
//!
//! `target` reads the address, `tls` checks certificates, and `connect` makes one attempt. `outage` names the
//! reasons of a failed attempt. If the address
//! names sentinels, each attempt asks them for the master again, and so does the task once a second.
//!
//! Absent on purpose: redirections of a cluster (a proxy or a cluster-aware balancer follows them).

mod connect;
mod outage;
mod target;
mod tls;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{IntoConnectionInfo, RedisError};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

pub use outage::Outage;
pub use target::{RedisOptions, RedisTarget, TargetError};
pub use tls::PemError;

const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Pause after a connection to a server that refused the command. A new connection may lead to it again.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// Number of consecutive commands past their deadline after which the connection counts as dead.
const SILENCE_MAX: u32 = 16;

/// Time limit for the response to `PING` after a command past its deadline. It shows if Redis is only slow.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// The codes of errors that another server behind the same address may not have: a replica, a member of a
/// broken cluster, a server that loads its data or has other users. A script reports them as text.
const CODES_OF_SERVER: [&str; 7] = [
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "MOVED",
    "LOADING",
    "NOAUTH",
    "WRONGPASS",
];

/// Minimum time between two log lines about refused commands.
const REFUSAL_PAUSE: Duration = Duration::from_secs(10);

/// The reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The address of Redis is invalid.
    #[error("cannot use the address of Redis: {0}; expected redis://HOST:PORT/DATABASE")]
    Address(RedisError),
    /// There is currently no connection.
    #[error("not connected to Redis: {}", .0.reason())]
    NotConnected(Outage),
    /// Redis did not respond in time. It may still execute the command.
    #[error("Redis did not answer within {0:?}")]
    TimedOut(Duration),
    /// Redis returned an error, or the connection broke.
    #[error("Redis: {0}")]
    Failed(RedisError),
}

impl LinkError {
    /// The kind of the failure, as a label of metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Address(_) => "address",
            Self::NotConnected(outage) => outage.reason(),
            Self::TimedOut(_) => "timed-out",
            Self::Failed(error) if is_of_server(error) => "wrong-server",
            Self::Failed(error) if is_of_connection(error) => "lost",
            Self::Failed(_) => "refused",
        }
    }
}

/// True if the connection is broken.
fn is_of_connection(error: &RedisError) -> bool {
    error.is_unrecoverable_error() || error.is_io_error()
}

/// True if this server refuses the command, and another server behind the same address may not.
fn is_of_server(error: &RedisError) -> bool {
    let text = error.detail().unwrap_or_default();
    CODES_OF_SERVER
        .iter()
        .any(|code| error.code() == Some(code) || text.contains(code))
}

/// A connection to Redis. Clones share it. It is closed with the last clone.
#[derive(Clone)]
pub struct Link {
    inner: Arc<Inner>,
    task: Arc<Task>,
}

struct Inner {
    target: RedisTarget,
    /// The kind of the current outage, as its number.
    outage: AtomicU8,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Notified when the connection is lost.
    lost: Notify,
    /// Notified when there is a connection.
    connected: Notify,
    silent: AtomicU32,
    /// True while a `PING` waits for its response.
    is_pinging: AtomicBool,
    /// True if the last connection was lost because its server refused a command.
    is_refused: AtomicBool,
    /// Time of the last log line about refused commands.
    refusal_told: Mutex<Option<Instant>>,
}

/// The connecting task. It ends with the last link.
#[derive(Default)]
struct Task(Mutex<Option<AbortHandle>>);

impl Drop for Task {
    fn drop(&mut self) {
        let task = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl Link {
    /// Creates a link that is not connected yet. See [`Link::connect`].
    ///
    /// # Errors
    /// Fails if `address` is not an address of a Redis.
    pub fn new(address: impl IntoConnectionInfo) -> Result<Self, LinkError> {
        let info = address.into_connection_info().map_err(LinkError::Address)?;
        Ok(Self::to(RedisTarget::from(info)))
    }

    /// Creates a link to this target that is not connected yet. See [`Link::connect`].
    #[must_use]
    pub fn to(target: RedisTarget) -> Self {
        let inner = Inner {
            target,
            outage: AtomicU8::new(0),
            connection: Mutex::default(),
            lost: Notify::new(),
            connected: Notify::new(),
            silent: AtomicU32::new(0),
            is_pinging: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
            refusal_told: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
            task: Arc::default(),
        }
    }

    /// Connects in the background, and reconnects whenever the connection is lost. A second call has no
    /// effect.
    ///
    /// # Panics
    /// Panics outside of a runtime.
    pub fn connect(&self) {
        let mut task = self.task.0.lock().unwrap_or_else(PoisonError::into_inner);
        task.get_or_insert_with(|| {
            tokio::spawn(keep_connected(Arc::clone(&self.inner))).abort_handle()
        });
    }

    /// Waits for a connection, at most for `patience`.
    pub async fn ready(&self, patience: Duration) -> bool {
        // Created before the check, or a connection between the check and the wait would be missed.
        let connected = self.inner.connected.notified();
        self.inner.get().is_some() || timeout(patience, connected).await.is_ok()
    }

    /// Sends commands to Redis. `work` receives a handle of the connection.
    ///
    /// # Errors
    /// Fails if Redis did not respond, or responded with an error. After `TimedOut`, Redis may have executed
    /// the command.
    pub async fn ask<T, F>(
        &self,
        deadline: Duration,
        work: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Result<T, LinkError>
    where
        F: Future<Output = Result<T, RedisError>>,
    {
        let inner = &self.inner;
        let Some(connection) = inner.get() else {
            return Err(LinkError::NotConnected(inner.outage()));
        };
        match timeout(deadline, work(connection)).await {
            Ok(Ok(answer)) => {
                inner.silent.store(0, Ordering::Relaxed);
                Ok(answer)
            }
            Ok(Err(error)) => {
                // The connection is still good after an error of a script or of Redis's memory.
                if is_of_connection(&error) {
                    inner.lose();
                } else {
                    inner.tell_refusal(&error);
                }
                // After a failover, old connections lead to the old server. A new one follows the name.
                if is_of_server(&error) {
                    inner.is_refused.store(true, Ordering::Relaxed);
                    inner.lose();
                }
                Err(LinkError::Failed(error))
            }
            Err(_) => {
                // One slow response does not mean a dead connection, but sixteen in a row do.
                if inner.silent.fetch_add(1, Ordering::Relaxed) + 1 >= SILENCE_MAX {
                    inner.lose();
                } else {
                    ping(inner);
                }
                Err(LinkError::TimedOut(deadline))
            }
        }
    }
}

impl Inner {
    fn get(&self) -> Option<MultiplexedConnection> {
        let connection = self.connection.lock();
        connection.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn outage(&self) -> Outage {
        let number = usize::from(self.outage.load(Ordering::Relaxed));
        Outage::ALL.get(number).copied().unwrap_or_default()
    }

    fn set(&self, connection: MultiplexedConnection) {
        self.outage.store(0, Ordering::Relaxed);
        self.silent.store(0, Ordering::Relaxed);
        let mut place = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = Some(connection);
    }

    /// Drops the connection, once for all commands in flight.
    fn lose(&self) {
        let connection = self.connection.lock();
        // Taken once: many commands fail together, and one notification is enough.
        let lost = connection.unwrap_or_else(PoisonError::into_inner).take();
        if lost.is_some() {
            self.lost.notify_one();
        }
    }
}

impl Inner {
    /// Logs refused commands, for instance writes when Redis's memory is full. At most one line per
    /// `REFUSAL_PAUSE`, because Redis may refuse every command.
    fn tell_refusal(&self, error: &RedisError) {
        let told = self.refusal_told.lock();
        let mut told = told.unwrap_or_else(PoisonError::into_inner);
        if told.is_some_and(|told| told.elapsed() < REFUSAL_PAUSE) {
            return;
        }
        *told = Some(Instant::now());
        tracing::warn!(%error, "Redis refuses commands");
    }
}

/// Drops the connection if Redis does not respond to a `PING`. Rare commands would otherwise need minutes to
/// show that Redis is silent.
fn ping(inner: &Arc<Inner>) {
    let Some(mut connection) = inner.get() else {
        return;
    };
    if inner.is_pinging.swap(true, Ordering::Relaxed) {
        return;
    }
    let inner = Arc::clone(inner);
    tokio::spawn(async move {
        let command = redis::cmd("PING");
        let asked = command.query_async::<redis::Value>(&mut connection);
        let is_silent = timeout(PING_TIMEOUT, asked).await.is_err();
        inner.is_pinging.store(false, Ordering::Relaxed);
        if is_silent {
            inner.lose();
        }
    });
}

async fn keep_connected(inner: Arc<Inner>) {
    let mut told: Vec<Outage> = Vec::new();
    loop {
        match connect::connect(&inner.target).await {
            Ok((connection, server)) => {
                inner.set(connection);
                tracing::info!(server, "connected to Redis");
                told.clear();
                inner.connected.notify_waiters();
                let chosen = tokio::select! {
                    () = inner.lost.notified() => None,
                    chosen = connect::replaced(&inner.target, &server) => Some(chosen),
                };
                match chosen {
                    None => tracing::warn!("lost Redis"),
                    Some(chosen) => {
                        inner.lose();
                        // Whoever dropped the connection has notified once.
                        inner.lost.notified().await;
                        tracing::warn!(server, chosen, "the sentinels chose another master");
                    }
                }
            }
            Err(error) => {
                let outage = error.outage();
                inner.outage.store(outage as u8, Ordering::Relaxed);
                // Each kind is logged once per outage, because the loop tries ten times a second.
                if !told.contains(&outage) {
                    told.push(outage);
                    tracing::warn!(%error, "no Redis");
                }
            }
        }
        // Also after a lost connection, or the loop would reconnect without a pause to a Redis that accepts
        // and closes connections.
        let was_refused = inner.is_refused.swap(false, Ordering::Relaxed);
        sleep(if was_refused {
            REFUSED_PAUSE
        } else {
            RETRY_PAUSE
        })
        .await;
    }
}
