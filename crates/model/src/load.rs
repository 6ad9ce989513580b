//! Load models: the arrival of requests and the end of a load.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Rate, as_micros};

/// The arrival of requests, and the end of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "kebab-case")]
pub enum Load {
    /// Closed loop: every connection sends its next request as soon as its last response is complete.
    Closed {
        /// Number of connections, each with at most one request in flight. At least 1.
        connections: u32,
        /// The condition for the end of the sends.
        #[serde(flatten)]
        stop: Stop,
    },
    /// Open loop: requests leave by plan, even if earlier requests have no response yet.
    Open {
        /// Phases in order, at least one. The plan is their concatenation.
        phases: Vec<Phase>,
        /// The law of the gaps between requests.
        arrival: Arrival,
        /// Maximum number of open connections over all threads. At least 1. If all connections and all their
        /// streams are busy, a slot waits, and the wait is part of its latency.
        connections_max: u32,
        /// Maximum number of requests of a round, at least 1. Absent for all planned requests of the phases.
        #[serde(rename = "requests")]
        requests_max: Option<u64>,
    },
}

/// Condition for the end of a closed loop. If both limits are present, the earlier one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Number of requests of a round.
    pub requests: Option<u64>,
    /// Length of a round in microseconds.
    #[serde(rename = "duration_us", default, with = "as_micros::option")]
    #[schemars(with = "Option<u64>")]
    pub duration: Option<Duration>,
}

/// A stretch of an open plan. The rate changes linearly from one value to the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Length of the phase in microseconds. If the rate is constant, the largest number means "until the last
    /// request".
    #[serde(rename = "duration_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub duration: Duration,
    /// Requests per second at the start of the phase.
    #[serde(rename = "rate_from_per_s")]
    #[schemars(with = "f64")]
    pub from: Rate,
    /// Requests per second at the end of the phase. Equal to the rate at the start if the rate is constant.
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
    /// Equal gaps between requests.
    Uniform,
    /// Exponential gaps, drawn from the recording's seed.
    Poisson,
}

/// Load in a closed loop after a start, until the target gets no faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settle {
    /// Connections of the loop. At least 1.
    pub connections: u32,
    /// Maximum time of this load, in microseconds. Above 0.
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
