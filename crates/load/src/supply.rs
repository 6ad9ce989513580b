//! Which slot is next, and when there are no more.
//!
//! This is the only place where the two meanings of a load differ. In a closed loop a slot exists
//! as soon as a place is free for it; in an open loop it exists from its `due`, whether or not a
//! place is free. Slots that wait are simply not yet taken from the plan, so a queue of any length
//! takes no memory.

use schedule::{SeatedSlots, Slot, Slots};

use crate::clock::to_ns;
use crate::slices::{Moment, Slices};

/// A slot on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Position in the whole load.
    pub(crate) index: u64,
    /// When it should leave; `None` in a closed loop: now, whenever that is.
    pub(crate) due_ns: Option<u64>,
    /// It began in a part of a slice that does not count.
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
    /// Slots left; `None` without a limit.
    pub(crate) left: Option<u64>,
    /// No slot from this time on.
    pub(crate) end_ns: Option<u64>,
    /// Slots exist within these.
    pub(crate) slices: Slices,
}

/// The times of a plan on this machine.
#[derive(Clone, Debug)]
pub(crate) struct PlanTimes {
    /// What the plan calls 0.
    pub(crate) start_ns: u64,
    /// The end of the plan, without shifts.
    pub(crate) end_ns: u64,
    /// How long after the end, or after its due where that is later, a slot may still be sent.
    pub(crate) grace_ns: u64,
}

/// The slots of a plan: as it says, or with a seat between its due times.
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
    /// The first slot not taken, with the time it is due.
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
        // The first slot is looked up now, so that asking when it is due needs no iterator.
        open.advance(0);
        open
    }

    /// Goes on to the next slot, which is not due before this time.
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
    /// No slots at all: connections are opened before there is a start.
    pub(crate) fn none() -> Supply {
        Supply::Closed(Closed {
            next: 0,
            step: 1,
            left: Some(0),
            end_ns: None,
            slices: Slices::from(0),
        })
    }

    /// Slots come by plan, with a time at which each should leave.
    #[inline]
    pub(crate) fn is_planned(&self) -> bool {
        matches!(self, Supply::Open(_))
    }

    /// The next slot, if it exists by now.
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
                    // Not below 0: `has_ended` has looked.
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

    /// Since when the next slot exists, if it does by now. In a closed loop it always did.
    #[inline]
    pub(crate) fn ready_since_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Supply::Closed(closed) => closed.is_within(now_ns).then_some(0),
            Supply::Open(_) => self.next_due_ns().filter(|due_ns| *due_ns <= now_ns),
        }
    }

    /// When the next slot of a plan is due.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match self {
            Supply::Closed(_) => None,
            Supply::Open(open) => open.next.map(|(_, due_ns)| due_ns),
        }
    }

    /// When the next slot exists that does not exist by now, whatever happens before: a slot of a plan,
    /// or the first of a slice.
    pub(crate) fn next_wake_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Supply::Open(_) => self.next_due_ns(),
            Supply::Closed(closed) if closed.is_over(now_ns) => None,
            Supply::Closed(closed) => match closed.slices.at(now_ns) {
                Moment::Before { from_ns } => Some(from_ns),
                // Within a slice, slots come with answers and not with time.
                Moment::Within { .. } | Moment::After => None,
            },
        }
    }

    /// Whether a slot of a plan should have left.
    pub(crate) fn is_overdue(&self, now_ns: u64) -> bool {
        self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns)
    }

    /// When the load ends by time, whatever is under way.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        match self {
            Supply::Closed(closed) => closed.end_ns,
            Supply::Open(_) => None,
        }
    }

    /// There will never be another slot.
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        match self {
            Supply::Closed(closed) => closed.is_over(now_ns),
            Supply::Open(open) => open.next.is_none(),
        }
    }

    /// After the grace of a plan: a slot that no place was free for.
    pub(crate) fn take_missed(&mut self, now_ns: u64) -> Option<Taken> {
        let Supply::Open(open) = self else {
            return None;
        };
        let (_, due_ns) = open.next?;
        // A seat may move the last slots beyond the end of the plan. Each has the whole grace.
        let end_ns = open.times.end_ns.max(due_ns);
        // A grace without end: the sum would be later than any clock.
        let give_up_ns = end_ns.saturating_add(open.times.grace_ns);
        if now_ns < give_up_ns {
            return None;
        }
        self.take(u64::MAX)
    }
}

impl Closed {
    /// By number or by time.
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

    /// A plan of a second that began at 1 us, with a grace of two seconds less 1 us.
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
            };
            let slots = PlanSlots::Seated(plan.seated(seat, 0, 1));
            let mut supply = Supply::Open(Open::new(slots, times()));
            let taken = std::iter::from_fn(|| supply.take(u64::MAX - 1));
            taken.filter_map(|taken| taken.due_ns).collect::<Vec<_>>()
        };
        let (one, other) = (of(0), of(1));
        for (cycle, (one, other)) in (0..).zip(one.iter().zip(&other)) {
            let due_ns = 1000 + cycle * 500_000_000;
            // Each begins in the first half of its seat, which is 250 ms long.
            let (first, second) = (*one.min(other), *one.max(other));
            assert!((due_ns..due_ns + 125_000_000).contains(&first));
            assert!((due_ns + 250_000_000..due_ns + 375_000_000).contains(&second));
        }
    }
}
