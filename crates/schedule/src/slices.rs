//! Several variants under a closed loop: who has the load when.
//!
//! A closed loop has no due times to share, so side by side the load moves from variant to variant in
//! *slices* of some hundred milliseconds, and the others idle meanwhile. A *cycle* is one slice for
//! each variant. Their order within a cycle is drawn anew and counterbalanced as the order of rounds
//! is ([`crate::round_order`]), so that what the machine does, and what one variant leaves behind,
//! hits all alike.
//!
//! The beginning of a slice does not count. It is a fixed *time* and no share of the slice, because
//! what happens in it takes a time of its own: threads wake, the scheduler gives them back what they
//! did not use, caches fill again, and the last answers to the slice before come in. A third of a
//! slice is the most, so that a short slice still counts for something.

use std::time::Duration;

use crate::order;
use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const SLICES: u64 = 4;

/// What does not count at the beginning of a slice. `cargo xtask slices` shows the rate by the age of a
/// slice: of null servers beside busy programs the first 10 ms have 75 to 108 % of the later rate, and
/// from 20 ms on nothing is to be seen. Servers that do more get a little longer.
const UNCOUNTED: Duration = Duration::from_millis(30);

/// The stretch of time in which one variant has the load. Times count from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedSlice {
    /// Requests are sent from here on.
    pub from: Duration,
    /// What is sent from here on counts.
    pub count_from: Duration,
    /// Nothing is sent from here on.
    pub to: Duration,
}

/// The slices of all variants of a round.
///
/// **Invariant:** slices of a plan are disjoint, with the gap between one and the next, and the
/// counted parts of all are equally long.
#[derive(Clone, Debug)]
pub struct SlicePlan {
    /// For each cycle, the variants in the order of their slices.
    orders: Vec<Vec<usize>>,
    uncounted: Duration,
    counted: Duration,
    gap: Duration,
}

impl SlicePlan {
    /// Slices of about this length, so many that each variant counts for `total`: the counted part of
    /// a slice is shortened so that a whole number of cycles comes to it. After each slice nothing is
    /// sent for the length of `gap`, so that requests under way end before the next variant's turn.
    ///
    /// # Panics
    /// When there is no variant, or `total` or `slice` is shorter than a microsecond.
    #[must_use]
    pub fn new(
        variants: usize,
        total: Duration,
        slice: Duration,
        gap: Duration,
        seed: u64,
    ) -> SlicePlan {
        let least = Duration::from_micros(1);
        assert!(variants > 0, "a slice belongs to a variant");
        assert!(total >= least && slice >= least, "{total:?} in {slice:?}");
        let uncounted = UNCOUNTED.min(slice / 3);
        let cycles = total.as_nanos().div_ceil((slice - uncounted).as_nanos());
        // A cycle of a microsecond in a load of an hour is still below it.
        let cycles = u32::try_from(cycles).expect("fewer cycles than 32 bits count");
        let mut random = Random::new(seed, SLICES);
        let mut orders = Vec::new();
        while orders.len() < cycles as usize {
            orders.extend(order::block(variants, &mut random));
        }
        orders.truncate(cycles as usize);
        SlicePlan {
            orders,
            uncounted,
            counted: total / cycles,
            gap,
        }
    }

    /// Slices of each variant.
    #[must_use]
    pub fn cycles(&self) -> usize {
        self.orders.len()
    }

    /// What counts of each slice.
    #[must_use]
    pub fn counted(&self) -> Duration {
        self.counted
    }

    /// What does not count at the beginning of each slice.
    #[must_use]
    pub fn uncounted(&self) -> Duration {
        self.uncounted
    }

    /// The length of a slice.
    #[must_use]
    pub fn slice(&self) -> Duration {
        self.uncounted + self.counted
    }

    /// How long nothing is sent after a slice.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.gap
    }

    /// From the beginning of the first slice to the end of the last gap.
    #[must_use]
    pub fn length(&self) -> Duration {
        // The last order is as long as all others.
        let variants = self.orders.last().map_or(0, Vec::len);
        self.start(self.cycles() * variants)
    }

    /// The slices of a variant, one a cycle, in order.
    ///
    /// # Panics
    /// When there is no such variant.
    #[must_use]
    pub fn slices(&self, variant: usize) -> Vec<PlannedSlice> {
        let slice = |(cycle, order): (usize, &Vec<usize>)| {
            let place = order.iter().position(|other| *other == variant);
            let place = place.expect("every variant has a slice in every cycle");
            let from = self.start(cycle * order.len() + place);
            PlannedSlice {
                from,
                count_from: from + self.uncounted,
                to: from + self.slice(),
            }
        };
        self.orders.iter().enumerate().map(slice).collect()
    }

    /// When the slice of this number begins, counted over all variants.
    fn start(&self, number: usize) -> Duration {
        let number = u32::try_from(number).expect("fewer slices than 32 bits count");
        (self.slice() + self.gap) * number
    }
}

#[cfg(test)]
mod tests;
