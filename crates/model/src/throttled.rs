//! Counters of a processor limit.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::as_micros;

/// Stops of a system by a processor limit (`cpu.stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Throttled {
    /// Number of scheduler periods, usually of 100 ms, during which the system wanted to run.
    pub periods: u64,
    /// Number of periods during which the system used up its share and was stopped.
    pub throttled_periods: u64,
    /// Time of the stops in microseconds, summed over cores, as the kernel counts it. Linux 6.18 sometimes
    /// counts only a third of it, so `throttled_periods` is more reliable.
    #[serde(rename = "throttled_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub throttled_time: Duration,
}

impl Throttled {
    /// Change of the counters since an earlier reading of the same limit. A counter that fell becomes 0,
    /// which happens when a group is created again.
    #[must_use]
    pub fn since(self, before: Throttled) -> Throttled {
        // A group that was created again counts from 0. So the subtraction saturates, because an unsigned
        // result would wrap to centuries of throttled time.
        Throttled {
            periods: self.periods.saturating_sub(before.periods),
            throttled_periods: self
                .throttled_periods
                .saturating_sub(before.throttled_periods),
            throttled_time: self.throttled_time.saturating_sub(before.throttled_time),
        }
    }

    /// The sum of the counters of two limits.
    #[must_use]
    pub fn plus(self, other: Throttled) -> Throttled {
        Throttled {
            periods: self.periods + other.periods,
            throttled_periods: self.throttled_periods + other.throttled_periods,
            throttled_time: self.throttled_time + other.throttled_time,
        }
    }
}
