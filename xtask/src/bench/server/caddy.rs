//! Caddy with HTTP/3 and a configuration of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use super::{Server, command, get, verify_installed};
use crate::bench::material::{Material, SMALL, free_port};
use crate::bench::process::wait_until;
use crate::bench::task::Task;
use crate::process::Process;

/// A running Caddy.
pub(super) struct Caddy {
    _process: Process,
    port: u16,
    /// The address of its counts.
    counts: String,
}

impl Caddy {
    pub(super) fn start(material: &Material) -> anyhow::Result<Caddy> {
        verify_installed("caddy")?;
        // Free for TCP, and almost certainly for UDP.
        let port = free_port()?;
        let counts = format!("127.0.0.1:{}", free_port()?);
        let folder = material.folder();
        let file = folder.join("Caddyfile");
        fs::write(&file, config(folder, port, &counts))?;
        let mut command = command(Path::new("caddy"));
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(file)
            // It saves its configuration below these folders.
            .env("XDG_CONFIG_HOME", folder)
            .env("XDG_DATA_HOME", folder);
        let caddy = Caddy {
            _process: Process::start(&mut command)?,
            port,
            counts,
        };
        wait_until(Duration::from_secs(10), || caddy.requests().is_ok());
        caddy.requests().context("Caddy does not answer")?;
        Ok(caddy)
    }
}

impl Server for Caddy {
    fn url(&self, task: Task) -> String {
        format!("https://127.0.0.1:{}{}", self.port, task.path())
    }

    fn requests(&self) -> anyhow::Result<u64> {
        Ok(requests_in(&get(&self.counts, "/metrics")?))
    }

    fn name(&self) -> anyhow::Result<String> {
        let output = Command::new("caddy").arg("version").output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().next().unwrap_or("of no version");
        Ok(format!("Caddy {}", version.trim_start_matches('v')))
    }
}

/// The requests in its metrics. Without a request, there is no such line.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a count is a whole number far below 2^53, also as `1.2e+06`"
)]
fn requests_in(metrics: &str) -> u64 {
    // Each handler of a request counts it, and the outer handler is the list of routes.
    let line = r#"caddy_http_requests_total{handler="subroute","#;
    let counts = metrics.lines().filter(|text| text.starts_with(line));
    let counts = counts.filter_map(|text| text.split_whitespace().last()?.parse::<f64>().ok());
    counts.sum::<f64>() as u64
}

fn config(folder: &Path, port: u16, counts: &str) -> String {
    let folder = folder.display();
    format!(
        "{{\n admin {counts}\n auto_https disable_redirects\n \
         # Clients send no name to an address, and over QUIC the address alone selects no certificate.\n \
         default_sni localhost\n storage file_system {folder}/storage\n \
         servers {{\n  metrics\n }}\n}}\n\
         https://127.0.0.1:{port}, https://localhost:{port} {{\n bind 127.0.0.1\n \
         tls {folder}/cert.pem {folder}/key.pem\n header Content-Type application/json\n \
         respond {} `{SMALL}`\n}}\n",
        Task::Http3.path(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_counts_once() {
        let metrics = "# HELP caddy_http_requests_total Counter of requests.\n\
                       caddy_http_requests_total{handler=\"subroute\",server=\"srv0\"} 1.2e+06\n\
                       caddy_http_requests_total{handler=\"static_response\",server=\"srv0\"} 1.2e+06\n\
                       caddy_http_request_duration_seconds_count{handler=\"subroute\"} 7\n";
        assert_eq!(requests_in(metrics), 1_200_000);
        assert_eq!(requests_in(""), 0);
    }
}
