//! The store that instances share: one script on Redis, and one round trip for each decision.
//!
//! A worker has one connection, so the decisions of one request keep their order. Without a connection,
//! decisions fail at once instead of queueing, and the policy decides.
//!
//! The state of a subject is one key. The seed's rule has `rl:{ADDRESS}`. A rule of a file has
//! `rl:NAME:RESULTS:KEY:{SUBJECT}`. The braces make the subject a hash tag, so the script also works in a
//! cluster. The time is Redis's time, so the clocks of instances may differ.

use std::sync::Arc;
use std::time::Duration;

pub use redis_link::LinkError as RedisStoreError;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, Script, ServerErrorKind};
use redis_link::Link;

use crate::rule::{Decision, Event, Mode, Rule};
use crate::subject::Subject;

/// The Redis store of one worker. Clones share the connection.
#[derive(Clone)]
pub struct RedisStore {
    link: Link,
    script: Arc<Decide>,
    deadline: Duration,
}

/// One event for one rule.
#[derive(Debug, Clone, Copy)]
pub struct RuleEvent<'a> {
    /// The limits.
    pub rule: &'a Rule,
    /// The part of the key before the subject: `rl:` for the seed's rule.
    pub prefix: &'a str,
    /// The subject of the counter.
    pub subject: Subject,
    /// The result of the login.
    pub event: Event,
    /// The fingerprint of the e-mail, or of the address if the rule counts e-mails.
    pub other: u64,
}

/// The script. Redis caches it by its hash.
struct Decide {
    script: Script,
    source: &'static str,
}

impl RedisStore {
    /// Creates a store over this link. See [`RedisStore::connect`].
    #[must_use]
    pub fn new(link: Link, deadline: Duration) -> Self {
        let source = include_str!("redis_store/decide.lua");
        let script = Script::new(source);
        Self {
            link,
            script: Arc::new(Decide { script, source }),
            deadline,
        }
    }

    /// Connects in the background while a clone of this store exists.
    pub fn connect(&self) {
        self.link.connect();
    }

    /// Waits for a connection, at most for `patience`.
    pub async fn ready(&self, patience: Duration) -> bool {
        self.link.ready(patience).await
    }

    /// Decides one event, by Redis's clock or at a time from the caller in milliseconds.
    ///
    /// # Errors
    /// Fails if Redis did not decide. After `TimedOut`, Redis may have counted the event.
    pub async fn decide(
        &self,
        event: RuleEvent<'_>,
        now: Option<u64>,
    ) -> Result<Decision, RedisStoreError> {
        let arguments = event.arguments(now);
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
}

impl RuleEvent<'_> {
    /// All arguments after the script: the number of keys, the key, and the arguments of `decide.lua`.
    fn arguments(&self, now: Option<u64>) -> [String; 12] {
        let rule = self.rule;
        let mode = match rule.mode {
            Mode::Fixed => "fixed",
            Mode::Original => "original",
        };
        [
            "1".to_owned(),
            // The braces make the subject the hash tag in a cluster.
            format!("{}{{{}}}", self.prefix, self.subject),
            u8::from(rule.counts.contains(self.event)).to_string(),
            // Hexadecimal, because Lua's numbers are floats and would lose bits of a 64-bit number.
            format!("{:016x}", self.other),
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
