//! Waits for sockets, and for the next slot to the microsecond.
//!
//! `epoll_wait` counts in milliseconds, and `epoll_pwait2` is missing on kernels that people still
//! run. So a punctual wait sleeps in `ppoll` on the epoll descriptor itself, which takes
//! nanoseconds everywhere, and is over a little early: the rest is spent asking without waiting.
//! How early follows from how much too late the system woke this thread before, so that a quiet
//! machine hardly spins at all.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Events taken at once. More would make the answers at the end of the list wait for the others.
const EVENTS_MAX: usize = 128;

/// The longest time spent asking without waiting, per wait.
const SPIN_MAX_NS: u64 = 50_000;

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
    /// How much too late a sleep may end here: jumps up, sinks slowly.
    oversleep_ns: u64,
}

impl Poll {
    /// An epoll instance for [`Poll::new`], apart because it can fail and this type cannot change
    /// threads.
    pub(crate) fn create() -> rustix::io::Result<OwnedFd> {
        epoll::create(CreateFlags::CLOEXEC)
    }

    pub(crate) fn new(epoll: OwnedFd) -> Poll {
        Poll {
            epoll,
            events: Vec::with_capacity(EVENTS_MAX),
            oversleep_ns: SPIN_MAX_NS,
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
        match wait {
            Wait::Roughly(left_ns) => {
                let milliseconds = left_ns.div_ceil(1_000_000);
                self.take(milliseconds * 1_000_000);
                milliseconds * 1_000_000
            }
            Wait::Punctually(left_ns) => {
                let sleep_ns = left_ns.saturating_sub(self.oversleep_ns);
                // A sleep this short costs more than it saves.
                if sleep_ns < 3_000 || self.sleep(sleep_ns) {
                    self.take(0);
                }
                sleep_ns
            }
        }
    }

    /// A sleep of `meant_ns` took `took_ns`.
    pub(crate) fn overslept(&mut self, meant_ns: u64, took_ns: u64) {
        let late_ns = took_ns.saturating_sub(meant_ns).min(SPIN_MAX_NS);
        if late_ns > self.oversleep_ns {
            self.oversleep_ns = late_ns;
        } else {
            self.oversleep_ns -= (self.oversleep_ns - late_ns) / 64;
        }
    }

    /// Sleeps; `true` when a socket ended it.
    fn sleep(&self, sleep_ns: u64) -> bool {
        let timeout = timespec(sleep_ns);
        let mut polled = [PollFd::new(&self.epoll, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&timeout)) != Ok(0)
    }

    fn take(&mut self, timeout_ns: u64) {
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&timespec(timeout_ns)),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("epoll_wait on a descriptor of ours: {error}"),
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec::try_from(Duration::from_nanos(ns)).unwrap_or_default()
}
