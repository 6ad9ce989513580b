//! The single place that reads the clock.

use std::time::Instant;

/// A point on the clock that never goes back.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "durations of requests are measured here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
