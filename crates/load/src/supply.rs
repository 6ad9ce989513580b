//! The next slot of a load, and the end of its slots.
//!
//! Closed and open loops differ only here. In a closed loop a slot exists as soon as a place is free for it.
//! In an open loop it exists from its `due`, independent of free places. Waiting slots are not yet taken from
//! the plan, so a queue of any length takes no memory.

use schedule::{SeatedSlots, Slot, Slots};

use crate::clock::to_ns;
use crate::slices::{Moment, Slices};

/// A slot that was taken and is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Position in the whole load.
    pub(crate) index: u64,
    /// The due time. `None` in a closed loop, which sends immediately.
    pub(crate) due_ns: Option<u64>,
    /// True if it began in a part of a slice that does not count.
    pub(crate) is_discarded: bool,
}

/// The slots of one lane on one generator thread.
pub(crate) enum Supply {
    Closed(Closed),
    Open(Open),
}

/// Slots for every `step`th position.
pub(crate) struct Closed {
    pub(crate) next: u64,
    pub(crate) step: u64,
    /// Number of slots left. `None` without a limit.
    pub(crate) left: Option<u64>,
    /// No new slot exists after this time.
    pub(crate) end_ns: Option<u64>,
    /// The stretches of time with slots.
    pub(crate) slices: Slices,
}

/// The times of a plan on this machine.
#[derive(Clone, Debug)]
pub(crate) struct PlanTimes {
    /// The time of 0 in the plan.
    pub(crate) start_ns: u64,
    /// The end of the plan, without shifts.
    pub(crate) end_ns: u64,
    /// Grace for sending a slot after the end, or after its due if that is later.
    pub(crate) grace_ns: u64,
}

/// The slots of a plan, at its due times or with a seat between them.
#[derive(Clone, Debug)]
pub(crate) enum PlanSlots {
    Alone(Slots),
    Seated(SeatedSlots),
}

impl PlanSlots {
    #[inline]
    fn next(&mut self) -> Option<Slot> {
        match self {
            PlanSlots::Alone(slots) => slots.next(),
            PlanSlots::Seated(slots) => slots.next(),
        }
    }
}

/// A shard of a plan.
pub(crate) struct Open {
    slots: PlanSlots,
    /// Index and due time of the next slot.
    next: Option<(u64, u64)>,
    times: PlanTimes,
}

impl Open {
    pub(crate) fn new(slots: PlanSlots, times: PlanTimes) -> Open {
        let mut open = Open {
            slots,
            next: None,
            times,
        };
        // The first slot is computed now, so that a check of its due time needs no iterator.
        open.advance(0);
        open
    }

    /// Moves to the next slot, which is not due before `earliest_ns`.
    #[inline]
    fn advance(&mut self, earliest_ns: u64) {
        let Some(slot) = self.slots.next() else {
            self.next = None;
            return;
        };
        let due_ns = self.times.start_ns + to_ns(slot.due);
        debug_assert!(
            due_ns >= earliest_ns,
            "slot {} is due before the one before it",
            slot.index
        );
        self.next = Some((slot.index, due_ns));
    }
}

impl Supply {
    /// Returns a supply without slots, to open connections before there is a start.
    pub(crate) fn none() -> Supply {
        Supply::Closed(Closed {
            next: 0,
            step: 1,
            left: Some(0),
            end_ns: None,
            slices: Slices::from(0),
        })
    }

    /// True if slots follow a plan, with a due time for each.
    #[inline]
    pub(crate) fn is_planned(&self) -> bool {
        matches!(self, Supply::Open(_))
    }

    /// Takes the next slot, if it exists by now.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<Taken> {
        match self {
            Supply::Closed(closed) => {
                if closed.has_ended(now_ns) {
                    return None;
                }
                // First, because `at` begins its search at the current slice.
                closed.slices.pass(now_ns);
                let Moment::Within { is_discarded } = closed.slices.at(now_ns) else {
                    return None;
                };
                if let Some(left) = &mut closed.left {
                    // Not below 0, because `has_ended` has checked it.
                    *left -= 1;
                }
                let index = closed.next;
                closed.next += closed.step;
                Some(Taken {
                    index,
                    due_ns: None,
                    is_discarded,
                })
            }
            Supply::Open(open) => {
                let (index, due_ns) = open.next.filter(|(_, due_ns)| *due_ns <= now_ns)?;
                open.advance(due_ns);
                Some(Taken {
                    index,
                    due_ns: Some(due_ns),
                    is_discarded: false,
                })
            }
        }
    }

    /// Returns the time since when the next slot exists, if it does by now. In a closed loop it always
    /// exists.
    #[inline]
    pub(crate) fn ready_since_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Supply::Closed(closed) => closed.is_within(now_ns).then_some(0),
            Supply::Open(_) => self.next_due_ns().filter(|due_ns| *due_ns <= now_ns),
        }
    }

    /// Returns the due time of the next slot of a plan.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match self {
            Supply::Closed(_) => None,
            Supply::Open(open) => open.next.map(|(_, due_ns)| due_ns),
        }
    }

    /// Returns the time at which the next slot begins to exist, independent of other events. The slot belongs
    /// to a plan, or is the first slot of a slice.
    pub(crate) fn next_wake_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Supply::Open(_) => self.next_due_ns(),
            Supply::Closed(closed) if closed.is_over(now_ns) => None,
            Supply::Closed(closed) => match closed.slices.at(now_ns) {
                Moment::Before { from_ns } => Some(from_ns),
                // Within a slice, slots follow responses and not time.
                Moment::Within { .. } | Moment::After => None,
            },
        }
    }

    /// True if a slot of a plan should have left.
    pub(crate) fn is_overdue(&self, now_ns: u64) -> bool {
        self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// Returns the end of the load by time, even with requests under way.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        match self {
            Supply::Closed(closed) => closed.end_ns,
            Supply::Open(_) => None,
        }
    }

    /// True if there will never be another slot.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        match self {
            Supply::Closed(closed) => closed.is_over(now_ns),
            Supply::Open(open) => open.next.is_none(),
        }
    }

    /// Takes a slot without a free place, after the grace of a plan.
    pub(crate) fn take_missed(&mut self, now_ns: u64) -> Option<Taken> {
        let Supply::Open(open) = self else {
            return None;
        };
        let (_, due_ns) = open.next?;
        // A seat may move the last slots beyond the end of the plan. Each has the whole grace.
        let end_ns = open.times.end_ns.max(due_ns);
        // For a grace without end, the sum would be later than any clock.
        let give_up_ns = end_ns.saturating_add(open.times.grace_ns);
        if now_ns < give_up_ns {
            return None;
        }
        self.take(u64::MAX)
    }
}

impl Closed {
    /// True if the load has ended by number or by time.
    fn has_ended(&self, now_ns: u64) -> bool {
        self.left == Some(0) || self.end_ns.is_some_and(|end_ns| now_ns >= end_ns)
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.has_ended(now_ns) || self.slices.at(now_ns) == Moment::After
    }

    fn is_within(&self, now_ns: u64) -> bool {
        let is_open = matches!(self.slices.at(now_ns), Moment::Within { .. });
        is_open && !self.is_over(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Arrival, Phase, Rate};
    use schedule::{OpenPlan, Seat};

    use super::*;

    /// Returns a plan of one second that began at 1 us, with a grace of two seconds less 1 us.
    fn times() -> PlanTimes {
        PlanTimes {
            start_ns: 1000,
            end_ns: 1_000_001_000,
            grace_ns: 1_999_999_000,
        }
    }

    fn indexes(supply: &mut Supply, now_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| supply.take(now_ns))
            .map(|taken| taken.index)
            .collect()
    }

    #[test]
    fn a_closed_loop_ends_with_its_number_or_its_time() {
        let closed = |left, end_ns| {
            Supply::Closed(Closed {
                next: 1,
                step: 3,
                left,
                end_ns,
                slices: Slices::from(0),
            })
        };
        assert_eq!(indexes(&mut closed(Some(3), None), 5), [1, 4, 7]);
        assert!(indexes(&mut closed(Some(3), Some(5)), 5).is_empty());
        let mut by_time = closed(None, Some(5));
        assert_eq!(by_time.take(4).map(|taken| taken.index), Some(1));
        assert!(!by_time.is_over(4));
        assert_eq!(by_time.take(5), None);
        assert!(by_time.is_over(5));
    }

    #[test]
    fn a_slot_of_a_plan_exists_from_its_due_until_the_grace_is_over() {
        let phase = Phase::constant(Duration::from_secs(1), Rate::new(5.0).unwrap());
        let plan = OpenPlan::new(&[phase], Arrival::Uniform, None).unwrap();
        let mut supply = Supply::Open(Open::new(PlanSlots::Alone(plan.slots()), times()));
        assert_eq!(supply.next_due_ns(), Some(1000));
        assert!(indexes(&mut supply, 999).is_empty());
        assert_eq!(indexes(&mut supply, 200_001_000), [0, 1]);
        assert_eq!(supply.next_due_ns(), Some(400_001_000));
        assert_eq!(supply.take_missed(2_999_999_999), None);
        let missed = supply.take_missed(3_000_000_000);
        assert_eq!(missed.map(|taken| taken.index), Some(2));
        assert!(!supply.is_over(3_000_000_000));
        assert_eq!(indexes(&mut supply, u64::MAX), [3, 4]);
        assert!(supply.is_over(0));
    }

    #[test]
    fn a_seat_moves_each_slot() {
        let phase = Phase::constant(Duration::from_secs(1), Rate::new(2.0).unwrap());
        let plan = OpenPlan::new(&[phase], Arrival::Uniform, None).unwrap();
        let of = |variant| {
            let seat = Seat {
                variant,
                variants: 2,
                seed: 1,
                spread: schedule::Spread::Seats,
            };
            let slots = PlanSlots::Seated(plan.seated(seat, 0, 1));
            let mut supply = Supply::Open(Open::new(slots, times()));
            let taken = std::iter::from_fn(|| supply.take(u64::MAX - 1));
            taken.filter_map(|taken| taken.due_ns).collect::<Vec<_>>()
        };
        let (one, other) = (of(0), of(1));
        for (cycle, (one, other)) in (0..).zip(one.iter().zip(&other)) {
            let due_ns = 1000 + cycle * 500_000_000;
            // Each slot is in its seat, which is 250 ms long.
            let (first, second) = (*one.min(other), *one.max(other));
            assert!((due_ns..due_ns + 250_000_000).contains(&first));
            assert!((due_ns + 250_000_000..due_ns + 500_000_000).contains(&second));
        }
    }
}
