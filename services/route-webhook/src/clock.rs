//! The single place that reads the clock.

use std::time::Instant;

use jiff::Timestamp;

/// The time of day in the form of Kubernetes: UTC, whole seconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the time of a condition starts here"
)]
pub(crate) fn utc() -> String {
    let now = std::time::SystemTime::now();
    // The clock is within the range of a timestamp.
    let now = Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH);
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The current time on a monotonic clock.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the durations of /metrics start here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
