//! The one place where time is read.

use std::time::{Duration, Instant};

/// Nanoseconds since the load was prepared: an integer compares and subtracts faster than an
/// [`Instant`], and lasts for 584 years.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that shows 0 now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this crate measures; the clock is read here and in `now_ns` only"
    )]
    pub(crate) fn start() -> Clock {
        Clock {
            origin: Instant::now(),
        }
    }

    /// Nanoseconds since the start, by CLOCK_MONOTONIC.
    #[inline]
    pub(crate) fn now_ns(self) -> u64 {
        to_ns(self.origin.elapsed())
    }
}

impl Clock {
    /// What it shows at a moment; 0 at any before it began.
    pub(crate) fn at(self, moment: Instant) -> u64 {
        to_ns(moment.saturating_duration_since(self.origin))
    }

    /// The moment at which it shows so many nanoseconds.
    pub(crate) fn moment(self, at_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(at_ns)
    }
}

/// A duration in whole nanoseconds; more than 584 years count as so many.
pub(crate) fn to_ns(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

/// Processor time of the calling thread so far, user and system, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    to_ns(Duration::try_from(time).expect("a thread's time is not negative"))
}
