//! A fixture server for one test, and `weigh load` on it.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::{PATIENCE, Run, fixture, wait_until, weigh_command};

/// A fixture server for one test. Dropping it ends the process.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts a fixture server with these flags, and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it does not listen.
    #[must_use]
    pub fn start(flags: &[&str]) -> Server {
        Server::of(&fixture(), flags)
    }

    /// Starts this program with these flags and `--listen`, and waits until it listens. The first flag may be
    /// a subcommand.
    ///
    /// # Panics
    ///
    /// If it does not listen.
    #[must_use]
    pub fn of(program: &Path, flags: &[&str]) -> Server {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(program)
            .args(flags)
            .args(["--listen", &address])
            // A null server prints its address there, but the test has chosen it.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the fixture starts");
        wait_until("the fixture listens", PATIENCE, || {
            std::net::TcpStream::connect(&address).is_ok()
        });
        Server { child, address }
    }

    /// Host and port of the server.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the JSON response to a `GET` of this path.
    ///
    /// # Panics
    ///
    /// If the response is not JSON.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        let mut stream = std::net::TcpStream::connect(&self.address).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let half = std::net::Shutdown::Write;
        stream.shutdown(half).expect("it is connected");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// The process of the server.
    #[must_use]
    pub fn process(&self) -> &Child {
        &self.child
    }

    /// Starts `weigh load --format json` on it, and leaves it running.
    ///
    /// # Panics
    ///
    /// If `weigh` does not start.
    #[must_use]
    pub fn start_load(&self, flags: &[&str]) -> Child {
        weigh_command()
            .arg("load")
            .arg(format!("http://{}/graphql", self.address))
            .args(flags)
            .args(["--format", "json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("weigh starts")
    }

    /// Runs `weigh load` on it.
    ///
    /// # Panics
    ///
    /// If `weigh` does not start.
    #[must_use]
    pub fn load(&self, flags: &[&str]) -> Run {
        let output = weigh_command()
            .arg("load")
            .arg(format!("http://{}/graphql", self.address))
            .args(flags)
            .output()
            .expect("weigh starts");
        Run::of(output)
    }

    /// Runs `weigh load` on it, and returns the figures.
    ///
    /// # Panics
    ///
    /// If the output is not JSON.
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
        // The child may have ended by itself. In both cases it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
