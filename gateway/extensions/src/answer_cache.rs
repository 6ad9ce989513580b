//! Cache of subgraph responses. It is in memory, shared by all workers of a generation, or in a Redis server
//! that several processes share.
//!
//! The key of a response is a hash of the whole request: address, headers and body. Entities have keys of
//! their own, so that a request fetches only the missing entities. The key also contains the number of the
//! last invalidation that concerns the response. Stale entries are not deleted, but their key no longer
//! matches. A response that was in flight during an invalidation is stored under the old number.
//!
//! Responses that cannot be parsed are not stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use gateway_config::{EffectiveCaching, ResponseCache};
use gateway_upstream::Reply;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use operation_cache::{Bounds, CacheStats, Keep, Key, OperationCache};
use redis_link::{LinkError, TargetError};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

mod control;
mod redis_store;

use control::{Freshness, Scope};
use redis_store::{InvalidationVersions, RedisStore};

/// Maximum number of types that have an invalidation number of their own. Above it, the invalidation of a
/// type applies to its whole subgraph.
const TYPES_MAX: usize = 10_000;

/// One response takes at most this fraction of the memory (1/16), so that it cannot evict all other entries.
const SHARES: usize = 16;

/// The cached responses of all subgraphs.
#[derive(Debug)]
pub struct AnswerCache {
    kept: OperationCache<Arc<Answer>>,
    /// Maximum size of one response in memory.
    answer_bytes_max: usize,
    subgraphs: BTreeMap<String, Cached>,
    /// One store for each distinct Redis configuration.
    stores: Vec<Arc<RedisStore>>,
    invalidated: RwLock<Invalidated>,
}

/// A subgraph with cached responses.
#[derive(Debug)]
struct Cached {
    rules: EffectiveCaching,
    /// The Redis store of its responses, or `None` if they are in memory.
    store: Option<Arc<RedisStore>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// A whole response, or one entity.
#[derive(Debug)]
struct Answer {
    /// Empty for an entity.
    headers: HeaderMap,
    body: Bytes,
}

/// Numbers of the last invalidations.
#[derive(Debug, Default)]
struct Invalidated {
    last: u64,
    subgraphs: HashMap<String, u64>,
    types: HashMap<(String, String), u64>,
}

/// The parts of a subgraph request that make up its cache key.
pub(crate) struct Question<'a> {
    pub(crate) subgraph: &'a str,
    /// The URL of the subgraph. Processes that share a Redis server may use one subgraph name for different
    /// addresses.
    pub(crate) address: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    /// The identity of the client for private responses, if it is available.
    pub(crate) client: Option<String>,
}

/// The result of a cache lookup.
pub(crate) enum CacheLookup {
    /// The whole response is in the cache.
    Whole(Reply),
    /// A miss. The response may be stored under these keys.
    Miss(Keys),
    /// Some entities are in the cache. The body requests the missing entities.
    Partial(Partial, Bytes),
}

/// Keys of a response: a public key, and a private key for this client.
pub(crate) struct Keys {
    subgraph: String,
    own: Option<Pair>,
    entities: Vec<Pair>,
}

struct Pair {
    public: String,
    private: Option<String>,
    /// Invalidation versions that Redis needs to store the response. `None` if the cache is in memory or
    /// Redis did not respond.
    versions: Option<InvalidationVersions>,
}

/// A list of entities that is partly in the cache.
pub(crate) struct Partial {
    keys: Keys,
    found: Vec<Option<Arc<Answer>>>,
}

impl Answer {
    fn entity(text: &RawValue) -> Self {
        Self {
            headers: HeaderMap::new(),
            body: Bytes::copy_from_slice(text.get().as_bytes()),
        }
    }

    /// The approximate size in memory.
    fn bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(name, value)| name.as_str().len() + value.len() + 64)
            .sum();
        size_of::<Self>() + self.body.len() + headers
    }
}

type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

/// A parsed GraphQL request body.
struct CacheQuery<'a> {
    variables: Members<'a>,
    /// All members except `variables`.
    rest: Members<'a>,
}

impl<'a> CacheQuery<'a> {
    fn read(body: &'a [u8]) -> Option<Self> {
        let mut rest: Members<'a> = serde_json::from_slice(body).ok()?;
        let variables = rest.remove("variables")?;
        let variables = serde_json::from_str(variables.get()).ok()?;
        Some(Self { variables, rest })
    }
}

#[derive(Deserialize)]
struct Representation<'a> {
    #[serde(borrow, rename = "__typename")]
    typename: &'a str,
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Entities<'a> {
    #[serde(borrow, rename = "_entities")]
    entities: Vec<&'a RawValue>,
}

impl AnswerCache {
    /// Creates an empty cache for these subgraphs, without connections. Returns `None` if caching is off for
    /// all of them.
    ///
    /// # Errors
    /// Fails if the address of a Redis server is invalid.
    pub fn new<'a>(
        config: &ResponseCache,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Option<Self>, TargetError> {
        let mut stores: Vec<Arc<RedisStore>> = Vec::new();
        let mut subgraphs = BTreeMap::new();
        for name in names {
            let Some(rules) = config.of_subgraph(name) else {
                continue;
            };
            let store = match &rules.redis {
                None => None,
                Some(redis) => Some(redis_store::of(redis, &mut stores)?),
            };
            let cached = Cached {
                rules,
                store,
                hits: AtomicU64::new(0),
                misses: AtomicU64::new(0),
            };
            subgraphs.insert(name.to_owned(), cached);
        }
        let bytes_max = config.in_memory.max_bytes.0.0;
        Ok((!subgraphs.is_empty()).then(|| Self {
            answer_bytes_max: bytes_max / SHARES,
            kept: OperationCache::new(Bounds {
                entries: config.in_memory.limit.get(),
                bytes: bytes_max,
            }),
            subgraphs,
            stores,
            invalidated: RwLock::default(),
        }))
    }

    /// Connects to each Redis, in the background and again whenever a connection is lost.
    pub fn connect(&self) {
        for store in &self.stores {
            store.connect();
        }
    }

    /// Waits at most `patience` for the Redis connections that the gateway requires at startup. Returns true
    /// if all of them are open.
    pub async fn required(&self, patience: Duration) -> bool {
        let began = tokio::time::Instant::now();
        for store in self.stores.iter().filter(|it| it.is_required()) {
            if !store.ready(patience.saturating_sub(began.elapsed())).await {
                return false;
            }
        }
        true
    }

    /// Lookups and writes that failed because Redis did not respond in time.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.stores.iter().map(|it| it.failures()).sum()
    }

    fn store(&self, subgraph: &str) -> Option<&RedisStore> {
        self.subgraphs.get(subgraph)?.store.as_deref()
    }

    /// True if responses of this subgraph are cached.
    pub(crate) fn has(&self, subgraph: &str) -> bool {
        self.subgraphs.contains_key(subgraph)
    }

    /// The context entry that identifies the client for private responses of this subgraph.
    pub(crate) fn private_id(&self, subgraph: &str) -> Option<&str> {
        self.subgraphs.get(subgraph)?.rules.private_id.as_deref()
    }

    /// The shared key that an invalidation request for this subgraph must contain. `None` if invalidation is
    /// off.
    #[must_use]
    pub fn shared_key(&self, subgraph: &str) -> Option<&str> {
        self.subgraphs.get(subgraph)?.rules.shared_key.as_deref()
    }

    /// Invalidates all responses of a subgraph, or its entities of one type.
    ///
    /// # Errors
    /// Fails if Redis did not confirm the invalidation in time. The invalidation may have succeeded even so.
    pub async fn invalidate(&self, subgraph: &str, of: Option<&str>) -> Result<(), LinkError> {
        match self.store(subgraph) {
            Some(store) => store.invalidate(subgraph, of).await,
            None => {
                self.invalidate_here(subgraph, of);
                Ok(())
            }
        }
    }

    fn invalidate_here(&self, subgraph: &str, of: Option<&str>) {
        let invalidated = &mut *self
            .invalidated
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        invalidated.last += 1;
        let number = invalidated.last;
        match of {
            Some(of) if invalidated.types.len() < TYPES_MAX => {
                let key = (subgraph.to_owned(), of.to_owned());
                invalidated.types.insert(key, number);
            }
            _ => {
                invalidated.subgraphs.insert(subgraph.to_owned(), number);
            }
        }
    }

    /// Cache hits and misses, by subgraph.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.subgraphs.iter().map(|(name, cached)| {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            (name.as_str(), read(&cached.hits), read(&cached.misses))
        })
    }

    /// Size and use of the memory cache.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.kept.stats()
    }

    /// Looks up the response to a query.
    pub(crate) async fn look(&self, question: &Question<'_>) -> CacheLookup {
        let query = CacheQuery::read(question.body);
        let representations = query.as_ref().and_then(|query| {
            let list = query.variables.get("representations")?;
            serde_json::from_str::<Vec<&RawValue>>(list.get()).ok()
        });
        match (query, representations) {
            (Some(query), Some(list)) if !list.is_empty() => {
                self.look_for_entities(question, &query, &list).await
            }
            _ => self.look_for_whole(question).await,
        }
    }

    async fn look_for_whole(&self, question: &Question<'_>) -> CacheLookup {
        // A whole response may contain root fields of any kind, so invalidations of `Query` apply to it.
        let mut digest = self.digest(question, "Query");
        digest.update(question.body);
        let mut keys = [pair(digest, question.client.as_deref())];
        let found = self
            .find(question.subgraph, &["Query"], &mut keys)
            .await
            .pop();
        let found = found.expect("one answer was looked for");
        let [keys] = keys;
        self.count(question.subgraph, usize::from(found.is_some()), 1);
        match found {
            Some(answer) => CacheLookup::Whole(Reply::new(
                StatusCode::OK,
                answer.headers.clone(),
                answer.body.clone(),
            )),
            None => CacheLookup::Miss(Keys {
                subgraph: question.subgraph.to_owned(),
                own: Some(keys),
                entities: Vec::new(),
            }),
        }
    }

    async fn look_for_entities(
        &self,
        question: &Question<'_>,
        query: &CacheQuery<'_>,
        list: &[&RawValue],
    ) -> CacheLookup {
        let mut keys = Keys {
            subgraph: question.subgraph.to_owned(),
            own: None,
            entities: Vec::with_capacity(list.len()),
        };
        let mut types = Vec::with_capacity(list.len());
        for one in list {
            let typename = serde_json::from_str::<Representation<'_>>(one.get());
            let Ok(Representation { typename }) = typename else {
                return self.look_for_whole(question).await;
            };
            let mut digest = self.digest(question, typename);
            for (name, value) in &query.rest {
                add(&mut digest, name.as_bytes());
                add(&mut digest, value.get().as_bytes());
            }
            for (name, value) in &query.variables {
                if *name != "representations" {
                    add(&mut digest, name.as_bytes());
                    add(&mut digest, value.get().as_bytes());
                }
            }
            digest.update(one.get());
            let pair = pair(digest, question.client.as_deref());
            keys.entities.push(pair);
            types.push(typename);
        }
        let entities = &mut keys.entities;
        let found = self.find(question.subgraph, &types, entities).await;
        let hits = found.iter().flatten().count();
        self.count(question.subgraph, hits, list.len());
        if hits == 0 {
            return CacheLookup::Miss(keys);
        }
        let partial = Partial { keys, found };
        if hits == list.len() {
            return CacheLookup::Whole(partial.reply(&[], json_headers()));
        }
        let missing = partial.found.iter().zip(list);
        let missing = missing.filter(|(found, _)| found.is_none());
        let missing: Vec<&RawValue> = missing.map(|(_, one)| *one).collect();
        match body_for(query, &missing) {
            Some(body) => CacheLookup::Partial(partial, body),
            None => CacheLookup::Miss(partial.keys),
        }
    }

    /// Stores a response, or its entities, if its headers and its content allow it.
    pub(crate) fn keep(&self, keys: &Keys, reply: &Reply) {
        let Some(whole) = self.keepable(keys, reply) else {
            return;
        };
        let (freshness, data) = whole;
        if let Some(pair) = &keys.own {
            let headers = reply.headers();
            let body = Bytes::copy_from_slice(&reply.body);
            let answer = Answer { headers, body };
            self.put(&keys.subgraph, &freshness, [(pair, answer)].into_iter());
            return;
        }
        let Ok(Entities { entities }) = serde_json::from_str(data.get()) else {
            return;
        };
        if entities.len() != keys.entities.len() {
            return;
        }
        let entities = entities.iter().map(|it| Answer::entity(it));
        let parts = keys.entities.iter().zip(entities);
        self.put(&keys.subgraph, &freshness, parts);
    }

    /// Merges the cached entities with the entities of a response. Returns `None` if the response has errors
    /// or is invalid.
    pub(crate) fn complete(&self, partial: Partial, reply: &Reply) -> Option<Reply> {
        if reply.status != StatusCode::OK || reply.content_encoding().is_some() {
            return None;
        }
        let whole: Whole<'_> = serde_json::from_slice(&reply.body).ok()?;
        if whole.errors.is_some_and(|it| !is_empty(it)) {
            return None;
        }
        let entities: Entities<'_> = serde_json::from_str(whole.data?.get()).ok()?;
        let missing = partial.found.iter().zip(&partial.keys.entities);
        let missing: Vec<&Pair> = missing
            .filter(|(found, _)| found.is_none())
            .map(|(_, pair)| pair)
            .collect();
        if entities.entities.len() != missing.len() {
            return None;
        }
        if let Some((freshness, _)) = self.keepable(&partial.keys, reply) {
            let entities = entities.entities.iter().map(|it| Answer::entity(it));
            let parts = missing.iter().copied().zip(entities);
            self.put(&partial.keys.subgraph, &freshness, parts);
        }
        let mut headers = reply.headers();
        headers.remove(header::CONTENT_LENGTH);
        Some(partial.reply(&entities.entities, headers))
    }

    /// The lifetime of a cacheable response, and its data. `None` if it must not be cached.
    fn keepable<'a>(&self, keys: &Keys, reply: &'a Reply) -> Option<(Freshness, &'a RawValue)> {
        let rules = &self.subgraphs.get(&keys.subgraph)?.rules;
        let is_plain = reply.status == StatusCode::OK
            && reply.content_encoding().is_none()
            // A response that sets a cookie belongs to one client.
            && !reply.has(&header::SET_COOKIE);
        if !is_plain {
            return None;
        }
        let texts = |name: &HeaderName| reply.values(name);
        let freshness = Freshness::read(&texts, rules.ttl)?;
        let whole: Whole<'a> = serde_json::from_slice(&reply.body).ok()?;
        let has_errors = whole.errors.is_some_and(|it| !is_empty(it));
        let data = whole.data.filter(|_| !has_errors)?;
        Some((freshness, data))
    }

    /// Stores parts of a response. The scope decides between the public and the private key.
    fn put<'a>(
        &self,
        subgraph: &str,
        freshness: &Freshness,
        parts: impl Iterator<Item = (&'a Pair, Answer)>,
    ) {
        let parts = parts.filter_map(|(pair, answer)| {
            let key = match freshness.scope {
                Scope::Public => Some(&pair.public),
                Scope::Private => pair.private.as_ref(),
            };
            Some((key?, pair.versions, answer))
        });
        if let Some(store) = self.store(subgraph) {
            let versioned =
                parts.filter_map(|(key, versions, answer)| Some((key, versions?, answer)));
            store.put(versioned, freshness.time);
            return;
        }
        let parts: Vec<_> = parts.collect();
        let all = parts.iter().map(|(_, _, answer)| answer.bytes());
        let all = all.fold(0, usize::saturating_add);
        if all > self.answer_bytes_max {
            log::debug!(
                "an answer of subgraph `{subgraph}` is not kept, because it takes {all} bytes"
            );
            return;
        }
        for (key, _, answer) in parts {
            let bytes = answer.bytes();
            let time = freshness.time;
            self.kept.get_or_make(Key::new(key, None), || {
                (Arc::new(answer), Keep::For { bytes, time })
            });
        }
    }

    /// Looks up each pair in the cache. `types` contains the types of the pairs in the same order.
    async fn find(
        &self,
        subgraph: &str,
        types: &[&str],
        pairs: &mut [Pair],
    ) -> Vec<Option<Arc<Answer>>> {
        if let Some(store) = self.store(subgraph) {
            return store.find(subgraph, types, pairs).await;
        }
        let get = |key: &String| self.kept.get(Key::new(key, None));
        let found = pairs
            .iter()
            .map(|pair| get(&pair.public).or_else(|| pair.private.as_ref().and_then(get)));
        found.collect()
    }

    fn count(&self, subgraph: &str, hits: usize, all: usize) {
        if let Some(cached) = self.subgraphs.get(subgraph) {
            // Relaxed: these counters are only displayed and guard no memory.
            cached.hits.fetch_add(hits as u64, Ordering::Relaxed);
            let misses = (all - hits) as u64;
            cached.misses.fetch_add(misses, Ordering::Relaxed);
        }
    }

    /// Starts the hash of a key with the parts that all kinds of responses share.
    fn digest(&self, question: &Question<'_>, of: &str) -> Sha256 {
        let mut digest = Sha256::new();
        add(&mut digest, question.subgraph.as_bytes());
        add(&mut digest, of.as_bytes());
        digest.update(self.number(question.subgraph, of).to_le_bytes());
        add(&mut digest, question.address.as_bytes());
        for (name, value) in question.headers {
            add(&mut digest, name.as_str().as_bytes());
            add(&mut digest, value.as_bytes());
        }
        // Ends the list of headers, because its length varies.
        digest.update([0xff]);
        digest
    }

    /// The number of the last invalidation that concerns responses of this type.
    fn number(&self, subgraph: &str, of: &str) -> u64 {
        let invalidated = self
            .invalidated
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        // Fast path: most gateways never receive an invalidation.
        if invalidated.last == 0 {
            return 0;
        }
        let own = invalidated.subgraphs.get(subgraph).copied();
        let key = (subgraph.to_owned(), of.to_owned());
        let of_type = invalidated.types.get(&key).copied();
        own.unwrap_or(0).max(of_type.unwrap_or(0))
    }
}

impl Partial {
    /// Builds the response from the cached entities and from the fetched entities (`others`).
    fn reply(&self, others: &[&RawValue], headers: HeaderMap) -> Reply {
        let mut others = others.iter();
        let mut body = br#"{"data":{"_entities":["#.to_vec();
        for (index, found) in self.found.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            match found {
                Some(answer) => body.extend_from_slice(&answer.body),
                None => {
                    let other = others.next().map_or("null", |it| it.get());
                    body.extend_from_slice(other.as_bytes());
                }
            }
        }
        body.extend_from_slice(b"]}}");
        Reply::new(StatusCode::OK, headers, body.into())
    }
}

/// Adds a part of a key with its length, so that two different lists of parts never have equal hashes.
fn add(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

fn pair(digest: Sha256, client: Option<&str>) -> Pair {
    let private = client.map(|client| {
        let mut digest = digest.clone();
        digest.update([0xff]);
        digest.update(client);
        HEXLOWER.encode(&digest.finalize())
    });
    Pair {
        public: HEXLOWER.encode(&digest.finalize()),
        private,
        versions: None,
    }
}

fn is_empty(list: &RawValue) -> bool {
    matches!(list.get(), "null" | "[]")
}

fn json_headers() -> HeaderMap {
    let json = HeaderValue::from_static("application/json");
    HeaderMap::from_iter([(header::CONTENT_TYPE, json)])
}

/// The request body for the missing entities.
fn body_for(query: &CacheQuery<'_>, missing: &[&RawValue]) -> Option<Bytes> {
    let list = serde_json::value::to_raw_value(missing).ok()?;
    let mut variables = query.variables.clone();
    variables.insert("representations", &list);
    let variables = serde_json::value::to_raw_value(&variables).ok()?;
    let mut members = query.rest.clone();
    members.insert("variables", &variables);
    serde_json::to_vec(&members).ok().map(Bytes::from)
}

/// The maximum lifetime of a cached response, even if a subgraph allows more.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);

#[cfg(test)]
mod tests;
