//! The single place that reads the clocks.

use std::time::{Instant, SystemTime};

use crate::moment::Moment;

/// The current time on a monotonic clock.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "deadlines and durations of statements start here"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time of day, for the timestamps of rows.
#[expect(
    clippy::disallowed_methods,
    reason = "the times of creation and change of rows come from here"
)]
pub(crate) fn time_of_day() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A clock before 1970 is broken. Its rows then get the earliest time.
    let us = since.map_or(0, |since| since.as_micros());
    Moment::from_us(i64::try_from(us).unwrap_or(i64::MAX)).unwrap_or(Moment::EPOCH)
}
