//! The single place that reads the clock.

use std::time::Instant;

/// The current time on a monotonic clock.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "durations of requests are measured here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
