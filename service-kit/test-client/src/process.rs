//! A service as a process on a free port.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::TestClient;
use crate::connection::{Connection, Request, Response};

/// The longest time between two lines of a log that a test waits for.
const SILENCE_MOST: Duration = Duration::from_secs(60);

const NEVER_LOCKED: &str = "no thread locks it, so none can panic with it";

/// A running service. Dropping it ends the process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Log lines that no test has read yet. The mutex is never locked. It only allows the threads of a test
    /// to share the process.
    log: Mutex<Receiver<String>>,
    /// The listening address. Empty if no line with an address was read.
    pub address: String,
}

impl Process {
    /// Starts a program that first prints `listening on http://ADDRESS`. If it prints another line, its log
    /// is shown.
    ///
    /// # Panics
    /// Panics if it cannot be started or prints another line.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let (process, _) = Self::start_with_addresses::<1>(command);
        process
    }

    /// Starts a program. Its first `N` lines must each contain one `http://ADDRESS`. The first is the
    /// program's own address. With `N` of 0, no line is read.
    ///
    /// # Panics
    /// Panics if the program cannot be started, or a line has no address.
    #[must_use]
    pub fn start_with_addresses<const N: usize>(command: &mut Command) -> (Self, [String; N]) {
        let spawned = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = lines_of(child.stderr.take().expect("it is piped"));
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let addresses = [(); N].map(|()| {
            let mut line = String::new();
            // An unreadable line has no address, which is reported below with the log.
            let _ = output.read_line(&mut line);
            address_in(&line).unwrap_or_else(|| {
                // First, because the log collected below ends only with the process.
                let _ = child.kill();
                let log: String = log.iter().collect();
                panic!("{command:?} printed {line:?} and logged {log}")
            })
        });
        let process = Self {
            child,
            log: Mutex::new(log),
            address: addresses.first().cloned().unwrap_or_default(),
        };
        (process, addresses)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Peak memory of the process, in bytes.
    ///
    /// # Panics
    /// Panics if the system does not report it.
    #[must_use]
    pub fn memory_peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("the process runs");
        // The high-water mark, because the peak is over when a test reads it.
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes = kilobytes.and_then(|number| number.parse::<u64>().ok());
        kilobytes.expect("the peak is in kilobytes") * 1024
    }

    /// Creates a client of the service.
    #[must_use]
    pub fn client(&self) -> TestClient {
        TestClient::new(&self.address)
    }

    /// Opens a new connection to the service.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    /// Opens a new connection from one of loopback's addresses, such as 127.0.0.2.
    #[must_use]
    pub fn connect_from(&self, client: Ipv4Addr) -> Connection {
        Connection::open_from(client, &self.address)
    }

    /// Sends one request on a new connection.
    pub fn send(&self, request: &Request<'_>) -> Response {
        self.connect().send(request)
    }

    /// Sends bytes on a new connection. Returns all received bytes until the connection closes.
    #[must_use]
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut connection = self.connect();
        connection.write(bytes);
        connection.read_to_end()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// Panics if the process has already ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process runs");
    }

    /// Reads the log up to a line that contains this text, and returns that line.
    ///
    /// # Panics
    /// Panics if the log ends or is silent for a minute before, or if the line is not JSON.
    pub fn wait_for(&mut self, text: &str) -> Value {
        let log = self.log.get_mut().expect(NEVER_LOCKED);
        let next = || log.recv_timeout(SILENCE_MOST).ok();
        let line = std::iter::from_fn(next).find(|line| line.contains(text));
        let line = line.unwrap_or_else(|| panic!("the log ended or stopped without `{text}`"));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Waits for the process to end.
    ///
    /// # Panics
    /// Panics if the system does not report its status.
    #[must_use]
    pub fn wait(self) -> ExitStatus {
        self.wait_with_log().0
    }

    /// Waits for the process to end. Returns its status and the unread lines of its log.
    ///
    /// # Panics
    /// Panics if the system does not report the status.
    #[must_use]
    pub fn wait_with_log(mut self) -> (ExitStatus, String) {
        let log = self.log.get_mut().expect(NEVER_LOCKED);
        // The log ends with the process, so this also waits for the process.
        let rest = log.iter().collect();
        (self.child.wait().expect("the process is a child"), rest)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a log as they arrive. A thread reads them, because a service blocks if its log is full.
fn lines_of(log: ChildStderr) -> Receiver<String> {
    let (line, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut log = BufReader::new(log);
        let mut bytes = Vec::new();
        while log
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|length| length > 0)
        {
            // The pipe is emptied even if the test does not read the lines.
            let _ = line.send(String::from_utf8_lossy(&bytes).into_owned());
            bytes.clear();
        }
    });
    lines
}

fn address_in(line: &str) -> Option<String> {
    let (_, address) = line.trim().split_once("://")?;
    let address = address.split('/').next()?;
    (!address.is_empty()).then(|| address.to_owned())
}
