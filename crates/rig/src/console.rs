//! The only place that writes to standard error, and that is the keeper's log.

use std::fmt::Display;

/// Reports an error of a process that has no other way to report it.
#[expect(clippy::print_stderr, reason = "standard error is the keeper's log")]
pub(crate) fn complain(who: &str, what: &dyn Display) {
    eprintln!("{who} {}: {what}", std::process::id());
}
