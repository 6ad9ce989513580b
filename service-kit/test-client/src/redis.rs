//! A Redis and a sentinel for tests: processes on free ports with temporary folders.

use std::fs;
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
    flags: Vec<String>,
}

/// A running sentinel. Dropping it ends the process.
pub struct Sentinel {
    process: Child,
    port: u16,
    /// The sentinel writes its configuration there.
    _folder: TempDir,
}

impl Redis {
    /// Starts an empty Redis on a free port.
    ///
    /// # Panics
    /// Panics if Redis does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts an empty Redis with more flags. `{port}` in a flag is its port.
    ///
    /// # Panics
    /// Panics if Redis does not start.
    #[must_use]
    pub fn start_with(flags: &[&str]) -> Self {
        let port = free_port();
        let flags = flags.iter();
        let flags = flags.map(|flag| flag.replace("{port}", &port.to_string()));
        let mut redis = Self {
            process: None,
            folder: tempfile::tempdir().expect("a folder"),
            port,
            flags: flags.collect(),
        };
        redis.resume();
        redis
    }

    /// The URL of this Redis, without a login and without TLS.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port of this Redis.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends the process like a crash.
    ///
    /// # Panics
    /// Panics if the process cannot be ended.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            end(&mut process);
        }
    }

    /// Stops the process without an end. Its connections stay open, and it answers no command.
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
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &self.port.to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args([
                "--dir",
                self.folder.path().to_str().expect("a path in UTF-8"),
            ])
            // Last, because the last value of a flag counts.
            .args(&self.flags);
        self.process = Some(spawn(&mut command, "Ready to accept connections"));
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Sentinel {
    /// Starts a sentinel on a free port of loopback. `{port}` in a line of its configuration is its port.
    /// Without a line for the port, it has no TLS.
    ///
    /// # Panics
    /// Panics if it does not start.
    #[must_use]
    pub fn start(lines: &[String]) -> Self {
        let port = free_port();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("sentinel.conf");
        let lines = lines.join("\n").replace("{port}", &port.to_string());
        let own = if lines.contains("tls-port") {
            String::new()
        } else {
            format!("port {port}\n")
        };
        let text = format!(
            "{own}bind 127.0.0.1\ndaemonize no\ndir {}\n{lines}\n",
            folder.path().display()
        );
        fs::write(&file, text).expect("its configuration");
        let mut command = Command::new("redis-server");
        command.arg(&file).arg("--sentinel");
        Self {
            process: spawn(&mut command, "+monitor master"),
            port,
            _folder: folder,
        }
    }

    /// The port of this sentinel.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("its address").port()
}

/// Starts a process and waits for this text in its log.
fn spawn(command: &mut Command, text: &str) -> Child {
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is needed; `./setup test` installs it");
    let mut log = BufReader::new(process.stdout.take().expect("it is piped"));
    let (mut line, mut lines) = (String::new(), String::new());
    while !line.contains(text) {
        line.clear();
        let length = log.read_line(&mut line).expect("its log");
        assert_ne!(length, 0, "redis-server ended: {lines}");
        lines.push_str(&line);
    }
    // Later output must not fill the pipe.
    thread::spawn(move || log.read_to_string(&mut String::new()));
    process
}

fn end(process: &mut Child) {
    process.kill().expect("it is ours");
    process.wait().expect("it is ours");
}
