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
//!
//! A slice also fits the answers. The connections send their first requests together, so a slow server
//! answers in waves. Two latencies pass before the counted part, which begins at a random phase of the
//! third. At least one latency follows it, so that the last requests that count meet the same load as
//! all others. The counted part is at least 20 latencies long where the round is.

use std::time::Duration;

use crate::order;
use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const SLICES: u64 = 4;

/// Purpose of the random numbers of phases.
const PHASES: u64 = 6;

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
    /// What is sent from here on does not count.
    pub count_to: Duration,
    /// Nothing is sent from here on.
    pub to: Duration,
}

/// Latencies that pass before a slice counts.
const LATENCIES_BEFORE: u32 = 2;

/// Latencies that the counted part of a slice holds at least, in a round that is long enough.
const LATENCIES_COUNTED: u32 = 20;

/// Latencies that a round counts at least. A shorter round is made longer.
const LATENCIES_OF_ROUND: u32 = 5;

/// Lengths that a plan of slices is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLengths {
    /// What counts of each variant in the round, all slices together. At least a microsecond.
    pub total: Duration,
    /// Length of a slice, unless its answers need a longer one. At least a microsecond.
    pub slice: Duration,
    /// Nothing is sent for so long after each slice, so that requests under way end before the next
    /// variant's slice.
    pub gap: Duration,
    /// The mean latency of the slowest variant; 0 where it is not known.
    pub latency: Duration,
}

/// The slices of all variants of a round.
///
/// **Invariant:** slices of a plan are disjoint and equally long, with the gap between one and the
/// next, and the counted parts of all are equally long.
#[derive(Clone, Debug)]
pub struct SlicePlan {
    /// For each cycle, the variants in the order of their slices.
    orders: Vec<Vec<usize>>,
    /// For each slice in order of time, how long after the uncounted beginning its counted part begins.
    phases: Vec<Duration>,
    uncounted: Duration,
    counted: Duration,
    /// From the end of the earliest possible counted part to the end of the slice.
    tail: Duration,
    gap: Duration,
}

impl SlicePlan {
    /// Plans so many slices that each variant counts for `lengths.total`. The counted part of a slice is
    /// shortened so that a whole number of cycles comes to it.
    ///
    /// # Panics
    /// When there is no variant, or a length is shorter than [`SliceLengths`] allows.
    #[must_use]
    pub fn new(variants: usize, lengths: SliceLengths, seed: u64) -> SlicePlan {
        let SliceLengths {
            total,
            slice,
            gap,
            latency,
        } = lengths;
        let least = Duration::from_micros(1);
        assert!(variants > 0, "a slice belongs to a variant");
        assert!(total >= least && slice >= least, "{total:?} in {slice:?}");
        let total = total.max(latency * LATENCIES_OF_ROUND);
        let beginning = UNCOUNTED.min(slice / 3);
        let longest = (slice - beginning).max(latency * LATENCIES_COUNTED);
        let cycles = total.as_nanos().div_ceil(longest.as_nanos());
        // A cycle of a microsecond in a load of an hour is still below it.
        let cycles = u32::try_from(cycles).expect("fewer cycles than 32 bits count");
        let mut random = Random::new(seed, SLICES);
        let mut orders = Vec::new();
        while orders.len() < cycles as usize {
            orders.extend(order::block(variants, &mut random));
        }
        orders.truncate(cycles as usize);
        // Other numbers than those of the orders, which stay as they are for fast servers.
        let mut random = Random::new(seed, PHASES);
        let latency_ns = usize::try_from(latency.as_nanos()).expect("no answer takes centuries");
        let mut phase = || Duration::from_nanos(random.below(latency_ns + 1) as u64);
        let phases = (0..orders.len() * variants).map(|_| phase());
        SlicePlan {
            orders,
            phases: phases.collect(),
            uncounted: beginning.max(latency * LATENCIES_BEFORE),
            counted: total / cycles,
            tail: latency * 2,
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

    /// What does not count at the beginning of each slice, at least.
    #[must_use]
    pub fn uncounted(&self) -> Duration {
        self.uncounted
    }

    /// The length of a slice.
    #[must_use]
    pub fn slice(&self) -> Duration {
        self.uncounted + self.counted + self.tail
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
            let number = cycle * order.len() + place;
            let from = self.start(number);
            let count_from = from + self.uncounted + self.phases[number];
            PlannedSlice {
                from,
                count_from,
                count_to: count_from + self.counted,
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
