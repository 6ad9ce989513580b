//! Wakes the thread for the next slot to the microsecond. tokio's own timers have a precision of
//! milliseconds.
//!
//! A sleep on a timer descriptor ends a little early, by the [`SpinBudget`]. Other tasks run for the rest of
//! the time.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::Clock;
use crate::spin::SpinBudget;

/// A timer that every task of the thread may set to an earlier time.
pub(crate) struct Timer {
    clock: Clock,
    descriptor: AsyncFd<OwnedFd>,
    /// The time to wake.
    wake_ns: Cell<u64>,
    /// The end of the sleep before that time.
    sleep_until_ns: Cell<u64>,
    spin: Cell<SpinBudget>,
}

impl Timer {
    /// Must be called within a runtime.
    #[expect(
        deprecated,
        reason = "its successor is unsafe for the sake of descriptors that are not owned; ours is"
    )]
    pub(crate) fn new(clock: Clock, spin_share: f64) -> std::io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Timer {
            clock,
            descriptor: AsyncFd::with_interest(descriptor, Interest::READABLE)?,
            wake_ns: Cell::new(0),
            sleep_until_ns: Cell::new(0),
            spin: Cell::new(SpinBudget::new(spin_share)),
        })
    }

    /// Ends the wait at this time, unless it ends earlier.
    pub(super) fn wake_by(&self, wake_ns: u64) {
        if wake_ns < self.wake_ns.get() {
            self.set(wake_ns, wake_ns.saturating_sub(self.spin.get().early_ns()));
        }
    }

    fn set(&self, wake_ns: u64, sleep_until_ns: u64) {
        self.wake_ns.set(wake_ns);
        self.sleep_until_ns.set(sleep_until_ns);
        // 0 would disable the timer.
        let left_ns = sleep_until_ns.saturating_sub(self.clock.now_ns()).max(1);
        let zero = Timespec::default();
        let spec = Itimerspec {
            it_interval: zero,
            it_value: Timespec::try_from(Duration::from_nanos(left_ns))
                .expect("64 bits of nanoseconds are 584 years"),
        };
        rustix::time::timerfd_settime(self.descriptor.get_ref(), TimerfdTimerFlags::empty(), &spec)
            .expect("a timer of ours takes any time from now");
    }

    /// Waits until `wake_ns`, or until the time that [`Timer::wake_by`] has set meanwhile. If it need not be
    /// punctual, it may end as late as the system allows. Returns the intended time.
    pub(crate) async fn wait_until(&self, wake_ns: u64, is_punctual: bool) -> u64 {
        let begin_ns = self.clock.now_ns();
        let early_ns = if is_punctual {
            self.spin.get().early_ns()
        } else {
            0
        };
        self.set(wake_ns, wake_ns.saturating_sub(early_ns));
        self.sleep().await;
        let slept_ns = self.clock.now_ns();
        let sleep_until_ns = self.sleep_until_ns.get();
        let mut spin = self.spin.get();
        // A sleep that was requested too late has no meaningful lateness.
        if sleep_until_ns > begin_ns {
            spin.slept(slept_ns.saturating_sub(sleep_until_ns));
        }
        // Other tasks run in between, and one of them may set an earlier time.
        while self.clock.now_ns() < self.wake_ns.get() {
            tokio::task::yield_now().await;
        }
        let end_ns = self.clock.now_ns();
        spin.passed(end_ns - begin_ns);
        spin.spent(end_ns - slept_ns);
        self.spin.set(spin);
        self.wake_ns.get()
    }

    async fn sleep(&self) {
        loop {
            let Ok(mut ready) = self.descriptor.readable().await else {
                return;
            };
            let mut expirations = [0; 8];
            match rustix::io::read(self.descriptor.get_ref(), &mut expirations) {
                // The time was set again after it had run out.
                Err(_) => ready.clear_ready(),
                // It runs out once. Without this, the next sleep would begin with a read in vain.
                Ok(_) => {
                    ready.clear_ready();
                    return;
                }
            }
        }
    }
}
