//! The gateway as a process on free ports, with its files in a temporary folder.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use tempfile::TempDir;
use test_client::Process;

use crate::client::{Connection, Response, get, post};

/// The lab's supergraph: `locations` and `reviews`.
pub(crate) const SUPERGRAPH: &str = include_str!("../../../services/planets/supergraph.graphql");

/// A running gateway. Dropping it ends the process.
pub(crate) struct Gateway {
    process: Process,
    /// Address of health and metrics.
    pub(crate) health: String,
    pub(crate) folder: TempDir,
}

/// Settings of a gateway process.
pub(crate) struct Setup {
    config: String,
    files: Vec<(&'static str, String)>,
    flags: Vec<&'static str>,
    variables: Vec<(&'static str, String)>,
    has_supergraph: bool,
    descriptors: Option<u32>,
    workers: &'static str,
}

impl Setup {
    /// A configuration over the lab's supergraph.
    pub(crate) fn new(config: &str) -> Self {
        Self {
            config: config.to_owned(),
            files: Vec::new(),
            flags: Vec::new(),
            variables: Vec::new(),
            has_supergraph: true,
            descriptors: None,
            workers: "1",
        }
    }

    /// A configuration of merged schemas.
    pub(crate) fn merged(config: &str) -> Self {
        Self {
            has_supergraph: false,
            ..Self::new(config)
        }
    }

    /// Adds a file in the folder of the configuration.
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

    /// Limits the number of file descriptors of the process.
    pub(crate) fn descriptors(mut self, count: u32) -> Self {
        self.descriptors = Some(count);
        self
    }

    pub(crate) fn workers(mut self, count: &'static str) -> Self {
        self.workers = count;
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
        let mut command = Command::new("sh");
        let limit = self.descriptors.map(|count| format!("ulimit -n {count};"));
        command
            .arg("-c")
            .arg(limit.unwrap_or_default() + r#"exec "$@""#)
            .args(["sh", env!("CARGO_BIN_EXE_gateway")]);
        if self.has_supergraph {
            command.args(["--supergraph", "supergraph.graphql"]);
        }
        command
            .args(["--config", "router.yaml"])
            .args(["--listen", "127.0.0.1:0"])
            .args(["--health-listen", "127.0.0.1:0"])
            .args(["--workers", self.workers])
            .args(&self.flags)
            .envs(self.variables.iter().map(|(name, value)| (*name, value)))
            .current_dir(folder.path());
        (folder, command)
    }

    /// Starts the gateway and waits until it listens.
    pub(crate) fn start(self) -> Gateway {
        let (folder, mut command) = self.prepare();
        let (process, [_, health]) = Process::start_with_addresses(&mut command);
        Gateway {
            process,
            health,
            folder,
        }
    }

    /// Runs a gateway that ends by itself. Returns its status and its log.
    pub(crate) fn fail(self) -> (ExitStatus, String) {
        let (_folder, mut command) = self.prepare();
        let output = command.output().unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        (output.status, log)
    }
}

impl Gateway {
    pub(crate) fn start(config: &str) -> Self {
        Setup::new(config).start()
    }

    /// Starts a gateway of merged schemas.
    pub(crate) fn merged(config: &str) -> Self {
        Setup::merged(config).start()
    }

    /// The response to a query.
    pub(crate) fn ask(&self, query: &str) -> String {
        self.ask_with(query, serde_json::json!({}))
    }

    /// The response to a query with variables.
    pub(crate) fn ask_with(&self, query: &str, variables: serde_json::Value) -> String {
        let body = serde_json::json!({"query": query, "variables": variables}).to_string();
        let response = self.send(&post(&body));
        assert_eq!(response.status, 200, "{}", response.text());
        response.text().to_owned()
    }

    /// Sends one request to the address of health and metrics.
    pub(crate) fn ask_health(&self, target: &str) -> Response {
        Connection::open(&self.health).send(&get(target))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits for the process to end. Returns its status and the rest of its log.
    pub(crate) fn wait(self) -> (ExitStatus, String) {
        self.process.wait_with_log()
    }
}

impl Deref for Gateway {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Gateway {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}
