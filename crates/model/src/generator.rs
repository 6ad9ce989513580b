//! Cost and pauses of the load generator.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::as_micros;

/// One stretch in which a generator thread did not run although work was due: latencies measured
/// across it contain the generator's own delay.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Pause {
    /// Its start, in microseconds since the first send.
    #[serde(rename = "at_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub at: Duration,
    /// Its length in microseconds.
    #[serde(rename = "length_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub length: Duration,
}

/// What generating the load cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorCost {
    /// Processor time of its threads in microseconds, user and system, from the start of the load to
    /// its end.
    #[serde(rename = "cpu_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub cpu: Duration,
    /// Its threads: those that really ran.
    pub threads: u32,
    /// How long its threads were ready to run while others had the core, in microseconds, summed
    /// over threads; absent where the kernel does not count it (`/proc/thread-self/schedstat`).
    #[serde(
        rename = "waited_for_cpu_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_micros::option"
    )]
    #[schemars(with = "Option<u64>")]
    pub waited_for_cpu: Option<Duration>,
    /// Whether all its threads could have real-time priority, which an open loop asks for.
    #[serde(default)]
    pub realtime: bool,
    /// How long they had it in microseconds, summed over threads: on cores that they share with
    /// systems, they have it only while they use little of them. Absent where they could not, and in
    /// older recordings, in which they had it all the time.
    #[serde(
        rename = "realtime_us",
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_micros::option"
    )]
    #[schemars(with = "Option<u64>")]
    pub realtime_for: Option<Duration>,
    /// Stretches in which it did not run although work was due, in order of time.
    pub pauses: Vec<Pause>,
    /// Pauses beyond those listed.
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
