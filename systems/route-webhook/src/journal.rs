//! What is said: the address on standard output, one JSON object a line on standard error.
//!
//! Absent on purpose: a line for each request; `/metrics` counts them. No body is ever written.

use std::io::{self, Write as _};

use clap::ValueEnum;
use serde_json::Value;

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// Every refused request.
    Debug,
    /// Start and stop.
    Info,
    /// What went wrong and may go right the next time.
    Warning,
    /// What stops the service.
    Error,
}

/// The log, from a level on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journal {
    pub(crate) least: Level,
}

impl Journal {
    /// One line of the log.
    pub(crate) fn write(self, level: Level, event: &str, fields: &[(&str, Value)]) {
        if level < self.least {
            return;
        }
        let mut line = serde_json::Map::new();
        let name = level.to_possible_value();
        let name = name.as_ref().map_or("", |value| value.get_name());
        line.insert("level".to_owned(), name.into());
        line.insert("event".to_owned(), event.into());
        for (name, value) in fields {
            line.insert((*name).to_owned(), value.clone());
        }
        // Nobody is left to be told when standard error is closed.
        let _ = writeln!(io::stderr(), "{}", Value::Object(line));
    }
}
