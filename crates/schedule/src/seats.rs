//! Several variants on one plan: where the slot of each one lies between two due times.
//!
//! Side by side, every due time of the plan is one request to *each* variant. The requests of one
//! due time (a *cycle*) are spread evenly over the gap to the next due time, one *seat* each, so that
//! no two of them leave at the same moment. Who sits where is drawn anew for every cycle and
//! counterbalanced as the order of rounds is ([`crate::round_order`]): over each block of as many
//! cycles as there are variants, every variant has every seat once, and directly follows each other
//! one about equally often. What a variant leaves behind (a warm cache, a busy core) so hits all
//! alike.
//!
//! Each seat begins at a random phase, which is drawn for every seat of every cycle. Answers that take a
//! multiple of the time between two seats would otherwise arrive as another request leaves. The generator is
//! awake then, and the answer seems to come earlier.

use std::time::Duration;

use crate::order;
use crate::plan::{OpenPlan, Slot, Slots};
use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const SEATS: u64 = 3;

/// Purpose of the random numbers of phases.
const PHASES: u64 = 7;

/// The phase of a seat is below this part of the time between two seats. Requests so keep half of that time
/// between them at least.
const PHASE_PART: u128 = 2;

/// One variant's place in a plan that several variants share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Which of the variants, from 0.
    pub variant: usize,
    /// How many variants share the plan. At least 1.
    pub variants: usize,
    /// Equal for all variants of a plan: they must draw the same orders.
    pub seed: u64,
}

impl Seat {
    /// The seat of the only variant: its slots are due as the plan says.
    pub const ALONE: Seat = Seat {
        variant: 0,
        variants: 1,
        seed: 0,
    };
}

/// The slots of one variant on a shared plan, in the order in which they are due.
///
/// **Invariant:** slot `k` is due within the gap between the plan's slots `k` and `k + 1`, so due
/// times rise, and no two variants of a plan have the same one unless the gap is shorter than a
/// nanosecond for each.
#[derive(Clone, Debug)]
pub struct SeatedSlots {
    slots: Slots,
    /// The plan's slot that comes next.
    next: Option<Slot>,
    /// When the plan ends, which bounds the gap behind its last slot.
    end: Duration,
    seats: Seats,
    shard: u64,
    shards: u64,
}

impl OpenPlan {
    /// The slots of shard `shard` of `shards` for one of the variants that share this plan.
    ///
    /// Reading one costs as much as reading `shards` slots of the plan.
    ///
    /// # Panics
    /// When `shard` is not below `shards`, or the seat's variant not below its variants.
    #[must_use]
    pub fn seated(&self, seat: Seat, shard: u64, shards: u64) -> SeatedSlots {
        assert!(shard < shards, "shard {shard} of {shards} does not exist");
        // The whole plan is read, because a gap ends at the next slot of any shard.
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
            // Drawn for slots of other shards too, so that all threads and variants draw the same.
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
    /// Draws the phases of cycles.
    phases: Random,
    /// Its seats in the cycles of this block, the next one last.
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

    /// The seat in the next cycle, below the number of variants.
    #[inline]
    fn next(&mut self) -> usize {
        // No draw for one variant: its slots stay where the plan has them.
        if self.seat.variants == 1 {
            return 0;
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
        // Once a block, which is rare enough to be checked always.
        assert_eq!(self.block.len(), variants, "a cycle seats every variant");
    }

    /// The phase of this seat in the next cycle, as 32 bits of a whole. All variants of a plan draw the same
    /// phases, one for each seat.
    #[inline]
    fn next_phase(&mut self, seat: usize) -> u64 {
        let mut own = 0;
        // No draw for one variant: its slots stay where the plan has them.
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

    /// How long after the due time of its cycle a seat is due.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "less than the gap, which fits as nanoseconds of a plan do"
    )]
    fn offset(&self, gap: Duration, seat: usize, phase: u64) -> Duration {
        // Multiplied before it is divided, so that rounding does not add up from seat to seat.
        let variants = self.seat.variants as u128;
        let seat_ns = gap.as_nanos() * seat as u128 / variants;
        let phase_ns = (gap.as_nanos() / (variants * PHASE_PART) * u128::from(phase)) >> 32;
        Duration::from_nanos((seat_ns + phase_ns) as u64)
    }
}

#[cfg(test)]
mod tests;
