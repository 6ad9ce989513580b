//! The files that servers and generators share: bodies, a schema and a certificate, in a temporary folder.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use super::task::{EVENTS, Task};

/// The body of a small response.
pub(super) const SMALL: &str = r#"{"data":{"hello":"world"}}"#;

/// The schema of the calls of gRPC.
const SCHEMA: &str = "syntax = \"proto3\";\npackage bench;\nmessage Empty {}\n\
                      service Bench { rpc Get(Empty) returns (Empty); }\n";

/// Length of a large body in bytes.
const LARGE_BYTES: usize = 8192;

/// A folder with the files. Dropping it removes them.
pub(super) struct Material {
    folder: tempfile::TempDir,
}

impl Material {
    pub(super) fn new() -> anyhow::Result<Material> {
        let folder = tempfile::tempdir().context("a temporary folder")?;
        let own = |name: &str| folder.path().join(name);
        let frame = r#"{"data":{"fill":""}}"#;
        let large = frame.replace(
            "\"\"",
            &format!("\"{}\"", "x".repeat(LARGE_BYTES - frame.len())),
        );
        fs::create_dir(own("www"))?;
        fs::write(own("www/large.json"), large)?;
        fs::write(own("www/stream"), events())?;
        // An empty message: the byte without compression, and the length 0.
        fs::write(own("www/message"), [0; 5])?;
        fs::write(own("small.json"), SMALL)?;
        fs::write(own("bench.proto"), SCHEMA)?;
        certify(folder.path())?;
        Ok(Material { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file with the expected body of a task.
    pub(super) fn right_body(&self, task: Task) -> PathBuf {
        let name = match task {
            Task::Large => "www/large.json",
            Task::Sse => "www/stream",
            _ => "small.json",
        };
        self.folder().join(name)
    }

    /// The file with the schema of the calls of gRPC.
    pub(super) fn schema(&self) -> PathBuf {
        self.folder().join("bench.proto")
    }
}

/// A stream of server-sent events, as its server sends it at once.
fn events() -> String {
    let event = |number| format!("data: {{\"n\":{number},\"text\":\"token\"}}\n\n");
    (1..=EVENTS).map(event).collect()
}

/// A port that no other program listens on now.
pub(super) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Creates a certificate for this address. It is valid longer than any bench takes.
fn certify(folder: &Path) -> anyhow::Result<()> {
    let words = "req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
                 -subj /CN=bench -addext subjectAltName=IP:127.0.0.1,DNS:localhost \
                 -keyout key.pem -out cert.pem";
    let output = Command::new("openssl")
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()
        .context("openssl is not installed; `./setup bench` installs it")?;
    if !output.status.success() {
        bail!(
            "openssl makes no certificate: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_its_number_of_events() {
        let text = events();
        let first = "data: {\"n\":1,\"text\":\"token\"}\n\ndata: {\"n\":2,";
        assert!(text.starts_with(first), "{text}");
        let events: Vec<&str> = text.split_terminator("\n\n").collect();
        assert_eq!(events.len(), 50);
        assert_eq!(events[49], "data: {\"n\":50,\"text\":\"token\"}");
    }
}
