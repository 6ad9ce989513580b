//! When each request should leave, and in which order variants are measured; no clock.
//!
//! A [`Load`] says what a person asked for. [`OpenPlan`] turns the open kind into slots, each with
//! the offset from the start at which it is due. Everything here is a function of its arguments:
//! the same load and seed give the same slots on every machine, so that a plan can be cut into
//! shards without a coordinator and a recording needs to keep no more than the seed.
//!
//! Absent on purpose: sleeping, sending, and any idea of what time it is.

mod capacity;
mod order;
mod plan;
mod random;
mod rate;
mod seats;
mod segment;
mod until;

use std::time::Duration;

pub use capacity::{Capacity, CapacityError, Search};
pub use order::round_order;
pub use plan::{OpenPlan, PlanError, Slot, Slots};
pub use rate::{Rate, RateError};
pub use seats::{Seat, SeatedSlots};
pub use until::{HalfWidth, UNTIL_GRAMMAR, Until, UntilError};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// After this many requests.
    pub requests: Option<u64>,
    /// After this long.
    pub duration: Option<Duration>,
}

/// One stretch of an open plan in which the rate goes linearly from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Length of the phase. `Duration::MAX` at a constant rate means until `requests_max`.
    pub duration: Duration,
    /// Rate at its start.
    pub from: Rate,
    /// Rate at its end (equal to `from` for a constant rate).
    pub to: Rate,
}

impl Phase {
    /// A phase at one rate.
    #[must_use]
    pub fn constant(duration: Duration, rate: Rate) -> Phase {
        Phase {
            duration,
            from: rate,
            to: rate,
        }
    }
}

/// The law of the gaps between requests of an open plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Equal gaps; the first request is due at once.
    Uniform,
    /// Exponential gaps drawn from this seed, the first one before the first request.
    Poisson {
        /// Same seed, same plan, on every machine.
        seed: u64,
    },
}
