//! Cost and pauses of the load generator.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::as_micros;

/// A stretch of time during which a generator thread did not run although work was due. Latencies measured
/// across it contain the generator's own delay.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Pause {
    /// Start of the pause, in microseconds since the first send.
    #[serde(rename = "at_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub at: Duration,
    /// Length of the pause in microseconds.
    #[serde(rename = "length_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub length: Duration,
}

/// Cost of the load generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorCost {
    /// Processor time of the generator's threads in microseconds, user and system, from the start of the load
    /// to its end.
    #[serde(rename = "cpu_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub cpu: Duration,
    /// Number of threads that the generator used.
    pub threads: u32,
    /// Time during which the threads were ready to run while other programs had the core. In microseconds,
    /// summed over threads. Absent if the kernel does not count it (`/proc/thread-self/schedstat`).
    #[serde(
        rename = "waited_for_cpu_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_micros::option"
    )]
    #[schemars(with = "Option<u64>")]
    pub waited_for_cpu: Option<Duration>,
    /// Time over which `cpu_us` and `waited_for_cpu_us` were counted, in microseconds, summed over threads. It
    /// begins before the first request and ends after the last response, so it is longer than the load. Absent in
    /// older recordings.
    #[serde(
        rename = "counted_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_micros::option"
    )]
    #[schemars(with = "Option<u64>")]
    pub counted: Option<Duration>,
    /// True if all threads could have real-time priority, which an open loop requests.
    #[serde(default)]
    pub realtime: bool,
    /// Time with real-time priority in microseconds, summed over threads. On cores shared with systems,
    /// threads have this priority only while they use little of the cores. Absent if they could not have it.
    /// Also absent in older recordings, because threads then had it all the time.
    #[serde(
        rename = "realtime_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_micros::option"
    )]
    #[schemars(with = "Option<u64>")]
    pub realtime_for: Option<Duration>,
    /// Pauses in order of time: stretches without running although work was due.
    pub pauses: Vec<Pause>,
    /// Number of pauses beyond the listed pauses.
    #[serde(rename = "pauses_unlisted")]
    pub pauses_dropped: u64,
}

impl GeneratorCost {
    /// The share of a measurement of this length with real-time priority for the generator's threads, 0 to 1.
    #[must_use]
    pub fn realtime_share(&self, elapsed: Duration) -> f64 {
        match self.realtime_for {
            _ if !self.realtime => 0.0,
            None => 1.0,
            Some(had) => {
                let available = elapsed.as_secs_f64() * f64::from(self.threads);
                // A load may have no length, and the two times are measured separately.
                (had.as_secs_f64() / available.max(1e-6)).min(1.0)
            }
        }
    }
}
