//! Answers in a Redis that processes share.
//!
//! An answer carries two stamps: that of its subgraph and that of its type, as they were before the
//! subgraph was asked. The stamps that count are entries of their own, read in the same command as the
//! answers; an invalidation replaces one, and whatever carries another is out of date. A stamp that
//! Redis has lost is made anew, at random, so an answer from before never fits again.
//!
//! Redis may be slow or gone: then nothing is found and nothing kept, and subgraphs are asked. What
//! waits to be kept is bounded; an invalidation is refused rather than lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use gateway_config::AnswersInRedis;
use http::{HeaderMap, HeaderName, HeaderValue};
use redis::{ConnectionInfo, IntoConnectionInfo as _, Pipeline};
use redis_link::{Link, LinkError};

use super::{Answer, LONGEST, Pair};

/// Changes with the form of an entry, so that versions of the gateway that share a Redis do not read
/// each other's.
const FORM: &str = "weighbridge:answers:1";

/// Bytes that may wait to be kept. Beyond it answers are not kept.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// A stamp is kept longer than any answer that carries it.
const STAMP_SECONDS: u64 = LONGEST.as_secs() + 24 * 3_600;

type Stamp = [u8; 16];

/// The stamps of an answer's subgraph and of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamps(Stamp, Stamp);

/// A Redis in which answers are kept.
pub(super) struct Shelf {
    config: AnswersInRedis,
    link: Link,
    /// What its keys begin with.
    prefix: String,
    waiting: Arc<AtomicUsize>,
    failures: Arc<AtomicU64>,
}

// By hand: a link shows nothing.
impl std::fmt::Debug for Shelf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Shelf").field(&self.prefix).finish()
    }
}

/// The shelf of this Redis, which is made unless it is there.
pub(super) fn of(
    config: &AnswersInRedis,
    shelves: &mut Vec<Arc<Shelf>>,
) -> Result<Arc<Shelf>, LinkError> {
    if let Some(known) = shelves.iter().find(|it| it.config == *config) {
        return Ok(Arc::clone(known));
    }
    let shelf = Arc::new(Shelf::new(config)?);
    shelves.push(Arc::clone(&shelf));
    Ok(shelf)
}

impl Shelf {
    fn new(config: &AnswersInRedis) -> Result<Self, LinkError> {
        let address = config.urls.first().map_or("", |it| it.0.0.as_str());
        let mut address: ConnectionInfo =
            address.into_connection_info().map_err(LinkError::Address)?;
        let mut settings = address.redis_settings().clone();
        if let Some(name) = &config.username {
            settings = settings.set_username(name);
        }
        if let Some(password) = &config.password {
            settings = settings.set_password(password);
        }
        address = address.set_redis_settings(settings);
        let prefix = match &config.namespace {
            Some(namespace) => format!("{namespace}:{FORM}"),
            None => FORM.to_owned(),
        };
        Ok(Self {
            config: config.clone(),
            link: Link::new(address)?,
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

    /// What is there for each of these, which get the stamps that an answer to them needs. `types` are
    /// theirs, in the same order.
    pub(super) async fn find(
        &self,
        subgraph: &str,
        types: &[&str],
        pairs: &mut [Pair],
    ) -> Vec<Option<Arc<Answer>>> {
        self.read(subgraph, types, pairs).await.unwrap_or_else(|_| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            // They have got no stamps, so the answers are not kept either.
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
        let mut names = vec![self.stamp_of_subgraph(subgraph)];
        names.extend(different.iter().map(|of| self.stamp_of_type(subgraph, of)));
        let stamped = names.len();
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
        let stamps: Vec<Option<Stamp>> = values
            .by_ref()
            .take(stamped)
            .map(|it| it?.try_into().ok())
            .collect();
        let left = deadline.saturating_sub(began.elapsed());
        let stamps = self.complete(&names[..stamped], stamps, left).await?;
        let (of_subgraph, of_types) = stamps.split_first().expect("a stamp for each name");
        let of_types: BTreeMap<&str, Stamp> = different
            .into_iter()
            .zip(of_types.iter().copied())
            .collect();
        let found = pairs.iter_mut().zip(types).map(|(pair, of)| {
            let wanted = Stamps(*of_subgraph, of_types[of]);
            pair.stamps = Some(wanted);
            let mut read = || decode(values.next().flatten()?, &wanted).map(Arc::new);
            let public = read();
            // Read in any case: each pair has its values.
            let private = pair.private.as_ref().and_then(|_| read());
            public.or(private)
        });
        Ok(found.collect())
    }

    /// Makes the stamps that Redis does not have, unless another process is faster.
    async fn complete(
        &self,
        names: &[String],
        stamps: Vec<Option<Stamp>>,
        deadline: Duration,
    ) -> Result<Vec<Stamp>, LinkError> {
        if let Some(all) = stamps.iter().copied().collect::<Option<Vec<Stamp>>>() {
            return Ok(all);
        }
        let mut commands = Pipeline::new();
        for (name, stamp) in names.iter().zip(&stamps) {
            if stamp.is_none() {
                commands.cmd("SET").arg(name).arg(&new_stamp());
                commands.arg("EX").arg(STAMP_SECONDS).arg("NX").ignore();
            }
            commands.cmd("GET").arg(name);
        }
        let made: Vec<Option<Vec<u8>>> = self
            .link
            .ask(deadline, |mut connection| async move {
                commands.query_async(&mut connection).await
            })
            .await?;
        // Evicted at once, or of another form: then nothing is kept, and asking goes on.
        let made = made.into_iter().map(|it| {
            let stamp = it.and_then(|it| it.try_into().ok());
            stamp.unwrap_or_else(new_stamp)
        });
        Ok(made.collect())
    }

    /// Keeps answers, in the background.
    pub(super) fn put<'a>(
        &self,
        parts: impl Iterator<Item = (&'a String, Stamps, Answer)>,
        time: Duration,
    ) {
        let longest = self.config.ttl.map_or(LONGEST, |it| it.0);
        // In milliseconds, at least one: Redis takes no zero.
        let time = time.min(longest).as_millis().max(1);
        let mut commands = Pipeline::new();
        let mut bytes = 0;
        for (key, stamps, answer) in parts {
            let value = encode(&answer, stamps);
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

    /// Replaces the stamp of a subgraph, or of one of its types.
    pub(super) async fn invalidate(
        &self,
        subgraph: &str,
        of: Option<&str>,
    ) -> Result<(), LinkError> {
        let name = match of {
            None => self.stamp_of_subgraph(subgraph),
            Some(of) => self.stamp_of_type(subgraph, of),
        };
        let mut command = redis::cmd("SET");
        command.arg(name).arg(&new_stamp());
        command.arg("EX").arg(STAMP_SECONDS);
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

    fn stamp_of_subgraph(&self, name: &str) -> String {
        format!("{}:s:{name}", self.prefix)
    }

    /// The type first: it has no colon, so no two pairs are one key.
    fn stamp_of_type(&self, subgraph: &str, of: &str) -> String {
        format!("{}:t:{of}:{subgraph}", self.prefix)
    }
}

/// Bytes that wait to be kept, until this is dropped.
struct Waiting {
    all: Arc<AtomicUsize>,
    own: usize,
}

impl Waiting {
    /// Nothing when too many wait already.
    fn begin(all: &Arc<AtomicUsize>, own: usize) -> Option<Self> {
        let before = all.fetch_add(own, Ordering::Relaxed);
        let all = Arc::clone(all);
        // Dropped, and no longer counted, when it is too much.
        Some(Self { all, own }).filter(|_| before.saturating_add(own) <= WAITING_BYTES_MAX)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

fn new_stamp() -> Stamp {
    gateway_telemetry::random_bytes()
}

/// Stamps, the number of headers, each header with its lengths, the body.
fn encode(answer: &Answer, Stamps(of_subgraph, of_type): Stamps) -> Vec<u8> {
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

/// The answer, when it carries these stamps and is whole.
fn decode(value: Vec<u8>, wanted: &Stamps) -> Option<Answer> {
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

    fn stamps(number: u8) -> Stamps {
        Stamps([number; 16], [number + 1; 16])
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
    fn an_entry_is_read_as_it_was_written_and_with_its_stamps_only() {
        let value = encode(&answer(), stamps(1));
        let read = decode(value.clone(), &stamps(1)).unwrap();
        assert_eq!(
            (&read.headers, &read.body[..]),
            (&answer().headers, &b"{}"[..])
        );
        for other in [
            stamps(2),
            Stamps([1; 16], [1; 16]),
            Stamps([2; 16], [2; 16]),
        ] {
            assert!(decode(value.clone(), &other).is_none());
        }
    }

    #[test]
    fn an_entry_that_is_cut_or_made_up_is_none() {
        let value = encode(&answer(), stamps(1));
        // The body may be of any length; what stands before it may not.
        for length in 0..value.len() - 2 {
            assert!(
                decode(value[..length].to_vec(), &stamps(1)).is_none(),
                "{length}"
            );
        }
        let mut many = value;
        many[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(many, &stamps(1)).is_none());
    }
}
