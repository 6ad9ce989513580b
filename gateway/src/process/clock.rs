//! The only place where the gateway reads a clock.

use std::time::Instant;

/// The current time of the monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
