//! The only place of the rig that reads the clock, and the only place that pauses.

use std::time::{Duration, Instant};

/// Reads the monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the rig watches real processes; this is the crate's only look at the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits before the next poll of an event without a notification, such as the end of a process that is not a
/// child.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel offers no event for what is waited for here; every caller loops on a condition"
)]
pub(crate) fn pause_before_looking_again() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Polls `is_done` until it holds or `within` is over. Returns true if it held.
pub(crate) fn wait_until(within: Duration, mut is_done: impl FnMut() -> bool) -> bool {
    let deadline = now() + within;
    loop {
        // Polled before the deadline is checked: at least once, and once more after the last pause.
        if is_done() {
            return true;
        }
        if now() >= deadline {
            return false;
        }
        pause_before_looking_again();
    }
}
