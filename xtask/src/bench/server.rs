//! The servers of the tasks. Each counts its requests, and runs on the first core.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::is_on_path;
use super::material::Material;
use super::task::{Task, Wire};
use crate::process::Process;

mod caddy;
mod nginx;

use caddy::Caddy;
use nginx::Nginx;

/// The server of a task. Dropping it ends it.
pub(super) trait Server {
    /// The URL that generators of this task load.
    fn url(&self, task: Task) -> String;

    /// Number of requests or messages until now, by the server's own count. Questions for the count are left
    /// out.
    fn requests(&self) -> anyhow::Result<u64>;

    /// Its name in a table.
    fn name(&self) -> anyhow::Result<String>;
}

/// Starts the server of a task.
pub(super) fn start(
    task: Task,
    material: &Material,
    weigh: &Path,
) -> anyhow::Result<Box<dyn Server>> {
    Ok(match task.wire() {
        Wire::Plain | Wire::Tls | Wire::Http2 | Wire::Http2Tls => Box::new(Nginx::start(material)?),
        Wire::Http3 => Box::new(Caddy::start(material)?),
        Wire::Websocket => Box::new(NullServer::start(weigh)?),
    })
}

/// A command for a server on the first core. Generators run on the second core.
fn command(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", "0"]).arg(program);
    command
}

/// Refuses a server that is not installed.
fn verify_installed(program: &str) -> anyhow::Result<()> {
    if !is_on_path(Path::new(program)) {
        bail!("{program} is not installed; `./setup bench` installs it");
    }
    Ok(())
}

/// The body of a response to a plain request.
fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    Ok(body.unwrap_or_default().to_owned())
}

/// `weigh null-server`, which sends each message back. Its processor time belongs to no generator.
struct NullServer {
    _process: Process,
    address: String,
}

impl NullServer {
    fn start(weigh: &Path) -> anyhow::Result<NullServer> {
        let mut command = command(weigh);
        command.args(["null-server", "--websocket"]);
        let (process, address) = Process::listening(command.stderr(Stdio::null()))?;
        Ok(NullServer {
            _process: process,
            address,
        })
    }
}

impl Server for NullServer {
    fn url(&self, task: Task) -> String {
        format!("ws://{}{}", self.address, task.path())
    }

    fn requests(&self) -> anyhow::Result<u64> {
        let seen = get(&self.address, "/seen")?;
        requests_in(&seen).with_context(|| format!("the null server does not count: {seen}"))
    }

    fn name(&self) -> anyhow::Result<String> {
        Ok("`weigh null-server --websocket`".to_owned())
    }
}

/// The requests in the counts of a null server.
fn requests_in(seen: &str) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(seen).ok()?["requests"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_server_counts_whole_messages() {
        let seen = r#"{"connections":2,"open":0,"requests":400,"answered":399}"#;
        assert_eq!(requests_in(seen), Some(400));
        assert_eq!(requests_in("404"), None);
        assert_eq!(requests_in(""), None);
    }
}
