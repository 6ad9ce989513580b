//! The single place in this crate that reads a clock.

use std::time::Instant;

/// The current time on a monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
