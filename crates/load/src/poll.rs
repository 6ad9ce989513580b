//! Waits for sockets, and for the next slot to the microsecond.
//!
//! `epoll_wait` counts in milliseconds, and `epoll_pwait2` is missing on kernels that people still
//! run. So a punctual wait sleeps in `ppoll` on the epoll descriptor itself, which takes
//! nanoseconds everywhere, and is over a little early: the rest is spent asking without waiting.
//! How early follows from how much too late the system woke this thread before, so that a quiet
//! machine hardly spins at all; and no more than a quarter of the time is spent so, because the
//! systems under load may need this core. At rates where that is not enough, some slots leave as
//! late as the system wakes us, and their lateness says so.

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

/// Time earned for spinning but not spent is kept up to here.
const SPIN_CREDIT_MAX_NS: u64 = 1_000_000;

/// Of the time that passes, one part in so many may be spent spinning.
const SPIN_SHARE: u64 = 4;

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
    /// How much too late a sleep may end here: jumps up, sinks slowly.
    oversleep_ns: u64,
    spin_credit_ns: u64,
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

    pub(crate) fn new(epoll: OwnedFd) -> Poll {
        Poll {
            epoll,
            events: Vec::with_capacity(EVENTS_MAX),
            oversleep_ns: SPIN_MAX_NS,
            spin_credit_ns: SPIN_CREDIT_MAX_NS,
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
                let milliseconds = left_ns.div_ceil(1_000_000);
                self.take(milliseconds * 1_000_000);
                milliseconds * 1_000_000
            }
            Wait::Punctually(left_ns) => {
                let spin_ns = self.oversleep_ns.min(self.spin_credit_ns);
                let sleep_ns = left_ns.saturating_sub(spin_ns);
                if sleep_ns < SLEEP_MIN_NS {
                    self.take(0);
                    if left_ns > 0 && self.events.is_empty() {
                        self.did = Did::Spin;
                    }
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
        let earned_ns = self.spin_credit_ns + took_ns / SPIN_SHARE;
        self.spin_credit_ns = earned_ns.min(SPIN_CREDIT_MAX_NS);
        match self.did {
            Did::Spin => self.spin_credit_ns = self.spin_credit_ns.saturating_sub(took_ns),
            Did::Sleep => {
                let late_ns = took_ns.saturating_sub(meant_ns).min(SPIN_MAX_NS);
                if late_ns > self.oversleep_ns {
                    self.oversleep_ns = late_ns;
                } else {
                    self.oversleep_ns -= (self.oversleep_ns - late_ns) / 64;
                }
            }
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
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("epoll_wait on a descriptor of ours: {error}"),
        }
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec::try_from(Duration::from_nanos(ns)).unwrap_or_default()
}
