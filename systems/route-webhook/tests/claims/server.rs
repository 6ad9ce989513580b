//! The webhook as a process on a free port, and a client of it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A running webhook, in whatever language; dropping it ends the process.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

/// One connection that is kept.
pub(crate) struct Client {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

/// A response, as far as the tests look at it.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// The value of a header, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
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
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address
            .unwrap_or_else(|| panic!("it printed {line:?}"))
            .to_owned();
        Self { process, address }
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            address: self.address.clone(),
            stream: None,
        }
    }

    /// Bytes on a connection of their own, and all that comes back until it closes.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn memory_peak(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the process to end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
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
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: webhook\r\n{headers}Content-Length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.stream.get_or_insert_with(|| {
            let stream = TcpStream::connect(&self.address).unwrap();
            let limit = Some(Duration::from_secs(60));
            stream.set_read_timeout(limit).unwrap();
            stream.set_nodelay(true).unwrap();
            BufReader::new(stream)
        });
        let request = [head.as_bytes(), body].concat();
        stream.get_mut().write_all(&request).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "closed: {head:?}");
        }
        let mut response = Response {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            body: String::new(),
            head: head.to_ascii_lowercase(),
        };
        let length = response.header("content-length");
        let length = length.map_or(0, |length| length.parse().unwrap());
        if method != "HEAD" {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            response.body = String::from_utf8(body).unwrap();
        }
        if response.header("connection") == Some("close") {
            self.stream = None;
        }
        response
    }
}
