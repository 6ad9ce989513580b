//! The timing of every carrier: when to wake, when to stop, which delays are pauses, and when to publish.
//!
//! A thread has one clock and one wait for all its lanes. The wait ends at the earliest time at which a lane
//! has a request to send.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::lane::Lane;
use crate::live::Live;
use crate::priority::Priority;

/// The longest wait, so that the stop flag is read in time.
pub(crate) const WAIT_MAX_NS: u64 = 10_000_000;

/// A longer delay of the thread is a pause.
const PAUSE_NS: u64 = 10_000_000;

/// Time between two updates of the live counts.
const PUBLISH_NS: u64 = 100_000_000;

/// The clock and flags that all threads of a load share.
#[derive(Clone, Copy)]
pub(crate) struct Controls<'a> {
    pub(crate) clock: Clock,
    pub(crate) live: &'a Live,
    pub(crate) stop: &'a AtomicBool,
    /// True if a response 429 or 503 ends the load.
    pub(crate) yields: bool,
}

impl Controls<'_> {
    pub(crate) fn is_stopped(&self) -> bool {
        // The flags publish no other memory. They only have to be read soon.
        self.stop.load(Ordering::Relaxed)
            || (self.yields && self.live.pushed_back.load(Ordering::Relaxed))
    }
}

/// The time limits of the next wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Horizon {
    /// The wait must end by then, but may end as late as the system allows.
    pub(crate) latest_ns: u64,
    /// The due time of the next slot, to the microsecond. May be later than `latest_ns`.
    pub(crate) due_ns: Option<u64>,
}

/// The timing of one generator thread.
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

    /// Performs all actions that depend on time only. Returns `false` if all slots have ended, or if the load
    /// was stopped before.
    pub(crate) fn goes_on(
        &mut self,
        lanes: &mut [Lane],
        priority: &mut Priority,
        now_ns: u64,
    ) -> bool {
        // This comes before the check for the end of the load, because a plan may end with slots that were
        // never sent.
        for lane in &mut *lanes {
            lane.give_up_missed(now_ns);
        }
        let is_over = lanes.iter().all(|lane| lane.queue.is_over(now_ns));
        // If the load is over when the flag is read, it has all its outcomes and was not interrupted.
        let is_stopped = !is_over && self.controls.is_stopped();
        self.was_interrupted |= is_stopped;
        // Published at the end in any case, so that a display ends with all counts.
        if is_over || is_stopped || now_ns >= self.publish_ns {
            self.publish_ns = now_ns + PUBLISH_NS;
            for (job, lane) in lanes.iter_mut().enumerate() {
                let (begun, ended) = (lane.queue.taken(), lane.recorder.slots_ended());
                lane.recorder.publish(self.controls.live, job, begun, ended);
            }
        }
        priority.review(now_ns);
        !is_over && !is_stopped
    }

    /// Returns how long the thread may wait without an event.
    pub(crate) fn horizon(&self, lanes: &[Lane], now_ns: u64) -> Horizon {
        Horizon {
            latest_ns: now_ns + WAIT_MAX_NS,
            due_ns: lanes
                .iter()
                .filter_map(|lane| lane.queue.wake_ns(now_ns))
                .min(),
        }
    }

    /// Compares the time with the intended time. A large delay is a pause for every lane that had work to do,
    /// because its measurements contain the generator's own delay. A lane without work was not affected, and
    /// its account stays clean.
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
