//! The single place that reads the clock.

use std::sync::OnceLock;
use std::time::Instant;

/// The current time on a monotonic clock.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the memory store's time and the durations of decisions start here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since the first call, plus one, because 0 means "never".
pub(crate) fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = now().duration_since(*START.get_or_init(now));
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX - 1) + 1
}
