//! Time: the only place of the tasks that reads a clock and waits.

use std::time::{Duration, Instant};

/// Reads the monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the named place of the chores")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until the given time, if it is in the future.
#[expect(clippy::disallowed_methods, reason = "a client sends on schedule")]
pub(crate) fn wait_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(now()));
}

/// Waits for `length`.
pub(crate) fn pause(length: Duration) {
    wait_until(now() + length);
}
