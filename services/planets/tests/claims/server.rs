//! The origin as a process on a free port.

use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use test_client::Process;

/// Starts the origin on a free port of loopback.
pub(crate) fn start(flags: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planets"));
    command.args(["--listen", "127.0.0.1:0"]).args(flags);
    Process::start(&mut command)
}

/// A new connection, for bytes that are not HTTP/1.1.
pub(crate) fn stream(server: &Process) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    let limit = Some(Duration::from_secs(30));
    stream.set_read_timeout(limit).unwrap();
    stream
}
