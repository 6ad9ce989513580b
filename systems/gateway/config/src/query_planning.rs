//! `supergraph.query_planning`: what planning operations that are not in the cache may cost.

use std::num::NonZeroUsize;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::Written;

/// What planning operations that are not in the cache may cost. Not known to the original under
/// these names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueryPlanning {
    /// Most operations that wait to be planned; requests with further ones are answered with 503.
    pub queue_size: NonZeroUsize,
    /// The longest time that an operation waits, and the longest that it is planned.
    pub timeout: Written<Duration>,
}

impl Default for QueryPlanning {
    fn default() -> Self {
        Self {
            queue_size: NonZeroUsize::new(1_000).expect("1,000 is not zero"),
            timeout: Written(Duration::from_secs(5)),
        }
    }
}
