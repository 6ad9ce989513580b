//! Which slot is next, and when there are no more.
//!
//! This is the only place where the two meanings of a load differ. In a closed loop a slot exists
//! as soon as a connection is free for it; in an open loop it exists from its `due`, whether or
//! not anybody is free. Slots that wait are simply not yet taken from the plan, so a queue of any
//! length takes no memory.

use schedule::Slots;

use crate::clock::to_ns;
use crate::measurement::FailureKind;
use crate::recorder::{Evidence, Recorder};
use crate::rendered::Rotation;

/// A slot on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Position in the whole load.
    pub(crate) index: u64,
    /// When it should leave; `None` in a closed loop: now, whenever that is.
    pub(crate) due_ns: Option<u64>,
}

/// The slots of one generator thread.
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
}

/// A shard of a plan.
pub(crate) struct Open {
    slots: Slots,
    /// The first slot not taken, with the time it is due.
    next: Option<(u64, u64)>,
    start_ns: u64,
    /// Slots not sent by now are missed.
    give_up_ns: u64,
}

impl Open {
    pub(crate) fn new(slots: Slots, start_ns: u64, give_up_ns: u64) -> Open {
        let mut open = Open {
            slots,
            next: None,
            start_ns,
            give_up_ns,
        };
        open.advance();
        open
    }

    #[inline]
    fn advance(&mut self) {
        self.next = self
            .slots
            .next()
            .map(|slot| (slot.index, self.start_ns.saturating_add(to_ns(slot.due))));
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
        })
    }

    /// The next slot, if it exists by now.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<Taken> {
        match self {
            Supply::Closed(closed) => {
                if closed.is_over(now_ns) {
                    return None;
                }
                if let Some(left) = &mut closed.left {
                    *left -= 1;
                }
                let index = closed.next;
                closed.next += closed.step;
                Some(Taken {
                    index,
                    due_ns: None,
                })
            }
            Supply::Open(open) => {
                let (index, due_ns) = open.next.filter(|(_, due_ns)| *due_ns <= now_ns)?;
                open.advance();
                Some(Taken {
                    index,
                    due_ns: Some(due_ns),
                })
            }
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

    /// Counts the slots of a plan that nobody was free for until the end of the grace.
    pub(crate) fn give_up_missed(
        &mut self,
        now_ns: u64,
        rotation: &Rotation,
        recorder: &mut Recorder,
    ) {
        while let Some(taken) = self.take_missed(now_ns) {
            let place = rotation.pick(taken.index);
            let request = &rotation.requests[place];
            let mut filled = Vec::new();
            request.fill(taken.index, &[], &mut filled);
            let evidence = Evidence {
                request: request.bytes(&filled),
                answer: [&[], &[]],
            };
            recorder.failed(FailureKind::Missed, now_ns, evidence, || {
                "every connection was busy until the grace after the plan was over".to_owned()
            });
            recorder.step_failed(place, FailureKind::Missed);
        }
    }

    /// After the grace of a plan: a slot that nobody was free for.
    fn take_missed(&mut self, now_ns: u64) -> Option<Taken> {
        match self {
            Supply::Open(open) if now_ns >= open.give_up_ns => self.take(u64::MAX),
            _ => None,
        }
    }
}

impl Closed {
    fn is_over(&self, now_ns: u64) -> bool {
        self.left == Some(0) || self.end_ns.is_some_and(|end_ns| now_ns >= end_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Arrival, Phase, Rate};
    use schedule::OpenPlan;

    use super::*;

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
        let mut supply = Supply::Open(Open::new(plan.slots(), 1000, 3_000_000_000));
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
}
