//! `supergraph.query_planning`: limits for planning operations that are not in the cache.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::Written;

/// What planning operations that are not in the cache may cost.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueryPlanning {
    /// Most operations that wait to be planned; requests with further ones are answered with 503.
    /// Not known to the original.
    pub queue_size: NonZeroUsize,
    /// The longest time that an operation waits, and the longest that it is planned. Not known
    /// to the original.
    pub timeout: Written<Duration>,
    /// The cache of query plans, as the original names it.
    pub cache: PlanCache,
}

/// The cache of query plans.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanCache {
    /// In the memory of this process.
    pub in_memory: PlanCacheInMemory,
}

/// The cache of query plans in memory.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanCacheInMemory {
    /// Plans that are kept; `supergraph.plan_cache_size` when left out.
    pub limit: Option<NonZeroUsize>,
}

impl Default for QueryPlanning {
    fn default() -> Self {
        Self {
            queue_size: NonZeroUsize::new(1_000).expect("1,000 is not zero"),
            timeout: Written(Duration::from_secs(5)),
            cache: PlanCache::default(),
        }
    }
}
