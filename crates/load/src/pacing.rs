//! What is a matter of time, for every carrier: when to wake, when to stop, what was a pause, and when
//! to publish.
//!
//! A thread has one clock and one wait for all its lanes. The wait ends at the earliest time at which
//! any of them has something to send.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::lane::Lane;
use crate::live::Live;
use crate::priority::Priority;

/// No wait is longer: the stop flag must be seen.
pub(crate) const WAIT_MAX_NS: u64 = 10_000_000;

/// Standing still longer than this is a pause.
const PAUSE_NS: u64 = 10_000_000;

/// Between two updates of the live counts.
const PUBLISH_NS: u64 = 100_000_000;

/// What all threads of a load share.
#[derive(Clone, Copy)]
pub(crate) struct Controls<'a> {
    pub(crate) clock: Clock,
    pub(crate) live: &'a Live,
    pub(crate) stop: &'a AtomicBool,
    /// Whether an answer 429 or 503 ends the load.
    pub(crate) yields: bool,
}

impl Controls<'_> {
    pub(crate) fn is_stopped(&self) -> bool {
        // The flags publish no other memory; they only have to be seen soon.
        self.stop.load(Ordering::Relaxed)
            || (self.yields && self.live.pushed_back.load(Ordering::Relaxed))
    }
}

/// Until when nothing is to do but to look at sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    /// To be looked at again by then, as late as the system likes.
    pub(crate) latest_ns: u64,
    /// Something is due then, to the microsecond. May be later than `latest_ns`.
    pub(crate) due_ns: Option<u64>,
}

/// Keeps the time of one generator thread.
pub(crate) struct Pacer<'a> {
    pub(crate) controls: Controls<'a>,
    publish_ns: u64,
    was_interrupted: bool,
}

impl<'a> Pacer<'a> {
    pub(crate) fn new(controls: Controls<'a>) -> Pacer<'a> {
        Pacer {
            controls,
            publish_ns: 0,
            was_interrupted: false,
        }
    }

    /// Deals with all that only time brings about. `false` when all slots have ended, or when the load
    /// was stopped before.
    pub(crate) fn goes_on(
        &mut self,
        lanes: &mut [Lane],
        priority: &mut Priority,
        now_ns: u64,
    ) -> bool {
        // Before asking whether the load is over: a plan may end with slots that were never sent.
        for lane in &mut *lanes {
            lane.give_up_missed(now_ns);
        }
        let is_over = lanes.iter().all(|lane| lane.queue.is_over(now_ns));
        // A load that is over when the flag is seen has all its outcomes, so it was not
        // interrupted.
        let is_stopped = !is_over && self.controls.is_stopped();
        self.was_interrupted |= is_stopped;
        // At the end whatever the time, so that a display ends with all counts.
        if is_over || is_stopped || now_ns >= self.publish_ns {
            self.publish_ns = now_ns + PUBLISH_NS;
            for (job, lane) in lanes.iter_mut().enumerate() {
                let slots = (lane.queue.taken(), lane.recorder.slots_ended());
                lane.recorder.publish(self.controls.live, job, slots);
            }
        }
        priority.review(now_ns);
        !is_over && !is_stopped
    }

    /// How long the thread may wait when nothing happens.
    pub(crate) fn horizon(&self, lanes: &[Lane], now_ns: u64) -> Horizon {
        Horizon {
            latest_ns: now_ns + WAIT_MAX_NS,
            due_ns: lanes
                .iter()
                .filter_map(|lane| lane.queue.wake_ns(now_ns))
                .min(),
        }
    }

    /// The thread got to here now and was meant to by then. Being much later is a pause for every
    /// lane that had something to do: what was measured across it contains the generator's own delay.
    /// A lane without work was not harmed, and its account stays clean.
    #[inline]
    pub(crate) fn arrived(&self, lanes: &mut [Lane], meant_ns: u64, now_ns: u64) {
        // Events may end a wait early.
        let late_ns = now_ns.saturating_sub(meant_ns);
        if late_ns <= PAUSE_NS {
            return;
        }
        for lane in lanes {
            if lane.queue.has_work(now_ns) {
                lane.recorder.paused(meant_ns, late_ns);
            }
        }
    }

    pub(crate) fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }
}
