//! Waits for sockets, and for the next slot to the microsecond.
//!
//! `epoll_wait` counts in milliseconds, and `epoll_pwait2` is missing on kernels that people still
//! run. So a punctual wait sleeps in `ppoll` on the epoll descriptor itself, which takes
//! nanoseconds everywhere, and is over a little early: the rest is spent asking without waiting.
//! How early follows from how much too late the system woke this thread before: as much as 99 of
//! 100 sleeps do not exceed, so that a quiet machine hardly spins at all. No more than a share of the
//! time is spent so, because the systems under load may need this core, and because a host that is
//! shared takes the core away from a guest that never rests. At rates where that is not enough, some
//! slots leave as late as the system wakes us, and their lateness says so.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Events taken at once. More would make the answers at the end of the list wait for the others.
const EVENTS_MAX: usize = 128;

/// The longest time spent asking without waiting, per wait. Longer oversleeps are no matter of timers
/// but of other programs and other guests: no spinning helps against them, and they teach nothing.
const SPIN_MAX_NS: u64 = 200_000;

/// What is expected of sleeps before the first has been seen.
const OVERSLEEP_FIRST_NS: u64 = 60_000;

/// A sleep that ends later than expected raises the expectation by this much, and 99 that do not
/// lower it by as much: it settles where one in a hundred ends later, however late that one is.
const OVERSLEEP_STEP_NS: u64 = 5_000;
const OVERSLEEP_ODDS: u64 = 99;

/// Time earned for spinning but not spent is kept up to here.
const SPIN_CREDIT_MAX_NS: u64 = 1_000_000;

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
    /// How much too late 99 of 100 sleeps end here at most.
    oversleep_ns: u64,
    /// Of the time that passes, this share may be spent spinning.
    spin_share: f64,
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

    pub(crate) fn new(epoll: OwnedFd, spin_share: f64) -> Poll {
        Poll {
            epoll,
            events: Vec::with_capacity(EVENTS_MAX),
            oversleep_ns: OVERSLEEP_FIRST_NS,
            spin_share,
            spin_credit_ns: 0,
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
                let sleep_ns = left_ns.saturating_sub(self.spin_ns());
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

    /// How long before a slot is due to stop sleeping.
    fn spin_ns(&self) -> u64 {
        // Whoever gives the whole core wants a thread that is never woken late, nor descheduled for
        // having slept.
        if self.spin_share >= 1.0 {
            return u64::MAX;
        }
        self.oversleep_ns.min(self.spin_credit_ns)
    }

    /// The last wait meant to sleep `meant_ns` and took `took_ns`.
    pub(crate) fn learn(&mut self, meant_ns: u64, took_ns: u64) {
        let earned_ns = self.spin_credit_ns + share_of(took_ns, self.spin_share);
        self.spin_credit_ns = earned_ns.min(SPIN_CREDIT_MAX_NS);
        match self.did {
            Did::Spin => self.spin_credit_ns = self.spin_credit_ns.saturating_sub(took_ns),
            Did::Sleep => {
                let late_ns = took_ns.saturating_sub(meant_ns);
                self.oversleep_ns = expect_of(self.oversleep_ns, late_ns);
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

/// What is expected of sleeps after one more of them ended so much too late.
fn expect_of(oversleep_ns: u64, late_ns: u64) -> u64 {
    if late_ns > SPIN_MAX_NS {
        oversleep_ns
    } else if late_ns > oversleep_ns {
        (oversleep_ns + OVERSLEEP_STEP_NS).min(SPIN_MAX_NS)
    } else {
        oversleep_ns.saturating_sub(OVERSLEEP_STEP_NS / OVERSLEEP_ODDS)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a time that fits is a time that fits"
)]
fn share_of(ns: u64, share: f64) -> u64 {
    (ns as f64 * share) as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec::try_from(Duration::from_nanos(ns)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expectation after many sleeps of which every `nth` ends `rare_ns` late, the others
    /// `usual_ns`.
    fn settled(usual_ns: u64, nth: u64, rare_ns: u64) -> u64 {
        (1..=50_000).fold(OVERSLEEP_FIRST_NS, |expected, sleep| {
            let is_rare = sleep % nth == 0;
            expect_of(expected, if is_rare { rare_ns } else { usual_ns })
        })
    }

    #[test]
    fn one_late_sleep_in_a_thousand_makes_nobody_spin_for_it() {
        assert!(settled(40_000, 1000, 3_000_000) < 50_000);
    }

    #[test]
    fn one_late_sleep_in_twenty_is_provided_for() {
        let expected = settled(40_000, 20, 120_000);
        assert!((115_000..=125_000).contains(&expected), "{expected}");
    }

    #[test]
    fn no_wait_spins_longer_than_its_limit() {
        assert_eq!(settled(SPIN_MAX_NS, 1, SPIN_MAX_NS), SPIN_MAX_NS);
    }

    #[test]
    fn what_no_spinning_helps_against_makes_nobody_spin() {
        assert!(settled(40_000, 10, 5_000_000) < 50_000);
    }

    #[test]
    fn the_whole_core_is_for_whoever_gives_it() {
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
    fn spinning_is_earned_by_the_time_that_passes() {
        let mut poll = Poll::new(Poll::create().unwrap(), 0.25);
        poll.did = Did::Other;
        poll.learn(0, 100_000);
        assert_eq!(poll.spin_credit_ns, 25_000);
        poll.did = Did::Spin;
        poll.learn(0, 20_000);
        assert_eq!(poll.spin_credit_ns, 10_000);
        let mut never = Poll::new(Poll::create().unwrap(), 0.0);
        never.learn(0, 1_000_000);
        assert_eq!(never.spin_credit_ns, 0);
    }
}
