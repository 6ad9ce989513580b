//! The store that instances share: one script on Redis, and one round trip for each decision.
//!
//! A worker has one connection, so the decisions of one request keep their order. Without a connection,
//! decisions fail at once instead of queueing, and the policy decides.
//!
//! The state of an address is one key, `rl:{ADDRESS}`. The braces make the address a hash tag, so the script
//! also works in a cluster. The time is Redis's time, so the clocks of instances may differ.

use std::sync::Arc;
use std::time::Duration;

pub use redis_link::LinkError as RedisStoreError;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, Script, ServerErrorKind};
use redis_link::Link;

use crate::address::Address;
use crate::rule::{Decision, Event, Mode, Rule};

/// The Redis store of one worker. Clones share the connection.
#[derive(Clone)]
pub struct RedisStore {
    link: Link,
    script: Arc<Decide>,
    rule: Rule,
    deadline: Duration,
}

/// The script. Redis caches it by its hash.
struct Decide {
    script: Script,
    source: &'static str,
}

impl RedisStore {
    /// Creates a store that is not connected yet. See [`RedisStore::connect`].
    ///
    /// # Errors
    /// Fails if `url` is not an address of a Redis.
    pub fn new(url: &str, rule: Rule, deadline: Duration) -> Result<Self, RedisStoreError> {
        let source = include_str!("redis_store/decide.lua");
        let script = Script::new(source);
        Ok(Self {
            link: Link::new(url)?,
            script: Arc::new(Decide { script, source }),
            rule,
            deadline,
        })
    }

    /// Connects in the background while a clone of this store exists.
    pub fn connect(&self) {
        self.link.connect();
    }

    /// Waits for a connection, at most for `patience`.
    pub async fn ready(&self, patience: Duration) -> bool {
        self.link.ready(patience).await
    }

    /// Decides one event by Redis's clock.
    ///
    /// # Errors
    /// Fails if Redis did not decide. After `TimedOut`, Redis may have counted the event.
    pub async fn decide(
        &self,
        address: Address,
        event: Event,
        email: u64,
    ) -> Result<Decision, RedisStoreError> {
        self.decide_at(address, None, event, email).await
    }

    /// Decides one event at a time from the caller, in milliseconds.
    ///
    /// # Errors
    /// Like [`RedisStore::decide`].
    pub async fn decide_at(
        &self,
        address: Address,
        now: Option<u64>,
        event: Event,
        email: u64,
    ) -> Result<Decision, RedisStoreError> {
        let arguments = self.arguments(address, now, event, email);
        let decide = |connection| self.script.run(connection, &arguments);
        let (is_limited, starts_ban, retry_ms, failures) =
            self.link.ask(self.deadline, decide).await?;
        Ok(Decision {
            is_limited,
            starts_ban,
            retry_ms,
            failures,
        })
    }

    /// All arguments after the script: the number of keys, the key, and the arguments of `decide.lua`.
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
            // The braces make the address the hash tag in a cluster.
            format!("rl:{{{address}}}"),
            event.to_owned(),
            // Hexadecimal, because Lua's numbers are floats and would lose bits of a 64-bit number.
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

impl Decide {
    async fn run(
        &self,
        mut connection: MultiplexedConnection,
        arguments: &[String],
    ) -> Result<(bool, bool, u64, u32), RedisError> {
        let known = command("EVALSHA", self.script.get_hash(), arguments)
            .query_async(&mut connection)
            .await;
        match known {
            // A restarted Redis has lost the script, so the text is sent once more.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                command("EVAL", self.source, arguments)
                    .query_async(&mut connection)
                    .await
            }
            other => other,
        }
    }
}

fn command(name: &str, script: &str, arguments: &[String]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(arguments);
    command
}
