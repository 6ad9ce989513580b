//! The single place in this crate that reads clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The current time on a monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The current time in nanoseconds since 1970. It overflows in 2554.
#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    whole_ns(since.unwrap_or_default())
}

/// A time in nanoseconds. It overflows after 584 years (2^64 ns).
pub(crate) fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
