//! When each request should leave, and in which order variants are measured; no clock.

use std::time::Duration;

/// How requests arrive, and when the load ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Closed loop: every connection sends its next request as soon as its last answer is complete.
    Closed {
        /// Connections, each with at most one request under way. At least 1.
        connections: u32,
        /// When to stop sending.
        stop: Stop,
    },
    /// Open loop: requests leave by plan, whether or not earlier ones were answered.
    Open {
        /// Phases in order; the plan is their concatenation. At least one.
        phases: Vec<Phase>,
        /// The law of the gaps between requests.
        arrival: Arrival,
        /// Never plan more than this many requests.
        requests_max: Option<u64>,
    },
}

/// When a closed loop stops sending: at whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// After this many requests.
    pub requests: Option<u64>,
    /// After this long.
    pub duration: Option<Duration>,
}

/// One stretch of an open plan in which the rate goes linearly from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Length of the phase.
    pub duration: Duration,
    /// Rate at its start.
    pub from: Rate,
    /// Rate at its end (equal to `from` for a constant rate).
    pub to: Rate,
}

/// Requests per second; finite and at least 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// The law of the gaps between requests of an open plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// Equal gaps.
    Uniform,
    /// Exponential gaps drawn from this seed.
    Poisson {
        /// Same seed, same plan, on every machine.
        seed: u64,
    },
}
