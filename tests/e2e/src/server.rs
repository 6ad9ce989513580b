//! A fixture server of a test's own, and `weigh load` on it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{PATIENCE, Run, fixture, wait_until, weigh};

/// A fixture server of a test's own, ended with it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts one with these flags, and waits until it listens.
    ///
    /// # Panics
    ///
    /// When it does not.
    #[must_use]
    pub fn start(flags: &[&str]) -> Server {
        Server::of(&fixture(), flags)
    }

    /// Starts this program with `--listen` and these flags, and waits until it listens.
    ///
    /// # Panics
    ///
    /// When it does not.
    #[must_use]
    pub fn of(program: &Path, flags: &[&str]) -> Server {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(program)
            .args(["--listen", &address])
            .args(flags)
            .stderr(Stdio::null())
            .spawn()
            .expect("the fixture starts");
        wait_until("the fixture listens", PATIENCE, || {
            std::net::TcpStream::connect(&address).is_ok()
        });
        Server { child, address }
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Runs `weigh load` on it.
    ///
    /// # Panics
    ///
    /// When `weigh` does not start.
    #[must_use]
    pub fn load(&self, flags: &[&str]) -> Run {
        let output = Command::new(weigh())
            .arg("load")
            .arg(format!("http://{}/graphql", self.address))
            .args(flags)
            .output()
            .expect("weigh starts");
        Run::of(output)
    }

    /// Runs `weigh load` on it, and gives the figures.
    ///
    /// # Panics
    ///
    /// When the answer is not JSON.
    #[must_use]
    pub fn json(&self, flags: &[&str]) -> Value {
        let flags: Vec<&str> = flags.iter().copied().chain(["--format", "json"]).collect();
        let run = self.load(&flags);
        serde_json::from_str(&run.answer())
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The child may have ended by itself; either way it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
