//! `response_cache`: answers of subgraphs that are kept.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ByteSize, Listen, PlainPath, Written};

/// Answers of subgraphs that are kept in the memory of this process, as long as their `Cache-Control`
/// allows it. Entities are kept one by one.
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

/// What applies to one subgraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveCaching {
    /// How long, where nothing is said.
    pub ttl: Option<Duration>,
    /// What tells one client from another.
    pub private_id: Option<String>,
    /// What who tells that answers are out of date has to send.
    pub shared_key: Option<String>,
}

impl ResponseCache {
    /// What applies to a subgraph; nothing when its answers are not kept.
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
                // An empty key would let all in.
                .filter(|it| it.enabled && !it.shared_key.is_empty())
                .map(|it| it.shared_key.clone()),
        })
    }
}
