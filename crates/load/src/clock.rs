//! The only place that reads the time.

use std::time::{Duration, Instant};

/// A clock in nanoseconds since the load was prepared. An integer compares and subtracts faster than an
/// [`Instant`], and lasts for 584 years.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// Returns a clock that shows 0 now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this crate measures; the clock is read here and in `now_ns` only"
    )]
    pub(crate) fn start() -> Clock {
        Clock {
            origin: Instant::now(),
        }
    }

    /// Returns nanoseconds since the start, by CLOCK_MONOTONIC.
    #[inline]
    pub(crate) fn now_ns(self) -> u64 {
        to_ns(self.origin.elapsed())
    }
}

impl Clock {
    /// Returns its time at a moment. 0 for any moment before the start.
    pub(crate) fn at(self, moment: Instant) -> u64 {
        to_ns(moment.saturating_duration_since(self.origin))
    }

    /// Returns the time since 1970 at its start, in nanoseconds, by CLOCK_REALTIME now.
    pub(crate) fn epoch_ns(self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let since_1970 = Duration::try_from(now).map_or(0, to_ns);
        since_1970.saturating_sub(self.now_ns())
    }

    /// Returns the moment at which it shows this number of nanoseconds.
    pub(crate) fn moment(self, at_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(at_ns)
    }
}

/// Returns a duration in whole nanoseconds, at most 584 years.
pub(crate) fn to_ns(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

/// Returns the processor time of the calling thread, user and system, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    to_ns(Duration::try_from(time).expect("a thread's time is not negative"))
}
