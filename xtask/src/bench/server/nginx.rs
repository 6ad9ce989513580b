//! One nginx worker with a configuration of its own, in a temporary folder.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::Context as _;

use super::{Server, command, get, verify_installed};
use crate::bench::material::{Material, SMALL, free_port};
use crate::bench::process;
use crate::bench::task::{Task, Wire};

/// A running nginx. Dropping it ends it.
pub(super) struct Nginx {
    child: Child,
    ports: Ports,
    /// Number of questions for its count, which it counts too.
    asked: Cell<u64>,
}

/// The ports of nginx, one for each protocol.
#[derive(Clone, Copy, Debug)]
struct Ports {
    plain: u16,
    tls: u16,
    http2: u16,
    http2_tls: u16,
}

impl Nginx {
    pub(super) fn start(material: &Material) -> anyhow::Result<Nginx> {
        verify_installed("nginx")?;
        let ports = Ports {
            plain: free_port()?,
            tls: free_port()?,
            http2: free_port()?,
            http2_tls: free_port()?,
        };
        let file = material.folder().join("nginx.conf");
        fs::write(&file, config(material.folder(), ports))?;
        let child = command(Path::new("nginx"))
            .args(["-e", "stderr", "-c"])
            .arg(file)
            .spawn()
            .context("`taskset` starts nginx")?;
        let mut nginx = Nginx {
            child,
            ports,
            asked: Cell::new(0),
        };
        process::wait_until(Duration::from_secs(10), || {
            nginx.requests().is_ok() || nginx.child.try_wait().is_ok_and(|ended| ended.is_some())
        });
        nginx.requests().context("nginx does not answer")?;
        Ok(nginx)
    }
}

impl Server for Nginx {
    fn url(&self, task: Task) -> String {
        let (scheme, port) = match task.wire() {
            Wire::Tls => ("https", self.ports.tls),
            Wire::Http2 => ("http", self.ports.http2),
            Wire::Http2Tls => ("https", self.ports.http2_tls),
            Wire::Plain | Wire::Http3 | Wire::Websocket => ("http", self.ports.plain),
        };
        format!("{scheme}://127.0.0.1:{port}{}", task.path())
    }

    fn requests(&self) -> anyhow::Result<u64> {
        let answer = get(&format!("127.0.0.1:{}", self.ports.plain), "/count")?;
        self.asked.set(self.asked.get() + 1);
        let count = requests_in(&answer);
        let count = count.with_context(|| format!("nginx does not count: {answer}"))?;
        Ok(count - self.asked.get())
    }

    fn name(&self) -> anyhow::Result<String> {
        let output = Command::new("nginx").arg("-v").output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let version = text.trim().replace("nginx version: ", "");
        Ok(format!("one {version} worker"))
    }
}

/// The third number below `server accepts handled requests`.
fn requests_in(counts: &str) -> Option<u64> {
    let numbers = counts.split("requests").nth(1)?;
    numbers.split_whitespace().nth(2)?.parse().ok()
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
         events {{ worker_connections 16384; }}\n\
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
         location = /stream {{ default_type text/event-stream; }}\n    \
         location = /count {{ stub_status; }}\n  }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_requests_is_the_third_number() {
        let counts =
            "Active connections: 1 \nserver accepts handled requests\n 16 16 31070 \nReading: 0\n";
        assert_eq!(requests_in(counts), Some(31070));
        assert_eq!(requests_in("404 Not Found"), None);
    }
}
