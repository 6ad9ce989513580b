//! Positions of several variants in one plan, between two due times.
//!
//! Side by side, every due time of the plan is one request to *each* variant. The requests of one due time
//! form a *cycle*. They are spread over the gap to the next due time, in one *seat* each. So two requests
//! rarely leave at the same moment. Each cycle draws the variants' seats again. The order is
//! counterbalanced like the order of rounds ([`crate::round_order`]). A block has as many cycles as there are
//! variants. In a block every variant has every seat once, and directly follows each other variant about
//! equally often. So the aftereffects of a variant (a warm cache, a busy core) affect all variants equally.
//!
//! Each request leaves at a random time within its seat, which is drawn for every seat of every cycle. All
//! times of a seat are equally likely. Then, one seat or more after a request, other requests leave equally
//! often at every time. Without it, a response that takes a multiple of the time between two seats would
//! arrive while another request leaves. The generator and the server are awake then, so the response would
//! arrive some microseconds earlier than a response between two requests.

use std::time::Duration;

use crate::order;
use crate::plan::{OpenPlan, Slot, Slots};
use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const SEATS: u64 = 3;

/// Purpose of the random numbers of phases.
const PHASES: u64 = 7;

/// The part of the gap in which the request of a variant may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// A seat of its own. The requests of a cycle then hardly meet, if responses are shorter than the gap.
    #[default]
    Seats,
    /// The whole gap, independent of the other variants. If responses outlast the gap, requests overlap in
    /// any case. With seats, two variants would rarely leave at nearly the same time, so the responses of the
    /// slower one would follow responses of the faster one more often than the other way round. The generator
    /// is awake then, and each would arrive some microseconds earlier.
    Gap,
}

/// Position of one variant in a plan that several variants share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index of the variant, from 0.
    pub variant: usize,
    /// Number of variants that share the plan. At least 1.
    pub variants: usize,
    /// Equal for all variants of a plan, because they must draw the same orders.
    pub seed: u64,
    /// Equal for all variants of a plan.
    pub spread: Spread,
}

impl Seat {
    /// The seat of the only variant. Its slots have the due times of the plan.
    pub const ALONE: Seat = Seat {
        variant: 0,
        variants: 1,
        seed: 0,
        spread: Spread::Seats,
    };
}

/// The slots of one variant on a shared plan, sorted by their due times.
///
/// **Invariant:** slot `k` is due within the gap between the plan's slots `k` and `k + 1`, so due times rise.
/// Two variants of a plan have equal due times only if the gap is shorter than a nanosecond for each.
#[derive(Clone, Debug)]
pub struct SeatedSlots {
    slots: Slots,
    /// The plan's next slot.
    next: Option<Slot>,
    /// End of the plan, which bounds the gap after its last slot.
    end: Duration,
    seats: Seats,
    shard: u64,
    shards: u64,
}

impl OpenPlan {
    /// The slots of shard `shard` of `shards` for one of the variants that share this plan.
    ///
    /// Reading one slot costs as much as reading `shards` slots of the plan.
    ///
    /// # Panics
    /// When `shard` is not below `shards`, or the seat's variant is not below its variants.
    #[must_use]
    pub fn seated(&self, seat: Seat, shard: u64, shards: u64) -> SeatedSlots {
        assert!(shard < shards, "shard {shard} of {shards} does not exist");
        // The whole plan is read, because a gap may end at a slot of any shard.
        let mut slots = self.slots();
        let next = slots.next();
        SeatedSlots {
            slots,
            next,
            end: self.duration(),
            seats: Seats::new(seat),
            shard,
            shards,
        }
    }
}

impl Iterator for SeatedSlots {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        loop {
            let slot = self.next?;
            self.next = self.slots.next();
            // Seats are also drawn for slots of other shards, so that all threads and variants have the same
            // random sequence.
            let seat = self.seats.next();
            let phase = self.seats.next_phase(seat);
            if slot.index % self.shards == self.shard {
                let until = self.next.map_or(self.end, |next| next.due);
                return Some(Slot {
                    index: slot.index,
                    due: slot.due + self.seats.offset(until - slot.due, seat, phase),
                });
            }
        }
    }
}

impl std::iter::FusedIterator for SeatedSlots {}

/// The seats of one variant, cycle by cycle.
#[derive(Clone, Debug)]
struct Seats {
    seat: Seat,
    random: Random,
    /// Random numbers for the phases of cycles.
    phases: Random,
    /// The variant's seats in the cycles of this block. The next one is last.
    block: Vec<usize>,
}

impl Seats {
    fn new(seat: Seat) -> Seats {
        let Seat {
            variant, variants, ..
        } = seat;
        assert!(
            variant < variants,
            "variant {variant} of {variants} does not exist"
        );
        Seats {
            seat,
            random: Random::new(seat.seed, SEATS),
            phases: Random::new(seat.seed, PHASES),
            block: Vec::with_capacity(variants),
        }
    }

    /// The seat in the next cycle, below the number of variants. Without seats, the number of the variant.
    #[inline]
    fn next(&mut self) -> usize {
        // One variant needs no draw, because its slots keep the due times of the plan. Without seats, only the
        // phase of a variant is drawn.
        if self.seat.variants == 1 || self.seat.spread == Spread::Gap {
            return self.seat.variant;
        }
        if self.block.is_empty() {
            self.draw();
        }
        self.block.pop().expect("a block was drawn just now")
    }

    fn draw(&mut self) {
        let Seat {
            variant, variants, ..
        } = self.seat;
        let block = order::block(variants, &mut self.random);
        let seat_in = |cycle: &Vec<usize>| cycle.iter().position(|other| *other == variant);
        self.block.extend(block.iter().rev().filter_map(seat_in));
        // This check runs once per block, so it is cheap enough for release builds.
        assert_eq!(self.block.len(), variants, "a cycle seats every variant");
    }

    /// The phase of this seat in the next cycle, as 32 bits of a whole. All variants of a plan draw the same
    /// phases, one for each seat.
    #[inline]
    fn next_phase(&mut self, seat: usize) -> u64 {
        let mut own = 0;
        // One variant needs no draw, because its slots keep the due times of the plan.
        if self.seat.variants > 1 {
            for other in 0..self.seat.variants {
                let drawn = self.phases.next() >> 32;
                if other == seat {
                    own = drawn;
                }
            }
        }
        own
    }

    /// Delay of a request after the due time of its cycle.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "less than the gap, which fits as nanoseconds of a plan do"
    )]
    fn offset(&self, gap: Duration, seat: usize, phase: u64) -> Duration {
        // The multiplication comes before the division, so that rounding does not add up from seat to seat.
        let (seat, variants) = match self.seat.spread {
            Spread::Seats => (seat, self.seat.variants as u128),
            Spread::Gap => (0, 1),
        };
        let seat_ns = gap.as_nanos() * seat as u128 / variants;
        let phase_ns = (gap.as_nanos() / variants * u128::from(phase)) >> 32;
        Duration::from_nanos((seat_ns + phase_ns) as u64)
    }
}

#[cfg(test)]
mod tests;
