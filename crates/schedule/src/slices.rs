//! Plan of a closed loop side by side: the times at which each variant receives the load.
//!
//! A closed loop has no due times that variants could share. So side by side, the load moves from variant to
//! variant in *slices* of some hundred milliseconds, and the other variants are idle meanwhile. A *cycle* is
//! one slice for each variant. Each cycle draws the order of its slices again, and the orders are
//! counterbalanced like the order of rounds ([`crate::round_order`]). So noise of the machine and the
//! aftereffects of a variant affect all variants equally.
//!
//! The beginning of a slice does not count. It is a fixed *time* and not a share of the slice, because its
//! causes take a fixed time. Threads wake, and the scheduler gives them back their unused time. Caches fill
//! again, and the last responses to the slice before arrive. The beginning is at most a third of a slice, so
//! that a short slice still counts for something.
//!
//! A slice also fits the latency. The connections send their first requests together, so a slow server
//! responds in waves. Two latencies pass before the counted part, which begins at a random phase of the
//! third. At least one latency follows it, so that the last counted requests meet the same load as all other
//! requests. The counted part is at least 20 latencies long if the round is long enough.

use std::time::Duration;

use crate::order;
use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const SLICES: u64 = 4;

/// Purpose of the random numbers of phases.
const PHASES: u64 = 6;

/// Beginning of a slice that does not count. `cargo xtask slices` shows the rate by the age of a slice. With
/// null servers and other busy programs, the first 10 ms have 75 to 108 % of the later rate. From 20 ms on,
/// no difference is visible. The value is a little longer for servers that do more work.
const UNCOUNTED: Duration = Duration::from_millis(30);

/// The time of one variant with the load. Times count from the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedSlice {
    /// Time of the first request.
    pub from: Duration,
    /// Start of the counted part. Requests that are sent from here on count.
    pub count_from: Duration,
    /// End of the counted part. Requests that are sent from here on do not count.
    pub count_to: Duration,
    /// End of the slice. No request is sent from here on.
    pub to: Duration,
}

/// Latencies that pass before a slice counts.
const LATENCIES_BEFORE: u32 = 2;

/// Minimum length of the counted part of a slice in latencies, if the round is long enough.
const LATENCIES_COUNTED: u32 = 20;

/// Minimum counted length of a round in latencies. A shorter round is extended.
const LATENCIES_OF_ROUND: u32 = 5;

/// Input of a plan of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLengths {
    /// Counted time of each variant in the round, over all slices. At least a microsecond.
    pub total: Duration,
    /// Length of a slice, unless the latency needs a longer one. At least a microsecond.
    pub slice: Duration,
    /// Pause after each slice. Requests in flight end in it, before the next variant's slice begins.
    pub gap: Duration,
    /// The mean latency of the slowest variant, or 0 if it is unknown.
    pub latency: Duration,
}

/// The slices of all variants of a round.
///
/// **Invariant:** slices of a plan are disjoint and equally long, with the gap between one and the next.
/// Their counted parts are equally long.
#[derive(Clone, Debug)]
pub struct SlicePlan {
    /// For each cycle, the variants in the order of their slices.
    orders: Vec<Vec<usize>>,
    /// For each slice in order of time, the delay between the uncounted beginning and the counted part.
    phases: Vec<Duration>,
    uncounted: Duration,
    counted: Duration,
    /// Time between the end of the earliest possible counted part and the end of the slice.
    tail: Duration,
    gap: Duration,
}

impl SlicePlan {
    /// Plans slices so that each variant counts for `lengths.total`. The counted part of a slice is shortened
    /// to make the number of cycles whole.
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
        // Even cycles of a microsecond in a load of an hour do not exceed this.
        let cycles = u32::try_from(cycles).expect("fewer cycles than 32 bits count");
        let mut random = Random::new(seed, SLICES);
        let mut orders = Vec::new();
        while orders.len() < cycles as usize {
            orders.extend(order::block(variants, &mut random));
        }
        orders.truncate(cycles as usize);
        // The phases use other random numbers than the orders. So fast servers keep their orders.
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

    /// Number of slices of each variant.
    #[must_use]
    pub fn cycles(&self) -> usize {
        self.orders.len()
    }

    /// Length of the counted part of each slice.
    #[must_use]
    pub fn counted(&self) -> Duration {
        self.counted
    }

    /// Minimum length of the uncounted beginning of each slice.
    #[must_use]
    pub fn uncounted(&self) -> Duration {
        self.uncounted
    }

    /// The length of a slice.
    #[must_use]
    pub fn slice(&self) -> Duration {
        self.uncounted + self.counted + self.tail
    }

    /// Length of the pause after a slice.
    #[must_use]
    pub fn gap(&self) -> Duration {
        self.gap
    }

    /// Time from the beginning of the first slice to the end of the last gap.
    #[must_use]
    pub fn length(&self) -> Duration {
        // All orders have the same length.
        let variants = self.orders.last().map_or(0, Vec::len);
        self.start(self.cycles() * variants)
    }

    /// The slices of a variant in order, one per cycle.
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

    /// Start of the slice with this number, counted over all variants.
    fn start(&self, number: usize) -> Duration {
        let number = u32::try_from(number).expect("fewer slices than 32 bits count");
        (self.slice() + self.gap) * number
    }
}

#[cfg(test)]
mod tests;
