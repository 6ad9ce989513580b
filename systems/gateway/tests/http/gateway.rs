//! The gateway as a process on free ports, with its files in a folder of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::{Connection, Request, Response, post};

/// The lab's supergraph: `locations` and `reviews`.
const SUPERGRAPH: &str = include_str!("../../../planets/supergraph.graphql");

/// A running gateway; dropping it ends the process.
pub(crate) struct Gateway {
    process: Child,
    log: BufReader<ChildStderr>,
    pub(crate) address: String,
    /// Where health and metrics are.
    pub(crate) health: String,
    pub(crate) folder: TempDir,
}

/// What a gateway is started with.
pub(crate) struct Setup {
    config: String,
    files: Vec<(&'static str, String)>,
    flags: Vec<&'static str>,
    variables: Vec<(&'static str, String)>,
    has_supergraph: bool,
}

impl Setup {
    /// A configuration in which `{locations}` and the like stand for nothing yet.
    pub(crate) fn new(config: &str) -> Self {
        Self {
            config: config.to_owned(),
            files: Vec::new(),
            flags: Vec::new(),
            variables: Vec::new(),
            has_supergraph: true,
        }
    }

    /// A configuration of merged schemas.
    pub(crate) fn merged(config: &str) -> Self {
        Self {
            has_supergraph: false,
            ..Self::new(config)
        }
    }

    /// Another file beside the configuration.
    pub(crate) fn file(mut self, name: &'static str, text: &str) -> Self {
        self.files.push((name, text.to_owned()));
        self
    }

    pub(crate) fn flag(mut self, flag: &'static str) -> Self {
        self.flags.push(flag);
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    fn prepare(&self) -> (TempDir, Command) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("router.yaml"), &self.config).unwrap();
        fs::write(folder.path().join("supergraph.graphql"), SUPERGRAPH).unwrap();
        for (name, text) in &self.files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_gateway"));
        if self.has_supergraph {
            command.args(["--supergraph", "supergraph.graphql"]);
        }
        command
            .args(["--config", "router.yaml"])
            .args(["--listen", "127.0.0.1:0"])
            .args(["--health-listen", "127.0.0.1:0"])
            .args(["--workers", "1"])
            .args(&self.flags)
            .envs(self.variables.iter().map(|(name, value)| (*name, value)))
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        (folder, command)
    }

    /// Starts the gateway and waits until it listens.
    pub(crate) fn start(self) -> Gateway {
        let (folder, mut command) = self.prepare();
        let mut process = command.spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line
        };
        let (first, second) = (line(), line());
        let address = |line: &str| {
            let (_, rest) = line.split_once("http://")?;
            let (address, _) = rest.split_once('/')?;
            Some(address.to_owned())
        };
        let (Some(graphql), Some(health)) = (address(&first), address(&second)) else {
            let mut talk = String::new();
            log.read_to_string(&mut talk).unwrap();
            panic!("it printed {first:?} and said {talk}");
        };
        Gateway {
            process,
            log,
            address: graphql,
            health,
            folder,
        }
    }

    /// Runs the gateway to its end, which must come by itself.
    pub(crate) fn fail(self) -> (ExitStatus, String) {
        let (_folder, mut command) = self.prepare();
        let output = command.output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        (output.status, talk)
    }
}

impl Gateway {
    pub(crate) fn start(config: &str) -> Self {
        Setup::new(config).start()
    }

    /// A gateway of merged schemas.
    pub(crate) fn merged(config: &str) -> Self {
        Setup::merged(config).start()
    }

    /// The answer to a query.
    pub(crate) fn ask(&self, query: &str) -> String {
        self.ask_with(query, serde_json::json!({}))
    }

    /// The answer to a query with variables.
    pub(crate) fn ask_with(&self, query: &str, variables: serde_json::Value) -> String {
        let body = serde_json::json!({"query": query, "variables": variables}).to_string();
        let response = self.send(&post(&body));
        assert_eq!(response.status, 200, "{}", response.text());
        response.text().to_owned()
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    /// One request on a connection of its own.
    pub(crate) fn send(&self, request: &Request<'_>) -> Response {
        self.connect().send(request)
    }

    /// One request to where health and metrics are.
    pub(crate) fn ask_health(&self, target: &str) -> Response {
        Connection::open(&self.health).send(&crate::client::get(target))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Reads the log up to a line that contains this.
    pub(crate) fn wait_for(&mut self, text: &str) -> serde_json::Value {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.log.read_line(&mut line).unwrap();
            assert!(length > 0, "the log ended without `{text}`");
            if line.contains(text) {
                return serde_json::from_str(&line).unwrap();
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

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
