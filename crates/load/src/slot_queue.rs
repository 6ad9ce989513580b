//! The slots of one lane on one thread, and the places that carry them.
//!
//! A *place* carries one slot at a time: a connection of HTTP/1.1, or one of the streams of an HTTP/2
//! connection. Carriers choose the numbers of their places. The queue only stores if they are free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::recorder::Recorder;
use crate::supply::{Supply, Taken};

/// Places that carry no slot.
#[derive(Debug)]
pub(crate) struct Places {
    /// Places with a connection that was open after their last slot.
    idle: Vec<usize>,
    /// Other places that were used before.
    vacant: Vec<usize>,
    /// Places that were never used. A range, because connections times streams may be a large number.
    unused: Range<usize>,
}

impl Places {
    pub(crate) fn new(all: Range<usize>) -> Places {
        Places {
            // There may be millions of places (connections times streams), but only a few are in use at once.
            // Room for 65,536 is allocated before the load, so that parking a place rarely allocates.
            idle: Vec::with_capacity(all.len().min(1 << 16)),
            vacant: Vec::new(),
            unused: all,
        }
    }

    #[inline]
    pub(crate) fn is_any_free(&self) -> bool {
        !self.idle.is_empty() || !self.vacant.is_empty() || !self.unused.is_empty()
    }

    /// Returns a free place, preferably with an open connection. The place that was used last comes first,
    /// because its buffers are still in the cache.
    #[inline]
    pub(crate) fn pop(&mut self, is_open: impl Fn(usize) -> bool) -> Option<usize> {
        while let Some(place) = self.idle.pop() {
            if is_open(place) {
                return Some(place);
            }
            // Closed while it was idle. It is the first choice if no other place is open.
            self.vacant.push(place);
        }
        self.vacant.pop().or_else(|| self.unused.next())
    }

    /// Takes all places before their first use. Each place is parked when it is connected.
    pub(crate) fn take_unused(&mut self) -> Range<usize> {
        std::mem::take(&mut self.unused)
    }

    /// Marks a place as free.
    #[inline]
    pub(crate) fn park(&mut self, place: usize, is_open: bool) {
        if is_open {
            self.idle.push(place);
        } else {
            self.vacant.push(place);
        }
    }

    /// Records that the connection of an idle place was closed.
    pub(crate) fn closed(&mut self, place: usize) {
        // A walk over all idle places: connections rarely end while they are idle.
        self.idle.retain(|idle| *idle != place);
        self.vacant.push(place);
    }
}

/// The slots of one lane on one thread.
pub(crate) struct SlotQueue {
    pub(crate) supply: Supply,
    pub(crate) places: Places,
    /// Places in think time, by the due time of their next step. Each keeps its slot meanwhile.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// Number of slots under way, including slots in think time.
    active: usize,
    /// Number of slots that were taken.
    taken: u64,
}

impl SlotQueue {
    /// Returns a queue without slots, to open connections before there is a start.
    pub(crate) fn new(places: Range<usize>) -> SlotQueue {
        SlotQueue {
            supply: Supply::none(),
            places: Places::new(places),
            waiting: BinaryHeap::new(),
            active: 0,
            taken: 0,
        }
    }

    /// Takes the next slot, if it exists by now. It is under way from here on.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<Taken> {
        let taken = self.supply.take(now_ns)?;
        // Counted when it is taken, not when it is sent. A lane is only over when the slots that wait for a
        // connection have ended, too.
        self.active += 1;
        self.taken += 1;
        Some(taken)
    }

    /// Takes the next slot that was never sent before the end of the grace after the plan. It has ended and
    /// is not under way.
    pub(crate) fn take_missed(&mut self, now_ns: u64) -> Option<Taken> {
        let taken = self.supply.take_missed(now_ns)?;
        self.taken += 1;
        Some(taken)
    }

    /// Handles a place that became free: gives it the next slot or parks it.
    #[inline]
    pub(crate) fn release(
        &mut self,
        place: usize,
        is_open: bool,
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> Option<Taken> {
        // Read before the slot is taken, because the released place does not count as free.
        let was_full = !self.places.is_any_free();
        let taken = self.take(now_ns);
        match taken {
            // A due slot with a free place is only late. A slot without a free place had to wait, and the
            // target caused that wait instead of the generator.
            Some(slot) if was_full && slot.due_ns.is_some() => recorder.waited(now_ns),
            Some(_) => {}
            None => self.places.park(place, is_open),
        }
        taken
    }

    /// Records the end of a slot.
    #[inline]
    pub(crate) fn ended(&mut self) {
        debug_assert!(self.active > 0, "a slot ended twice");
        self.active -= 1;
    }

    /// Lets this place continue at `due_ns`.
    pub(crate) fn wait(&mut self, place: usize, due_ns: u64) {
        self.waiting.push(Reverse((due_ns, place)));
    }

    /// Removes the time at which this place would continue.
    pub(crate) fn forget(&mut self, place: usize) {
        self.waiting
            .retain(|Reverse((_, waiting))| *waiting != place);
    }

    /// Returns a place with a think time that is over.
    #[inline]
    pub(crate) fn pop_waiting(&mut self, now_ns: u64) -> Option<usize> {
        let Reverse((due_ns, _)) = self.waiting.peek()?;
        if *due_ns > now_ns {
            return None;
        }
        self.waiting.pop().map(|Reverse((_, place))| place)
    }

    fn next_step_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Returns the time since when there is a slot and a free place for it.
    #[inline]
    pub(crate) fn ready_since_ns(&self, now_ns: u64) -> Option<u64> {
        if !self.places.is_any_free() {
            return None;
        }
        self.supply.ready_since_ns(now_ns)
    }

    /// True if a slot or a step is due by now.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        let is_past = |due_ns| due_ns <= now_ns;
        self.supply.next_due_ns().is_some_and(is_past) || self.next_step_ns().is_some_and(is_past)
    }

    /// Returns the next time at which there is a request to send, without any other event. A slot without a
    /// free place is no reason to wake, because it leaves with the response that frees a place. A step after
    /// its think time already has its place.
    pub(crate) fn wake_ns(&self, now_ns: u64) -> Option<u64> {
        let is_any_free = self.places.is_any_free();
        let slot_ns = self.supply.next_wake_ns(now_ns).filter(|_| is_any_free);
        slot_ns.into_iter().chain(self.next_step_ns()).min()
    }

    /// True if a pause of the thread at this time would delay requests.
    pub(crate) fn has_work(&self, now_ns: u64) -> bool {
        self.active > 0 || self.supply.is_overdue(now_ns)
    }

    /// True if all slots have ended and no slot will follow.
    #[inline]
    pub(crate) fn is_over(&self, now_ns: u64) -> bool {
        self.active == 0 && self.supply.is_over(now_ns)
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_connection_comes_before_others_and_a_used_place_before_a_new_one() {
        let mut places = Places::new(4..7);
        assert_eq!(places.pop(|_| true), Some(4));
        assert_eq!(places.pop(|_| true), Some(5));
        places.park(4, false);
        places.park(5, true);
        assert_eq!(places.pop(|_| true), Some(5));
        places.park(5, true);
        assert_eq!(
            places.pop(|_| false),
            Some(5),
            "closed meanwhile, used last"
        );
        assert_eq!(places.pop(|_| true), Some(4));
        assert_eq!(places.pop(|_| true), Some(6));
        assert_eq!(places.pop(|_| true), None);
        assert!(!places.is_any_free());
    }

    #[test]
    fn steps_go_on_in_the_order_of_their_times() {
        let mut queue = SlotQueue::new(0..3);
        queue.wait(0, 30);
        queue.wait(1, 10);
        queue.wait(2, 20);
        assert_eq!(queue.wake_ns(0), Some(10));
        assert_eq!(queue.pop_waiting(9), None);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_waiting(25)).collect();
        assert_eq!(order, [1, 2]);
        assert!(queue.is_due(30));
        queue.forget(0);
        assert_eq!(queue.pop_waiting(90), None);
    }
}
