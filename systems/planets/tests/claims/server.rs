//! The origin as a process on a free port.

use std::net::TcpStream;
use std::ops::Deref;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use test_client::{Client, Process, Response};

/// A running origin; dropping it ends the process.
pub(crate) struct Server(Process);

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl Server {
    /// Starts it on a free port of loopback.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planets"));
        command.args(["--listen", "127.0.0.1:0"]).args(flags);
        Self(Process::start(&mut command))
    }

    /// A new connection, for bytes that are not HTTP/1.1.
    pub(crate) fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        let limit = Some(Duration::from_secs(30));
        stream.set_read_timeout(limit).unwrap();
        stream
    }

    /// One request, as written, on a connection of its own.
    pub(crate) fn ask(&self, request: &str) -> Response {
        Client::new(&self.address).ask(request.as_bytes())
    }

    /// Waits for the process to end.
    pub(crate) fn wait(self) -> ExitStatus {
        self.0.wait()
    }
}

/// The clock of these tests.
#[expect(
    clippy::disallowed_methods,
    reason = "a claim about a delay needs the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
