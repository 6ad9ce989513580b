//! The webhook as a process on a free port.

use std::process::Command;

use test_client::Process;

/// The program with these flags, on a free port of loopback, in a folder without `.env`.
pub(crate) fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_route-webhook"));
    command
        .args(["--host", "127.0.0.1", "--port", "0"])
        .args(flags)
        .env_remove("KUBECONFIG")
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Starts the service.
pub(crate) fn start(flags: &[&str]) -> Process {
    Process::start(&mut command(flags))
}
