//! One nginx worker with a configuration of its own, in a temporary folder.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::{is_on_path, process};

/// A running nginx. Dropping it ends it.
pub(super) struct Nginx {
    child: Child,
    folder: tempfile::TempDir,
    ports: Ports,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 by prior knowledge.
    Http2,
    /// HTTP/2 over TLS.
    Http2Tls,
}

/// The ports of nginx, one for each protocol.
#[derive(Clone, Copy, Debug)]
struct Ports {
    plain: u16,
    tls: u16,
    http2: u16,
    http2_tls: u16,
}

/// The body of a small response.
const SMALL: &str = r#"{"data":{"hello":"world"}}"#;

/// The schema of the calls of gRPC.
const SCHEMA: &str = "syntax = \"proto3\";\npackage bench;\nmessage Empty {}\n\
                      service Bench { rpc Get(Empty) returns (Empty); }\n";

/// Length of a large body in bytes.
const LARGE_BYTES: usize = 8192;

impl Nginx {
    pub(super) fn start() -> anyhow::Result<Nginx> {
        if !is_on_path(Path::new("nginx")) {
            bail!("nginx is not installed; `./setup bench` installs it");
        }
        let folder = tempfile::tempdir().context("a temporary folder")?;
        let frame = r#"{"data":{"fill":""}}"#;
        let large = frame.replace(
            "\"\"",
            &format!("\"{}\"", "x".repeat(LARGE_BYTES - frame.len())),
        );
        fs::create_dir(folder.path().join("www"))?;
        fs::write(folder.path().join("www/large.json"), large)?;
        fs::write(folder.path().join("small.json"), SMALL)?;
        fs::write(folder.path().join("bench.proto"), SCHEMA)?;
        // An empty message: the byte without compression, and the length 0.
        fs::write(folder.path().join("www/message"), [0; 5])?;
        let ports = Ports {
            plain: free_port()?,
            tls: free_port()?,
            http2: free_port()?,
            http2_tls: free_port()?,
        };
        certify(folder.path())?;
        fs::write(
            folder.path().join("nginx.conf"),
            config(folder.path(), ports),
        )?;
        // One core for the server, another one for the generators.
        let child = Command::new("taskset")
            .args(["--cpu-list", "0", "nginx", "-e", "stderr", "-c"])
            .arg(folder.path().join("nginx.conf"))
            .spawn()
            .context("`taskset` starts nginx")?;
        let mut nginx = Nginx {
            child,
            folder,
            ports,
        };
        process::wait_until(Duration::from_secs(10), || {
            nginx.requests().is_ok() || nginx.child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        nginx.requests().context("nginx does not answer")?;
        Ok(nginx)
    }

    pub(super) fn url(&self, wire: Wire, path: &str) -> String {
        let (scheme, port) = match wire {
            Wire::Plain => ("http", self.ports.plain),
            Wire::Tls => ("https", self.ports.tls),
            Wire::Http2 => ("http", self.ports.http2),
            Wire::Http2Tls => ("https", self.ports.http2_tls),
        };
        format!("{scheme}://127.0.0.1:{port}{path}")
    }

    /// The file with the expected body of a path.
    pub(super) fn right_body(&self, path: &str) -> PathBuf {
        match path {
            "/large.json" => self.folder.path().join("www/large.json"),
            _ => self.folder.path().join("small.json"),
        }
    }

    /// The file with the schema of its calls of gRPC.
    pub(super) fn schema(&self) -> PathBuf {
        self.folder.path().join("bench.proto")
    }

    /// Number of requests, by nginx's own count.
    pub(super) fn requests(&self) -> anyhow::Result<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports.plain))?;
        stream.write_all(b"GET /count HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        // The line below `server accepts handled requests`.
        let counts = answer.split("requests").nth(1).unwrap_or_default();
        counts
            .split_whitespace()
            .nth(2)
            .and_then(|word| word.parse().ok())
            .with_context(|| format!("nginx does not count: {answer}"))
    }

    pub(super) fn version(&self) -> anyhow::Result<String> {
        let output = Command::new("nginx").arg("-v").output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        Ok(text.trim().replace("nginx version: ", ""))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // SIGTERM, because a killed master would leave its worker behind.
        let _ = Command::new("kill")
            .args(["-TERM", &self.child.id().to_string()])
            .status();
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Creates a certificate for this address. It is valid longer than any bench takes.
fn certify(folder: &Path) -> anyhow::Result<()> {
    let words = "req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
                 -subj /CN=bench -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem";
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

fn config(folder: &Path, ports: Ports) -> String {
    let folder = folder.display();
    let Ports {
        plain,
        tls,
        http2,
        http2_tls,
    } = ports;
    format!(
        "daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 100000000;\n  keepalive_timeout 600s;\n  \
         open_file_cache max=10;\n  default_type application/json;\n  \
         client_body_temp_path {folder}/body;\n  proxy_temp_path {folder}/proxy;\n  \
         fastcgi_temp_path {folder}/fastcgi;\n  uwsgi_temp_path {folder}/uwsgi;\n  \
         scgi_temp_path {folder}/scgi;\n  \
         ssl_certificate {folder}/cert.pem;\n  ssl_certificate_key {folder}/key.pem;\n  \
         ssl_protocols TLSv1.3;\n  \
         server {{\n    listen 127.0.0.1:{plain} backlog=4096;\n    \
         listen 127.0.0.1:{tls} ssl backlog=4096;\n    \
         listen 127.0.0.1:{http2} http2 backlog=4096;\n    \
         listen 127.0.0.1:{http2_tls} ssl http2 backlog=4096;\n    root {folder}/www;\n    \
         location = /small.json {{ return 200 '{SMALL}'; }}\n    \
         location = /bench.Bench/Get {{ error_page 405 =200 /message; return 405; }}\n    \
         location = /message {{ default_type application/grpc; add_trailer grpc-status 0; }}\n    \
         location = /count {{ stub_status; }}\n  }}\n}}\n"
    )
}
