//! The webhook as a process on a free port, and a client of it.

use std::ops::{Deref, DerefMut};
use std::process::{Command, ExitStatus};

use test_client::Process;
pub(crate) use test_client::Response;

/// A running webhook, in whatever language; dropping it ends the process.
pub(crate) struct Server(Process);

/// One connection that is kept.
pub(crate) struct Client(test_client::Client);

impl Deref for Server {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl Deref for Client {
    type Target = test_client::Client;

    fn deref(&self) -> &test_client::Client {
        &self.0
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut test_client::Client {
        &mut self.0
    }
}

impl Server {
    /// Starts ours on a free port of loopback, in a folder without `.env`.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_route-webhook"));
        command
            .args(["--host", "127.0.0.1", "--port", "0"])
            .args(flags)
            .env_remove("KUBECONFIG")
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        Self::of(&mut command)
    }

    /// Starts a program that prints where it listens.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self(Process::start(command))
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.0.client())
    }

    /// Bytes on a connection of their own, and all that comes back until it closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut connection = self.connect();
        connection.write(bytes);
        connection.read_to_end()
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn memory_peak(&self) -> u64 {
        let path = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }

    /// Waits for the process to end.
    pub(crate) fn wait(self) -> ExitStatus {
        self.0.wait()
    }
}

impl Client {
    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> Response {
        self.send("POST", path, "", body)
    }

    /// Sends a request; `headers` are lines with their ends.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Response {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: webhook\r\n{headers}Content-Length: {length}\r\n\r\n"
        );
        self.ask(&[head.as_bytes(), body].concat())
    }
}
