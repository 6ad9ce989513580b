//! Waits for sockets, and for the next slot to the microsecond.
//!
//! `epoll_wait` counts in milliseconds, and `epoll_pwait2` is missing on older kernels that are still in use.
//! A punctual wait therefore sleeps in `ppoll` on the epoll descriptor itself, which takes nanoseconds on
//! every kernel. The sleep ends a little early, and the thread polls for the rest of the time. The
//! [`SpinBudget`] sets that rest.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::spin::SpinBudget;

/// Events taken at once. With more events, responses at the end of the list would wait for earlier responses.
const EVENTS_MAX: usize = 128;

/// The shortest useful sleep. A shorter sleep takes longer than requested.
const SLEEP_MIN_NS: u64 = 3_000;

/// The required precision of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The wait may end up to a millisecond late, because only timeouts depend on it. In nanoseconds.
    Roughly(u64),
    /// The wait must end in time for a slot that is due in this number of nanoseconds.
    Punctually(u64),
}

/// An epoll instance with the events of the last wait.
pub(crate) struct Poll {
    epoll: OwnedFd,
    pub(crate) events: Vec<Event>,
    spin: SpinBudget,
    did: Did,
}

/// The kind of the last wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    /// A poll of the sockets before a slot is due.
    Spin,
    /// A sleep that no event ended.
    Sleep,
    /// Any other wait.
    Other,
}

impl Poll {
    /// Creates an epoll instance for [`Poll::new`]. Separate, because it can fail, and because a `Poll`
    /// cannot move to another thread.
    pub(crate) fn create() -> rustix::io::Result<OwnedFd> {
        epoll::create(CreateFlags::CLOEXEC)
    }

    pub(crate) fn new(epoll: OwnedFd, spin_share: f64) -> Poll {
        Poll {
            epoll,
            events: Vec::with_capacity(EVENTS_MAX),
            spin: SpinBudget::new(spin_share),
            did: Did::Other,
        }
    }

    /// Registers a socket once for all its events. Closing the socket ends the registration. Edge-triggered,
    /// because a level-triggered socket is checked twice per response.
    pub(crate) fn add(&self, socket: &OwnedFd, token: u64) -> rustix::io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    /// Fills `events`. Returns the intended limit of its sleep in nanoseconds.
    pub(crate) fn wait(&mut self, wait: Wait) -> u64 {
        self.events.clear();
        self.did = Did::Other;
        match wait {
            Wait::Roughly(left_ns) => {
                // Rounded up, because the last part of a millisecond would otherwise be spent in waits of 0.
                let milliseconds = left_ns.div_ceil(1_000_000);
                self.take(milliseconds * 1_000_000);
                milliseconds * 1_000_000
            }
            Wait::Punctually(left_ns) => {
                let sleep_ns = left_ns.saturating_sub(self.spin.early_ns());
                if sleep_ns < SLEEP_MIN_NS {
                    self.take(0);
                    // A poll that found events was work, and costs no spin budget.
                    if left_ns > 0 && self.events.is_empty() {
                        self.did = Did::Spin;
                    }
                // The sleep ended without an event, so the second system call is saved.
                } else if self.sleep(sleep_ns) {
                    self.did = Did::Sleep;
                } else {
                    self.take(0);
                }
                sleep_ns
            }
        }
    }

    /// Records that the last wait intended to sleep `meant_ns` and took `took_ns`.
    pub(crate) fn learn(&mut self, meant_ns: u64, took_ns: u64) {
        self.spin.passed(took_ns);
        match self.did {
            Did::Spin => self.spin.spent(took_ns),
            Did::Sleep => self.spin.slept(took_ns.saturating_sub(meant_ns)),
            Did::Other => {}
        }
    }

    /// Sleeps. Returns `false` if a socket (or a signal) ended the sleep.
    fn sleep(&self, sleep_ns: u64) -> bool {
        let timeout = timespec(sleep_ns);
        let mut polled = [PollFd::new(&self.epoll, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&timeout)) == Ok(0)
    }

    fn take(&mut self, timeout_ns: u64) {
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timespec(timeout_ns)),
        ) {
            // A signal ends a wait like a timeout, because the caller reads the stop flag in any case.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("epoll_wait on a descriptor of ours: {error}"),
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec::try_from(Duration::from_nanos(ns)).expect("64 bits of nanoseconds are 584 years")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_1_never_sleeps() {
        let mut poll = Poll::new(Poll::create().unwrap(), 1.0);
        for _ in 0..3 {
            assert_eq!(
                poll.wait(Wait::Punctually(u64::MAX)),
                0,
                "no sleep is meant"
            );
            poll.learn(0, 1_000_000_000);
        }
        let mut thrifty = Poll::new(Poll::create().unwrap(), 0.99);
        assert!(thrifty.wait(Wait::Punctually(4_000)) > 0);
    }

    #[test]
    fn what_was_spun_is_spent_and_what_was_slept_is_earned() {
        let mut poll = Poll::new(Poll::create().unwrap(), 0.25);
        poll.did = Did::Other;
        poll.learn(0, 100_000);
        assert_eq!(poll.spin.early_ns(), 25_000);
        poll.did = Did::Spin;
        poll.learn(0, 20_000);
        assert_eq!(poll.spin.early_ns(), 10_000);
    }
}
