//! The two programs as processes on free ports.

use std::io::{BufRead, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::http::{self, Connection, Response};

/// The programs under test.
pub(crate) const PROGRAMS: [&str; 2] = [
    env!("CARGO_BIN_EXE_graphql-server-juniper-ntex"),
    env!("CARGO_BIN_EXE_graphql-server-async-graphql-actix-web"),
];

/// A running server; dropping it ends the process.
pub(crate) struct Server {
    process: Child,
    log: BufReader<ChildStderr>,
    address: String,
}

impl Server {
    /// Starts a program on a free port of loopback, with one worker.
    pub(crate) fn start(program: &str, flags: &[&str]) -> Self {
        let mut process = Command::new(program)
            .envs([("LISTEN", "127.0.0.1:0"), ("WORKERS", "1")])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{program} printed {line:?}"));
        Self {
            address: address.to_owned(),
            process,
            log,
        }
    }

    /// Both programs, started alike.
    pub(crate) fn both(flags: &[&str]) -> [Self; 2] {
        PROGRAMS.map(|program| Self::start(program, flags))
    }

    /// The address with its port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// One request on a connection of its own.
    pub(crate) fn send(&self, request: &http::Request<'_>) -> Response {
        self.connect().send(request)
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Reads the log up to the line of an event.
    pub(crate) fn wait_for(&mut self, event: &str) -> serde_json::Value {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.log.read_line(&mut line).unwrap();
            assert!(length > 0, "the log ended without `{event}`");
            let read: serde_json::Value = serde_json::from_str(&line).unwrap();
            if read["message"] == event {
                return read;
            }
        }
    }

    /// Waits for the process to end; gives its status and the rest of its log.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        (self.process.wait().unwrap(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends one request to both and claims that they answer with the same status, media type and
/// bytes.
pub(crate) fn same_answer(servers: &[Server; 2], request: &http::Request<'_>) -> Response {
    let [one, other] = servers.each_ref().map(|server| server.send(request));
    assert_eq!(http::plain(&one), http::plain(&other), "to {request:?}");
    one
}
