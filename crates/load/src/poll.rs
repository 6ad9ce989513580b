//! Waits for sockets, and for the next slot to the microsecond.
//!
//! `epoll_wait` counts in milliseconds, and `epoll_pwait2` is missing on kernels that people still
//! run. So a punctual wait sleeps in `ppoll` on the epoll descriptor itself, which takes
//! nanoseconds everywhere, and is over a little early: the rest is spent asking without waiting.
//! How early, the [`SpinBudget`] says.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::spin::SpinBudget;

/// Events taken at once. More would make the answers at the end of the list wait for the others.
const EVENTS_MAX: usize = 128;

/// A shorter sleep takes longer than it lasts.
const SLEEP_MIN_NS: u64 = 3_000;

/// How exactly a wait must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Up to a millisecond late: nothing but a timeout is waited for.
    Roughly(u64),
    /// In time for a slot that is due in so many nanoseconds.
    Punctually(u64),
}

/// An epoll instance with the events of the last wait.
pub(crate) struct Poll {
    epoll: OwnedFd,
    pub(crate) events: Vec<Event>,
    spin: SpinBudget,
    did: Did,
}

/// What the last wait was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    /// A look at the sockets although a slot is not yet due.
    Spin,
    /// A sleep that nothing cut short.
    Sleep,
    /// Anything else.
    Other,
}

impl Poll {
    /// An epoll instance for [`Poll::new`], apart because it can fail and this type cannot change
    /// threads.
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

    /// Registers a socket once for all that may happen to it; closing it ends the registration.
    /// Edge-triggered: a level-triggered one is looked at twice per answer.
    pub(crate) fn add(&self, socket: &OwnedFd, token: u64) -> rustix::io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    /// Fills `events`. Returns the nanoseconds it meant to sleep at most.
    pub(crate) fn wait(&mut self, wait: Wait) -> u64 {
        self.events.clear();
        self.did = Did::Other;
        match wait {
            Wait::Roughly(left_ns) => {
                // Rounded up: otherwise the last part of a millisecond would be spent in waits of
                // 0.
                let milliseconds = left_ns.div_ceil(1_000_000);
                self.take(milliseconds * 1_000_000);
                milliseconds * 1_000_000
            }
            Wait::Punctually(left_ns) => {
                let sleep_ns = left_ns.saturating_sub(self.spin.early_ns());
                if sleep_ns < SLEEP_MIN_NS {
                    self.take(0);
                    // A look that found events was work, and costs nothing of the spin budget.
                    if left_ns > 0 && self.events.is_empty() {
                        self.did = Did::Spin;
                    }
                // No event came within the sleep, so the second system call is saved.
                } else if self.sleep(sleep_ns) {
                    self.did = Did::Sleep;
                } else {
                    self.take(0);
                }
                sleep_ns
            }
        }
    }

    /// The last wait meant to sleep `meant_ns` and took `took_ns`.
    pub(crate) fn learn(&mut self, meant_ns: u64, took_ns: u64) {
        self.spin.passed(took_ns);
        match self.did {
            Did::Spin => self.spin.spent(took_ns),
            Did::Sleep => self.spin.slept(took_ns.saturating_sub(meant_ns)),
            Did::Other => {}
        }
    }

    /// Sleeps; `false` when a socket (or a signal) ended it.
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
            // A signal ends a wait as a timeout does: the caller looks at the stop flag in any
            // case.
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
