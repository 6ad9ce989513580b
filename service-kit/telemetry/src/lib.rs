//! The log and the metrics of every system, each in one format.
//!
//! A system logs with the macros of `tracing`, or of `log`, which is forwarded. It counts in its own cells.
//! This crate only writes them out. Absent on purpose: spans, and exporters that push.

pub mod log;
pub mod metrics;

use std::io::{self, Write as _};

/// Prints one line on standard output, for the person or program that started the service.
pub fn announce(line: &str) {
    // The service continues if standard output is closed.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Prints the reason why a program ends.
pub fn complain(problem: &dyn std::error::Error) {
    // If standard error is closed, there is nowhere left to report it.
    let _ = writeln!(io::stderr(), "error: {problem}");
}
