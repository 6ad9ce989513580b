//! The catalog as a process on a free port.

use std::process::Command;

use test_client::Process;

use crate::databases::Database;

/// Rows of most tests: enough for pages, few enough to start at once.
pub(crate) const PRODUCTS: usize = 300;

/// The program with a database of few rows.
pub(crate) fn command(database: &Database, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catalog"));
    command
        .args(["--listen", "127.0.0.1:0", "--database-url", &database.url])
        // The name in the requests of tests.
        .args(["--allowed-hosts", "test"])
        .args(["--seed-products", &PRODUCTS.to_string()])
        // A busy machine takes its time.
        .args(["--seed-line-items", "900", "--statement-timeout", "60s"])
        .args(["--connect-timeout", "120s"])
        .args(flags);
    command
}

/// Starts it on a free port of loopback.
pub(crate) fn start(database: &Database, flags: &[&str]) -> Process {
    Process::start(&mut command(database, flags))
}
