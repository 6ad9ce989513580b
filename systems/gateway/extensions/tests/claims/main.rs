//! What each extension point does, seen from outside: a configuration goes in,
//! messages pass, and a server looks at what left.

#![expect(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a failed unwrap is a failed claim, and a table of cases is one claim however long"
)]

mod coprocessor_stages;
mod coprocessors;
mod fetches;
mod header_rules;
mod script_properties;
mod scripts;
mod stand;
mod token_keys;
mod tokens;
