//! Means of latencies from the times of each request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Means of latencies, in nanoseconds, without the rounding of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyMeans {
    /// Mean over all requests that count.
    pub mean_ns: f64,
    /// Mean of the fastest three quarters of the requests. If there are several requests, each has its own
    /// mean, weighted by its planned count.
    pub typical_ns: f64,
}
