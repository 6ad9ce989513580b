//! The single place in this crate that reads a clock.

use std::time::Instant;

/// Now, on the clock that never goes back.
#[expect(
    clippy::disallowed_methods,
    reason = "the named place for the whole crate"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
