//! Load models: the arrival of requests and the end of a load.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Rate, as_micros};

/// How requests arrive, and when the load ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "kebab-case")]
pub enum Load {
    /// Closed loop: every connection sends its next request as soon as its last answer is complete.
    Closed {
        /// Connections, each with at most one request under way. At least 1.
        connections: u32,
        /// When to stop sending.
        #[serde(flatten)]
        stop: Stop,
    },
    /// Open loop: requests leave by plan, whether or not earlier ones were answered.
    Open {
        /// Phases in order; the plan is their concatenation. At least one.
        phases: Vec<Phase>,
        /// The law of the gaps between requests.
        arrival: Arrival,
        /// How many connections may be open at once, over all threads. At least 1. A slot that finds
        /// all of them (and all their streams) busy waits, and the wait is part of its latency.
        connections_max: u32,
        /// The most requests of a round, at least 1; absent for all that the phases plan.
        #[serde(rename = "requests")]
        requests_max: Option<u64>,
    },
}

/// When a closed loop stops sending: at whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Stop after this many requests a round.
    pub requests: Option<u64>,
    /// Stop after this long a round, in microseconds.
    #[serde(rename = "duration_us", default, with = "as_micros::option")]
    #[schemars(with = "Option<u64>")]
    pub duration: Option<Duration>,
}

/// One stretch of an open plan in which the rate goes linearly from one value to the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its length in microseconds. The largest number at a constant rate means until the last
    /// request.
    #[serde(rename = "duration_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub duration: Duration,
    /// Requests per second at its start.
    #[serde(rename = "rate_from_per_s")]
    #[schemars(with = "f64")]
    pub from: Rate,
    /// Requests per second at its end: the same as at its start for a constant rate.
    #[serde(rename = "rate_to_per_s")]
    #[schemars(with = "f64")]
    pub to: Rate,
}

/// Distribution of the gaps between requests of an open plan.
///
/// A recording stores its seed once, for arrivals and for the order of variants. So the serialized form is
/// only the name of the law. After reading, `seed` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Law", into = "Law")]
pub enum Arrival {
    /// Equal gaps. The first request is due at once.
    Uniform,
    /// Exponential gaps drawn from this seed. The first gap comes before the first request.
    Poisson {
        /// Equal seeds give equal plans on every machine.
        seed: u64,
    },
}

/// The law of the gaps between requests.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Arrival")]
enum Law {
    /// Equal gaps.
    Uniform,
    /// Exponential gaps, drawn from the recording's seed.
    Poisson,
}

/// Load in a closed loop after a start, until the target gets no faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settle {
    /// Connections of the loop. At least 1.
    pub connections: u32,
    /// The longest that it takes, in microseconds. Above 0.
    #[serde(rename = "within_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub within: Duration,
}

impl Load {
    /// Maximum number of open connections: all connections of a closed loop, the limit of an open loop.
    #[must_use]
    pub fn connections(&self) -> u32 {
        match self {
            Load::Closed { connections, .. } => *connections,
            Load::Open {
                connections_max, ..
            } => *connections_max,
        }
    }

    /// Sets the maximum number of open connections.
    pub fn limit_connections(&mut self, most: u32) {
        match self {
            Load::Closed { connections, .. } => *connections = most,
            Load::Open {
                connections_max, ..
            } => *connections_max = most,
        }
    }

    /// Maximum number of requests of one round. `None` if no count ends it.
    #[must_use]
    pub fn requests(&self) -> Option<u64> {
        match self {
            Load::Closed { stop, .. } => stop.requests,
            Load::Open { requests_max, .. } => *requests_max,
        }
    }

    /// The planned length of one round. `None` if only a count ends a closed loop, and [`Duration::MAX`] if
    /// only a count ends an open loop.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        match self {
            Load::Closed { stop, .. } => stop.duration,
            Load::Open { phases, .. } => {
                let lengths = phases.iter().map(|phase| phase.duration);
                // The sum saturates, because a phase that only a count ends has the maximum length.
                Some(lengths.fold(Duration::ZERO, Duration::saturating_add))
            }
        }
    }

    /// True if a plan sets the send times.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Load::Open { .. })
    }
}

impl Phase {
    /// A phase at one rate. With [`Duration::MAX`] it lasts until the last request.
    #[must_use]
    pub fn constant(duration: Duration, rate: Rate) -> Phase {
        Phase {
            duration,
            from: rate,
            to: rate,
        }
    }
}

impl From<Law> for Arrival {
    fn from(law: Law) -> Arrival {
        match law {
            Law::Uniform => Arrival::Uniform,
            // A recording stores the seed of the run once for all random draws.
            Law::Poisson => Arrival::Poisson { seed: 0 },
        }
    }
}

impl From<Arrival> for Law {
    fn from(arrival: Arrival) -> Law {
        match arrival {
            Arrival::Uniform => Law::Uniform,
            Arrival::Poisson { .. } => Law::Poisson,
        }
    }
}

impl JsonSchema for Arrival {
    // The schema describes only the name, because the seed is not serialized.
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Law::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Law::json_schema(generator)
    }
}
