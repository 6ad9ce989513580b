//! A service as a process on a free port.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::connection::Connection;

/// A running service; dropping it ends the process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl Process {
    /// Starts a program that prints `listening on http://ADDRESS` first. Its log is read, so that
    /// it cannot block, and shown when the program prints something else.
    ///
    /// # Panics
    /// When it cannot be started or prints something else.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let spawned = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut log = child.stderr.take().expect("it is piped");
        let log = thread::spawn(move || {
            let mut text = String::new();
            let _ = log.read_to_string(&mut text);
            text
        });
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let _ = output.read_line(&mut line);
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let _ = child.kill();
            let log = log.join().unwrap_or_default();
            panic!("{command:?} printed {line:?} and logged {log}");
        };
        Self {
            address: address.to_owned(),
            child,
        }
    }

    /// The number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A client of it.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.address)
    }

    /// A new connection to it.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process has ended already.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the process runs");
    }

    /// Waits for the process to end.
    ///
    /// # Panics
    /// When the system does not tell.
    #[must_use]
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("the process is a child")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
