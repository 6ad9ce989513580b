//! The single place that reads the clock.

use std::time::Instant;

use jiff::Timestamp;

/// The time of day as Kubernetes writes it: UTC, whole seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of a condition starts here"
)]
pub(crate) fn utc() -> String {
    let now = std::time::SystemTime::now();
    // The clock of a machine stands between the years that a timestamp can hold.
    let now = Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH);
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A point on the clock that never goes back.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the durations of /metrics start here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
