//! `supergraph.query_planning`: limits for planning operations that are not in the cache.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::Written;

/// Limits for planning operations that are not in the cache.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueryPlanning {
    /// Maximum number of operations that wait for a plan. Further requests get 503. Not in Apollo Router.
    pub queue_size: NonZeroUsize,
    /// Maximum waiting time of an operation, and maximum planning time. Not in Apollo Router.
    pub timeout: Written<Duration>,
    /// The cache of query plans, under the key of Apollo Router.
    pub cache: PlanCache,
}

/// The cache of query plans.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanCache {
    /// The cache in the memory of this process.
    pub in_memory: PlanCacheInMemory,
}

/// The cache of query plans in memory.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanCacheInMemory {
    /// Maximum number of plans. The default is `supergraph.plan_cache_size`.
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
