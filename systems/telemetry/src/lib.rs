//! What every system says about itself: its log and its metrics, each in one format.
//!
//! A system logs with the macros of `tracing` (or of `log`, whose records arrive here, too) and
//! counts in cells of its own; this crate only writes both down. Absent on purpose: spans, and
//! exporters that push.

pub mod log;
pub mod metrics;

use std::io::{self, Write as _};

/// One line on standard output, for the person or the program that started a service.
pub fn announce(line: &str) {
    // Serving goes on when standard output is closed.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Why a program leaves, for a person.
pub fn complain(problem: &dyn std::error::Error) {
    // There is no other place to say it when standard error is closed.
    let _ = writeln!(io::stderr(), "error: {problem}");
}
