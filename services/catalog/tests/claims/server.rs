//! The catalog as a process on a free port.

use std::ops::Deref;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use tempfile::TempDir;
use test_client::Process;

use crate::databases::Database;

/// Number of rows in most tests: enough for pages, and few enough for a fast start.
pub(crate) const PRODUCTS: usize = 300;

/// The program with a database of few rows.
pub(crate) fn command(database: &Database, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catalog"));
    command
        .args(["--listen", "127.0.0.1:0", "--database-url", &database.url])
        // The host name in the tests' requests.
        .args(["--allowed-hosts", "test"])
        .args(["--seed-products", &PRODUCTS.to_string()])
        // A margin for busy machines.
        .args(["--seed-line-items", "900", "--statement-timeout", "60s"])
        .args(["--connect-timeout", "120s"])
        .args(flags);
    command
}

/// A running catalog. The SQLite file stays until the catalog ends, because a worker may open the file after
/// the first response.
pub(crate) struct Server {
    // Declared before the folder, so that the process ends before the file is removed.
    process: Process,
    _folder: Option<Arc<TempDir>>,
}

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl Server {
    /// Waits like [`Process::wait`].
    pub(crate) fn wait(self) -> ExitStatus {
        self.process.wait()
    }
}

/// Starts the catalog on a free port of loopback.
pub(crate) fn start(database: &Database, flags: &[&str]) -> Server {
    Server {
        process: Process::start(&mut command(database, flags)),
        _folder: database.folder.clone(),
    }
}
