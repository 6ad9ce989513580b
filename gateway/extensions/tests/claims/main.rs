//! Tests of each extension point from outside. A test reads a configuration, sends messages, and checks the
//! messages that arrive at a server.

#![expect(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a failed unwrap is a failed claim, and a table of cases is one claim however long"
)]

mod coprocessor_calls;
mod coprocessor_stages;
mod coprocessors;
mod fetches;
mod header_rules;
mod script_files;
mod script_properties;
mod scripts;
mod stand;
mod token_keys;
mod tokens;
