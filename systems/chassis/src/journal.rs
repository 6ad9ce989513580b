//! What is said: the address on standard output, one JSON object a line on standard error.
//!
//! Absent on purpose: a line for each request; services count them.

use std::io::{self, Write as _};

use serde_json::Value;

/// One line on standard output, for the person or the program that started the server.
pub fn announce(line: &str) {
    // Serving goes on when nobody reads standard output.
    let _ = writeln!(io::stdout(), "{line}");
}

/// One line of the log: `{"event": …}` with these fields.
pub fn write(event: &str, fields: &[(&str, Value)]) {
    let mut line = serde_json::Map::new();
    line.insert("event".to_owned(), event.into());
    for (name, value) in fields {
        line.insert((*name).to_owned(), value.clone());
    }
    // Nobody is left to be told when standard error is closed.
    let _ = writeln!(io::stderr(), "{}", Value::Object(line));
}

/// Why the program leaves, for a person.
pub fn complain(problem: &dyn std::error::Error) {
    let _ = writeln!(io::stderr(), "error: {problem}");
}
