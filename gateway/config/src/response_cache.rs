//! `response_cache`: the cache of subgraph responses, in memory or in Redis.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::report::Report;
use crate::tls::ClientTls;
use crate::written::{ByteSize, Listen, PlainPath, RedisAddress, Written};

/// The cache of subgraph responses, for as long as their `Cache-Control` allows. It is in the memory of this
/// process, or in a Redis that several processes share. Entities are cached one by one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseCache {
    /// True if the gateway caches responses.
    pub enabled: bool,
    /// The size of the cache in memory. Not in Apollo Router.
    pub in_memory: ResponseCacheInMemory,
    /// The endpoint for invalidation requests.
    pub invalidation: Option<InvalidationEndpoint>,
    /// The subgraphs with cached responses.
    pub subgraph: CachedSubgraphs,
}

/// The size of the cache in memory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseCacheInMemory {
    /// Maximum number of responses and entities. Not in Apollo Router.
    pub limit: NonZeroUsize,
    /// Maximum size of all entries together. Not in Apollo Router.
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

/// The endpoint for invalidation requests. They report that responses are out of date.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvalidationEndpoint {
    /// The address of the endpoint.
    pub listen: Written<Listen>,
    /// The path of the endpoint.
    pub path: Written<PlainPath>,
}

/// The subgraphs with cached responses.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CachedSubgraphs {
    /// Settings for all subgraphs.
    pub all: CachedSubgraph,
    /// Settings for one subgraph, by its name. Missing keys have the values of `all`.
    pub subgraphs: BTreeMap<String, CachedSubgraph>,
}

/// The caching of one subgraph's responses.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CachedSubgraph {
    /// True if the gateway caches responses of this subgraph. The default is true.
    pub enabled: Option<bool>,
    /// Lifetime of responses if `Cache-Control` allows caching without a time. Without this key, such
    /// responses are not cached.
    pub ttl: Option<Written<Duration>>,
    /// The key of the context entry that identifies the client. Without the key or the entry, private
    /// responses are not cached.
    pub private_id: Option<String>,
    /// Permission for invalidation requests.
    pub invalidation: Option<SubgraphInvalidation>,
    /// The Redis for these responses. Without this key, they are in the memory of this process.
    pub redis: Option<AnswersInRedis>,
}

/// A Redis for cached responses. All processes with its address share it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswersInRedis {
    /// The address: `redis://HOST:PORT/DATABASE`, or `redis+sentinel://HOST:PORT,HOST:PORT/MASTER/DATABASE` with the
    /// addresses of sentinels. `rediss` in place of `redis` uses TLS. Exactly one address is allowed, because clusters
    /// are not supported.
    pub urls: Vec<Written<RedisAddress>>,
    /// The user name, instead of the name in the address.
    pub username: Option<String>,
    /// The password, instead of the password in the address.
    pub password: Option<String>,
    /// TLS settings for an address with `rediss`.
    #[serde(default)]
    pub tls: ClientTls,
    /// Maximum time that a request waits for Redis.
    #[serde(default = "fetch_timeout")]
    pub fetch_timeout: Written<Duration>,
    /// Maximum time to write a response to Redis. Requests do not wait for it.
    #[serde(default = "insert_timeout")]
    pub insert_timeout: Written<Duration>,
    /// Maximum time of an invalidation.
    #[serde(default = "invalidate_timeout")]
    pub invalidate_timeout: Written<Duration>,
    /// Time that replaces `fetch_timeout` and `insert_timeout`, as in the entity cache of version 1.
    pub timeout: Option<Written<Duration>>,
    /// Maximum lifetime of a response in Redis.
    pub ttl: Option<Written<Duration>>,
    /// Prefix of all keys in Redis.
    pub namespace: Option<String>,
    /// True if the gateway does not start without this Redis.
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

/// Permission for invalidation requests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphInvalidation {
    /// True if invalidation requests are allowed.
    pub enabled: bool,
    /// The value that these requests must send in the header `authorization`.
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
