//! `response_cache`: the cache of subgraph responses, in memory or in Redis.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::report::Report;
use crate::written::{ByteSize, Listen, PlainPath, RedisAddress, Written};

/// Answers of subgraphs that are kept as long as their `Cache-Control` allows it, in the memory of this
/// process or in a Redis that processes share. Entities are kept one by one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseCache {
    /// Whether answers are kept.
    pub enabled: bool,
    /// How much is kept. Not known to the original.
    pub in_memory: ResponseCacheInMemory,
    /// Where others tell that answers are out of date.
    pub invalidation: Option<InvalidationEndpoint>,
    /// Which answers are kept.
    pub subgraph: CachedSubgraphs,
}

/// How much is kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseCacheInMemory {
    /// Answers and entities at most. Not known to the original.
    pub limit: NonZeroUsize,
    /// Bytes at most, of all of them together. Not known to the original.
    pub max_bytes: Written<ByteSize>,
}

impl Default for ResponseCacheInMemory {
    fn default() -> Self {
        Self {
            limit: NonZeroUsize::new(100_000).expect("100,000 is not zero"),
            max_bytes: Written(ByteSize(64 << 20)),
        }
    }
}

/// Where others tell that answers are out of date.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvalidationEndpoint {
    /// The address.
    pub listen: Written<Listen>,
    /// On which path.
    pub path: Written<PlainPath>,
}

/// Which answers are kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CachedSubgraphs {
    /// Of all subgraphs.
    pub all: CachedSubgraph,
    /// Of one subgraph, by its name; what it leaves out is taken from `all`.
    pub subgraphs: BTreeMap<String, CachedSubgraph>,
}

/// Which answers of a subgraph are kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CachedSubgraph {
    /// Whether they are, true when left out.
    pub enabled: Option<bool>,
    /// How long, where `Cache-Control` allows it and says no time. Without it such answers are not
    /// kept.
    pub ttl: Option<Written<Duration>>,
    /// The key of the context entry that tells one client from another. Without it, or without the
    /// entry, private answers are not kept.
    pub private_id: Option<String>,
    /// Who may tell that they are out of date.
    pub invalidation: Option<SubgraphInvalidation>,
    /// Where they are kept. Without it, in the memory of this process.
    pub redis: Option<AnswersInRedis>,
}

/// A Redis in which answers are kept, for all processes that name it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswersInRedis {
    /// Its address, `redis://HOST:PORT/DATABASE`: one, as clusters are not followed.
    pub urls: Vec<Written<RedisAddress>>,
    /// Instead of the one in the address.
    pub username: Option<String>,
    /// Instead of the one in the address.
    pub password: Option<String>,
    /// How long a request waits for it.
    #[serde(default = "fetch_timeout")]
    pub fetch_timeout: Written<Duration>,
    /// How long it may take to keep an answer, for which no request waits.
    #[serde(default = "insert_timeout")]
    pub insert_timeout: Written<Duration>,
    /// How long an invalidation may take.
    #[serde(default = "invalidate_timeout")]
    pub invalidate_timeout: Written<Duration>,
    /// Instead of `fetch_timeout` and `insert_timeout`, as in the cache of entities of version 1.
    pub timeout: Option<Written<Duration>>,
    /// How long an answer is kept at most.
    pub ttl: Option<Written<Duration>>,
    /// What its keys begin with.
    pub namespace: Option<String>,
    /// Whether the gateway does not start without it.
    #[serde(default)]
    pub required_to_start: bool,
}

fn fetch_timeout() -> Written<Duration> {
    Written(Duration::from_millis(150))
}

fn insert_timeout() -> Written<Duration> {
    Written(Duration::from_millis(500))
}

fn invalidate_timeout() -> Written<Duration> {
    Written(Duration::from_secs(1))
}

/// Who may tell that answers are out of date.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphInvalidation {
    /// Whether it can be told at all.
    pub enabled: bool,
    /// What they send as the header `authorization`.
    pub shared_key: String,
}

/// The settings of one subgraph after merging all sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveCaching {
    /// Lifetime of a response without a lifetime of its own.
    pub ttl: Option<Duration>,
    /// The context entry that identifies a client.
    pub private_id: Option<String>,
    /// The shared key that an invalidation request must contain. `None` if invalidation is off.
    pub shared_key: Option<String>,
    /// The Redis server for its responses. `None` means the memory.
    pub redis: Option<AnswersInRedis>,
}

impl ResponseCache {
    /// The settings of a subgraph. `None` if its responses are not cached.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> Option<EffectiveCaching> {
        let all = &self.subgraph.all;
        let own = self.subgraph.subgraphs.get(name);
        let is_on = own
            .and_then(|it| it.enabled)
            .or(all.enabled)
            .unwrap_or(true);
        let invalidation = own
            .and_then(|it| it.invalidation.as_ref())
            .or(all.invalidation.as_ref());
        (self.enabled && is_on).then(|| EffectiveCaching {
            ttl: own.and_then(|it| it.ttl).or(all.ttl).map(|it| it.0),
            private_id: own
                .and_then(|it| it.private_id.clone())
                .or_else(|| all.private_id.clone()),
            shared_key: invalidation
                // An empty key would allow any client.
                .filter(|it| it.enabled && !it.shared_key.is_empty())
                .map(|it| it.shared_key.clone()),
            redis: own
                .and_then(|it| it.redis.clone())
                .or_else(|| all.redis.clone()),
        })
    }
}

/// Reports lists of addresses that contain more or less than one address.
pub(crate) fn check(caching: &CachedSubgraphs, report: &mut Report<'_>) {
    let mut check = |path: &[&str], redis: Option<&AnswersInRedis>| {
        if let Some(count) = redis.map(|it| it.urls.len()).filter(|count| *count != 1) {
            let told = format!(
                "expected one address, found {count}: clusters are not followed; name one Redis, or a proxy before them"
            );
            report(&[path, &["redis", "urls"]].concat(), told);
        }
    };
    check(
        &["response_cache", "subgraph", "all"],
        caching.all.redis.as_ref(),
    );
    for (name, own) in &caching.subgraphs {
        let path = ["response_cache", "subgraph", "subgraphs", name];
        check(&path, own.redis.as_ref());
    }
}
