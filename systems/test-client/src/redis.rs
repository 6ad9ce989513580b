//! A Redis for tests: a process on a free port with a temporary folder.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running Redis that writes every change to disk before it responds. Dropping it ends the process.
pub struct Redis {
    process: Option<Child>,
    folder: TempDir,
    port: u16,
}

impl Redis {
    /// Starts an empty Redis on a free port.
    ///
    /// # Panics
    /// Panics if Redis does not start.
    #[must_use]
    pub fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let mut redis = Self {
            process: None,
            folder: tempfile::tempdir().expect("a folder"),
            port,
        };
        redis.resume();
        redis
    }

    /// The URL of this Redis.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends the process like a crash.
    ///
    /// # Panics
    /// Panics if the process cannot be ended.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is ours");
            process.wait().expect("it is ours");
        }
    }

    /// Stops the process without an end. Its connections stay open, and nothing is answered.
    ///
    /// # Panics
    /// Panics if the process does not run.
    pub fn freeze(&self) {
        let process = self.process.as_ref().expect("it runs");
        let pid = Pid::from_child(process);
        kill_process(pid, Signal::STOP).expect("it is ours");
    }

    /// Starts Redis again on the same port and with the same files. Returns when it accepts connections.
    ///
    /// # Panics
    /// Panics if Redis does not start.
    pub fn resume(&mut self) {
        let mut process = Command::new("redis-server")
            .args(["--port", &self.port.to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args([
                "--dir",
                self.folder.path().to_str().expect("a path in UTF-8"),
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is needed; `./setup test` installs it");
        let mut log = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("Ready to accept connections") {
            line.clear();
            assert_ne!(
                log.read_line(&mut line).expect("its log"),
                0,
                "redis-server ended"
            );
        }
        // Later output must not fill the pipe.
        thread::spawn(move || log.read_to_string(&mut String::new()));
        self.process = Some(process);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
