//! Time: the one place of this chore that reads a clock and waits.

use std::time::{Duration, Instant};

/// Now.
#[expect(clippy::disallowed_methods, reason = "the named place of this chore")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Waits until a moment, if it has not come.
#[expect(clippy::disallowed_methods, reason = "a client sends on schedule")]
pub(super) fn wait_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(now()));
}

/// Waits for so long.
pub(super) fn pause(length: Duration) {
    wait_until(now() + length);
}
