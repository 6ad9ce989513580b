//! The catalog as a process on a free port, and a client of it.

use std::ops::{Deref, DerefMut};
use std::process::{Command, ExitStatus};

use serde_json::{Value, json};
use test_client::Process;
pub(crate) use test_client::Response;

use crate::databases::Database;

/// Rows of most tests: enough for pages, few enough to start at once.
pub(crate) const PRODUCTS: usize = 300;

/// A running catalog; dropping it ends the process.
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

/// The program with a database of few rows.
pub(crate) fn command(database: &Database, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catalog"));
    command
        .args(["--listen", "127.0.0.1:0", "--database-url", &database.url])
        .args(["--seed-products", &PRODUCTS.to_string()])
        // A busy machine takes its time.
        .args(["--seed-line-items", "900", "--statement-timeout", "60s"])
        .args(["--connect-timeout", "120s"])
        .args(flags);
    command
}

impl Server {
    /// Starts it on a free port of loopback.
    pub(crate) fn start(database: &Database, flags: &[&str]) -> Self {
        Self(Process::start(&mut command(database, flags)))
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.0.client())
    }

    /// Waits for the process to end.
    pub(crate) fn wait(self) -> ExitStatus {
        self.0.wait()
    }
}

impl Client {
    /// Sends a body of JSON; `headers` are lines with their ends.
    pub(crate) fn post(&mut self, path: &str, headers: &str, body: &str) -> Response {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: catalog\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.ask(request.as_bytes())
    }

    /// Executes GraphQL.
    pub(crate) fn graphql(&mut self, query: &str, variables: &Value) -> Value {
        let body = json!({"query": query, "variables": variables}).to_string();
        self.post("/v1/graphql", "", &body).json()
    }

    /// The value of a series in /metrics.
    pub(crate) fn metric(&mut self, series: &str) -> u64 {
        let text = self.get("/metrics").body;
        let value = text.lines().find_map(|line| line.strip_prefix(series));
        let value = value.unwrap_or_else(|| panic!("no {series} in {text}"));
        value.trim().parse().unwrap()
    }
}
