//! Redis store of cached responses, for processes that share a cache.
//!
//! A response carries two invalidation versions, of its subgraph and of its type, as they were before the
//! request to the subgraph. The current versions are entries of their own. One command reads them together
//! with the responses. An invalidation replaces a version, and all responses with another version are stale.
//! If Redis has lost a version, the gateway creates a new random one, so an old response never matches again.
//!
//! If Redis is slow or down, every lookup is a miss, no response is stored, and the gateway sends the
//! requests to the subgraphs. The queue of responses to store is bounded. An invalidation fails rather than
//! gets lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use gateway_config::AnswersInRedis;
use http::{HeaderMap, HeaderName, HeaderValue};
use redis::Pipeline;
use redis_link::{Link, LinkError, RedisOptions, RedisTarget, TargetError};

use super::{Answer, LONGEST, Pair};

/// Version of the entry format. Versions of the gateway that share a Redis server do not read each other's
/// entries.
const FORM: &str = "weighbridge:answers:1";

/// Maximum number of bytes in the queue of responses to store. Above it, responses are not stored.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Lifetime of a version: longer than the lifetime of any response that carries it.
const VERSION_SECONDS: u64 = LONGEST.as_secs() + 24 * 3_600;

type Version = [u8; 16];

/// The version of the subgraph and the version of the type of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidationVersions(Version, Version);

/// A Redis server that stores responses.
pub(super) struct RedisStore {
    config: AnswersInRedis,
    link: Link,
    /// The prefix of its keys.
    prefix: String,
    waiting: Arc<AtomicUsize>,
    failures: Arc<AtomicU64>,
}

// Not derived: a link has no useful debug output.
impl std::fmt::Debug for RedisStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("RedisStore")
            .field(&self.prefix)
            .finish()
    }
}

/// Returns the store of this Redis configuration, and creates it if there is none yet.
pub(super) fn of(
    config: &AnswersInRedis,
    stores: &mut Vec<Arc<RedisStore>>,
) -> Result<Arc<RedisStore>, TargetError> {
    if let Some(known) = stores.iter().find(|it| it.config == *config) {
        return Ok(Arc::clone(known));
    }
    let store = Arc::new(RedisStore::new(config)?);
    stores.push(Arc::clone(&store));
    Ok(store)
}

/// The Redis of a configuration. The keys `username` and `password` replace those of the address.
fn target(config: &AnswersInRedis) -> Result<RedisTarget, TargetError> {
    let address = config.urls.first().map_or("", |it| it.0.0.as_str());
    let authorities = config.tls.certificate_authorities.as_ref();
    let identity = config.tls.client_authentication.as_ref();
    let options = RedisOptions {
        username: config.username.clone(),
        password: config.password.clone(),
        replaces_login: true,
        authorities: authorities.map(|pem| pem.0.clone()),
        identity: identity.map(|it| (it.certificate_chain.0.clone(), it.key.0.clone())),
        ..RedisOptions::default()
    };
    RedisTarget::read(address, &options)
}

impl RedisStore {
    fn new(config: &AnswersInRedis) -> Result<Self, TargetError> {
        let target = target(config)?;
        let prefix = match &config.namespace {
            Some(namespace) => format!("{namespace}:{FORM}"),
            None => FORM.to_owned(),
        };
        Ok(Self {
            config: config.clone(),
            link: Link::to(target),
            prefix,
            waiting: Arc::default(),
            failures: Arc::default(),
        })
    }

    pub(super) fn connect(&self) {
        self.link.connect();
    }

    pub(super) fn is_required(&self) -> bool {
        self.config.required_to_start
    }

    pub(super) async fn ready(&self, patience: Duration) -> bool {
        self.link.ready(patience).await
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Looks up each pair, and gives each pair the versions that its new response needs. `types` contains the
    /// types of the pairs in the same order.
    pub(super) async fn find(
        &self,
        subgraph: &str,
        types: &[&str],
        pairs: &mut [Pair],
    ) -> Vec<Option<Arc<Answer>>> {
        self.read(subgraph, types, pairs).await.unwrap_or_else(|_| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            // The pairs have no versions, so their responses are not stored either.
            pairs.iter().map(|_| None).collect()
        })
    }

    async fn read(
        &self,
        subgraph: &str,
        types: &[&str],
        pairs: &mut [Pair],
    ) -> Result<Vec<Option<Arc<Answer>>>, LinkError> {
        let different: BTreeSet<&str> = types.iter().copied().collect();
        let mut names = vec![self.version_of_subgraph(subgraph)];
        names.extend(
            different
                .iter()
                .map(|of| self.version_of_type(subgraph, of)),
        );
        let versioned = names.len();
        for pair in pairs.iter() {
            names.push(self.answer(&pair.public));
            names.extend(pair.private.iter().map(|key| self.answer(key)));
        }
        let deadline = self.config.timeout.unwrap_or(self.config.fetch_timeout).0;
        let began = tokio::time::Instant::now();
        let values: Vec<Option<Vec<u8>>> = self
            .link
            .ask(deadline, |mut connection| {
                let mut command = redis::cmd("MGET");
                command.arg(&names);
                async move { command.query_async(&mut connection).await }
            })
            .await?;
        let mut values = values.into_iter();
        let versions: Vec<Option<Version>> = values
            .by_ref()
            .take(versioned)
            .map(|it| it?.try_into().ok())
            .collect();
        let left = deadline.saturating_sub(began.elapsed());
        let versions = self.complete(&names[..versioned], versions, left).await?;
        let (of_subgraph, of_types) = versions.split_first().expect("a version for each name");
        let of_types: BTreeMap<&str, Version> = different
            .into_iter()
            .zip(of_types.iter().copied())
            .collect();
        let found = pairs.iter_mut().zip(types).map(|(pair, of)| {
            let wanted = InvalidationVersions(*of_subgraph, of_types[of]);
            pair.versions = Some(wanted);
            let mut read = || decode(values.next().flatten()?, &wanted).map(Arc::new);
            let public = read();
            // The reply contains values for each pair, so this value is read even if it is not used.
            let private = pair.private.as_ref().and_then(|_| read());
            public.or(private)
        });
        Ok(found.collect())
    }

    /// Creates the versions that Redis does not have, unless another process creates them first.
    async fn complete(
        &self,
        names: &[String],
        versions: Vec<Option<Version>>,
        deadline: Duration,
    ) -> Result<Vec<Version>, LinkError> {
        if let Some(all) = versions.iter().copied().collect::<Option<Vec<Version>>>() {
            return Ok(all);
        }
        let mut commands = Pipeline::new();
        for (name, version) in names.iter().zip(&versions) {
            if version.is_none() {
                commands.cmd("SET").arg(name).arg(&new_version());
                commands.arg("EX").arg(VERSION_SECONDS).arg("NX").ignore();
            }
            commands.cmd("GET").arg(name);
        }
        let made: Vec<Option<Vec<u8>>> = self
            .link
            .ask(deadline, |mut connection| async move {
                commands.query_async(&mut connection).await
            })
            .await?;
        // Redis evicted the version at once, or it has another format. With a random version the response
        // never matches, and the gateway continues to use the subgraph.
        let made = made.into_iter().map(|it| {
            let version = it.and_then(|it| it.try_into().ok());
            version.unwrap_or_else(new_version)
        });
        Ok(made.collect())
    }

    /// Stores responses, in the background.
    pub(super) fn put<'a>(
        &self,
        parts: impl Iterator<Item = (&'a String, InvalidationVersions, Answer)>,
        time: Duration,
    ) {
        let longest = self.config.ttl.map_or(LONGEST, |it| it.0);
        // Milliseconds, at least one: Redis rejects zero.
        let time = time.min(longest).as_millis().max(1);
        let mut commands = Pipeline::new();
        let mut bytes = 0;
        for (key, versions, answer) in parts {
            let value = encode(&answer, versions);
            bytes += value.len();
            commands.cmd("SET").arg(self.answer(key)).arg(value);
            commands.arg("PX").arg(time.to_string()).ignore();
        }
        if bytes == 0 {
            return;
        }
        let Some(waiting) = Waiting::begin(&self.waiting, bytes) else {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let deadline = self.config.timeout.unwrap_or(self.config.insert_timeout).0;
        let (link, failures) = (self.link.clone(), Arc::clone(&self.failures));
        tokio::spawn(async move {
            let kept = link.ask(deadline, |mut connection| async move {
                commands.query_async::<()>(&mut connection).await
            });
            if kept.await.is_err() {
                failures.fetch_add(1, Ordering::Relaxed);
            }
            drop(waiting);
        });
    }

    /// Replaces the version of a subgraph, or of one of its types.
    pub(super) async fn invalidate(
        &self,
        subgraph: &str,
        of: Option<&str>,
    ) -> Result<(), LinkError> {
        let name = match of {
            None => self.version_of_subgraph(subgraph),
            Some(of) => self.version_of_type(subgraph, of),
        };
        let mut command = redis::cmd("SET");
        command.arg(name).arg(&new_version());
        command.arg("EX").arg(VERSION_SECONDS);
        let deadline = self.config.invalidate_timeout.0;
        self.link
            .ask(deadline, |mut connection| async move {
                command.query_async(&mut connection).await
            })
            .await
    }

    fn answer(&self, key: &str) -> String {
        format!("{}:a:{key}", self.prefix)
    }

    fn version_of_subgraph(&self, name: &str) -> String {
        format!("{}:s:{name}", self.prefix)
    }

    /// The type comes first. It contains no colon, so two different pairs never make one key.
    fn version_of_type(&self, subgraph: &str, of: &str) -> String {
        format!("{}:t:{of}:{subgraph}", self.prefix)
    }
}

/// Bytes in the queue of responses to store. Dropping the value releases them.
struct Waiting {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl Waiting {
    /// Reserves space in the queue. Returns `None` if the queue is full.
    fn begin(all: &Arc<AtomicUsize>, own: usize) -> Option<Self> {
        let before = all.fetch_add(own, Ordering::Relaxed);
        let all = Arc::clone(all);
        // If the queue is full, dropping the value releases the bytes again.
        Some(Self { all, own }).filter(|_| before.saturating_add(own) <= WAITING_BYTES_MAX)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

fn new_version() -> Version {
    gateway_telemetry::random_bytes()
}

/// Layout: versions, the number of headers, each header with its lengths, the body.
fn encode(
    answer: &Answer,
    InvalidationVersions(of_subgraph, of_type): InvalidationVersions,
) -> Vec<u8> {
    let mut value = Vec::with_capacity(answer.bytes() + 36);
    value.extend_from_slice(&of_subgraph);
    value.extend_from_slice(&of_type);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
    value.extend_from_slice(&number(answer.headers.len()));
    for (name, text) in &answer.headers {
        for part in [name.as_str().as_bytes(), text.as_bytes()] {
            value.extend_from_slice(&number(part.len()));
            value.extend_from_slice(part);
        }
    }
    value.extend_from_slice(&answer.body);
    value
}

/// Decodes a response. `None` if its versions differ from `wanted` or it is incomplete.
fn decode(value: Vec<u8>, wanted: &InvalidationVersions) -> Option<Answer> {
    let value = Bytes::from(value);
    let mut rest = value.as_ref();
    let mut take = |count: usize| rest.split_off(..count);
    if take(16)? != wanted.0 || take(16)? != wanted.1 {
        return None;
    }
    let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize);
    let mut headers = HeaderMap::new();
    for _ in 0..number(take(4)?)? {
        let length = number(take(4)?)?;
        let name = HeaderName::from_bytes(take(length)?).ok()?;
        let length = number(take(4)?)?;
        let text = HeaderValue::from_bytes(take(length)?).ok()?;
        headers.try_append(name, text).ok()?;
    }
    let body = value.slice_ref(rest);
    Some(Answer { headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(number: u8) -> InvalidationVersions {
        InvalidationVersions([number; 16], [number + 1; 16])
    }

    fn answer() -> Answer {
        let mut headers = HeaderMap::new();
        headers.append("a", HeaderValue::from_static("1"));
        headers.append("a", HeaderValue::from_bytes(b"\xff").unwrap());
        Answer {
            headers,
            body: Bytes::from_static(b"{}"),
        }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written_and_with_its_versions_only() {
        let value = encode(&answer(), versions(1));
        let read = decode(value.clone(), &versions(1)).unwrap();
        assert_eq!(
            (&read.headers, &read.body[..]),
            (&answer().headers, &b"{}"[..])
        );
        for other in [
            versions(2),
            InvalidationVersions([1; 16], [1; 16]),
            InvalidationVersions([2; 16], [2; 16]),
        ] {
            assert!(decode(value.clone(), &other).is_none());
        }
    }

    #[test]
    fn an_entry_that_is_cut_or_made_up_is_none() {
        let value = encode(&answer(), versions(1));
        // The body may have any length. The parts before it must be complete.
        for length in 0..value.len() - 2 {
            assert!(
                decode(value[..length].to_vec(), &versions(1)).is_none(),
                "{length}"
            );
        }
        let mut many = value;
        many[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(many, &versions(1)).is_none());
    }
}
