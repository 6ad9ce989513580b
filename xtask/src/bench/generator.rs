//! The load generators, with flags that make them do the same work.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::nginx::{Nginx, Wire};
use super::{Sample, Setting, is_on_path, process};

/// Task that generators are compared at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Task {
    /// Small responses over HTTP/1.1.
    Small,
    /// Responses of 8 KB over HTTP/1.1.
    Large,
    /// Small responses over HTTP/1.1 with TLS.
    Tls,
    /// Small responses over HTTP/2 without TLS.
    Http2,
    /// Small responses over HTTP/2 with TLS.
    Http2Tls,
    /// Unary calls of gRPC with empty messages.
    Grpc,
}

impl Task {
    pub(super) const ALL: [Task; 6] = [
        Task::Small,
        Task::Large,
        Task::Tls,
        Task::Http2,
        Task::Http2Tls,
        Task::Grpc,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Task::Small => "Small responses",
            Task::Large => "Responses of 8 KB",
            Task::Tls => "Small responses over TLS 1.3",
            Task::Http2 => "Small responses over HTTP/2",
            Task::Http2Tls => "Small responses over HTTP/2 with TLS 1.3",
            Task::Grpc => "Unary calls of gRPC",
        }
    }

    /// The value for `--task`.
    pub(super) fn word(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn wire(self) -> Wire {
        match self {
            Task::Small | Task::Large => Wire::Plain,
            Task::Tls => Wire::Tls,
            Task::Http2 | Task::Grpc => Wire::Http2,
            Task::Http2Tls => Wire::Http2Tls,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Task::Large => "/large.json",
            Task::Grpc => "/bench.Bench/Get",
            _ => "/small.json",
        }
    }

    /// Number of connections, and of requests in flight on each.
    pub(super) fn shape(self, setting: Setting) -> (u32, u32) {
        match self {
            Task::Http2 | Task::Http2Tls | Task::Grpc => {
                ((setting.connections / STREAMS).max(1), STREAMS)
            }
            _ => (setting.connections, 1),
        }
    }
}

/// Number of requests in flight on each HTTP/2 connection.
const STREAMS: u32 = 10;

/// A load generator with a task.
pub(super) struct Generator {
    pub(super) name: &'static str,
    program: PathBuf,
    dialect: Dialect,
    task: Task,
    url: String,
    /// The file with the schema of the calls of gRPC.
    schema: PathBuf,
    /// The file with the body to compare with.
    right_body: Option<PathBuf>,
}

/// The family of flags and output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Weigh,
    Wrk,
    Ab,
    Hey,
    Oha,
    K6,
    Bombardier,
    H2load,
    Ghz,
}

/// Programs that support each task. weigh comes first, because ratios refer to it.
fn programs(task: Task) -> &'static [(&'static str, Dialect)] {
    use Dialect::{Ab, Bombardier, Ghz, H2load, Hey, K6, Oha, Weigh, Wrk};
    match task {
        Task::Small => &[
            ("weigh", Weigh),
            (CHECKED, Weigh),
            ("wrk", Wrk),
            ("ab", Ab),
            ("h2load", H2load),
            ("bombardier", Bombardier),
            ("oha", Oha),
            ("hey", Hey),
            ("k6", K6),
        ],
        Task::Large => &[("weigh", Weigh), (CHECKED, Weigh), ("wrk", Wrk), ("ab", Ab)],
        Task::Tls => &[
            ("weigh", Weigh),
            (CHECKED, Weigh),
            ("wrk", Wrk),
            ("h2load", H2load),
            ("oha", Oha),
        ],
        Task::Http2 | Task::Http2Tls => &[
            ("weigh", Weigh),
            (CHECKED, Weigh),
            ("h2load", H2load),
            ("oha", Oha),
        ],
        Task::Grpc => &[("weigh", Weigh), ("ghz", Ghz)],
    }
}

/// The row of weigh that compares every body.
const CHECKED: &str = "weigh, body checked";

/// Every generator that supports a task.
pub(super) fn all(task: Task, weigh: &Path, nginx: &Nginx) -> Vec<Generator> {
    programs(task)
        .iter()
        .map(|&(name, dialect)| Generator {
            name,
            program: match dialect {
                Dialect::Weigh => weigh.to_path_buf(),
                _ => name.into(),
            },
            dialect,
            task,
            url: nginx.url(task.wire(), task.path()),
            schema: nginx.schema(),
            right_body: (name == CHECKED).then(|| nginx.right_body(task.path())),
        })
        .collect()
}

/// A script that does the same work as the other generators, and checks the status as weigh does.
const K6_SCRIPT: &str = "import http from 'k6/http';\nimport { check } from 'k6';\n\
    export default function () { check(http.get(__ENV.URL), { ok: (r) => r.status === 200 }); }\n";

impl Dialect {
    /// The flag that prints the version. `None` if there is no such flag.
    fn version(self) -> Option<&'static str> {
        match self {
            Dialect::Ab => Some("-V"),
            Dialect::K6 => Some("version"),
            Dialect::Hey => None,
            _ => Some("--version"),
        }
    }

    /// Reads the requests per second from its output.
    fn rate_in(self, text: &str) -> Option<f64> {
        match self {
            Dialect::Weigh => rate_after(text, "\"requests_per_s_mean\":"),
            Dialect::Ab => rate_after(text, "Requests per second:"),
            Dialect::K6 => rate_after(text, "http_reqs"),
            Dialect::Bombardier => rate_after(text, "Reqs/sec"),
            Dialect::Ghz => rate_after(text, "Requests/sec:"),
            Dialect::H2load => rate_after(text.split("finished in").nth(1)?, "s,"),
            Dialect::Wrk | Dialect::Hey | Dialect::Oha => rate_after(text, "Requests/sec:"),
        }
    }
}

impl Generator {
    pub(super) fn is_installed(&self) -> bool {
        is_on_path(&self.program)
    }

    /// The first words of its version output.
    pub(super) fn version(&self) -> String {
        let asked = self
            .dialect
            .version()
            .and_then(|word| Command::new(&self.program).arg(word).output().ok());
        let Some(output) = asked else {
            return "no version".to_owned();
        };
        // bombardier writes to stderr.
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().next().unwrap_or_default();
        let words: Vec<&str> = line
            .split(&['[', '<', '('][..])
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        words.join(" ")
    }

    fn arguments(&self, setting: Setting) -> Vec<String> {
        let (url, seconds) = (&self.url, setting.seconds);
        let (connections, streams) = self.task.shape(setting);
        let is_http2 = streams > 1;
        let line = match self.dialect {
            Dialect::Weigh => {
                // weigh rejects flags without an effect.
                let http2 = match is_http2 {
                    true => format!("--http2 --streams {streams}"),
                    false => String::new(),
                };
                let (url, grpc) = match self.task {
                    Task::Grpc => {
                        let (address, call) = self.call();
                        let schema = self.schema.display();
                        (
                            &format!("http://{address}/"),
                            format!("--grpc {call} --proto {schema}"),
                        )
                    }
                    _ => (url, String::new()),
                };
                let insecure = match self.task.wire() {
                    Wire::Tls | Wire::Http2Tls => "--insecure",
                    Wire::Plain | Wire::Http2 => "",
                };
                format!(
                    "load {url} {http2} {grpc} {insecure} -c {connections} -z {seconds}s --format json"
                )
            }
            Dialect::Wrk => format!("-t1 -c{connections} -d{seconds}s {url}"),
            Dialect::Ab => format!("-k -q -c {connections} -t {seconds} -n 100000000 {url}"),
            Dialect::Hey => format!("-cpus 1 -c {connections} -z {seconds}s {url}"),
            Dialect::Oha if is_http2 => format!(
                "--no-tui --insecure --http2 -c {connections} -p {streams} -z {seconds}s {url}"
            ),
            Dialect::Oha => format!("--no-tui --insecure -c {connections} -z {seconds}s {url}"),
            // The script comes from stdin, and `run` supplies it.
            Dialect::K6 => format!(
                "run --quiet --no-usage-report --vus {connections} --duration {seconds}s \
                 -e URL={url} -"
            ),
            Dialect::Bombardier => format!("-c {connections} -d {seconds}s --print r {url}"),
            Dialect::Ghz => {
                let (address, call) = self.call();
                format!(
                    "--insecure --proto {} --call {call} --data {{}} --cpus 1 -c {} \
                     --connections {connections} -z {seconds}s {address}",
                    self.schema.display(),
                    connections * streams
                )
            }
            Dialect::H2load if is_http2 => {
                format!("-t1 -c{connections} -m{streams} -D{seconds} {url}")
            }
            Dialect::H2load => format!("--h1 -t1 -c{connections} -D{seconds} {url}"),
        };
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if let Some(right) = &self.right_body {
            words.extend(["--expect-body".to_owned(), right.display().to_string()]);
        }
        words
    }

    /// The address and the method of a call.
    fn call(&self) -> (&str, &str) {
        let after = self.url.trim_start_matches("http://");
        after.split_once('/').unwrap_or((after, ""))
    }

    /// One run, pinned to the core next to nginx's core.
    pub(super) fn run(&self, setting: Setting, nginx: &Nginx) -> anyhow::Result<Sample> {
        let folder = tempfile::tempdir()?;
        let (script, output) = (folder.path().join("script"), folder.path().join("output"));
        std::fs::write(&script, K6_SCRIPT)?;
        let before = nginx.requests()?;
        let mut child = Command::new("taskset")
            .args(["--cpu-list", "1"])
            .arg(&self.program)
            .args(self.arguments(setting))
            .stdin(File::open(&script)?)
            .stdout(File::create(&output)?)
            .stderr(Stdio::null())
            .spawn()
            .context("`taskset` starts it")?;
        let limit = Duration::from_secs(u64::from(setting.seconds) + 30);
        let account = process::account(&mut child, limit)?;
        // The request for the count is one more.
        let requests = nginx.requests()? - before - 1;
        let text = std::fs::read_to_string(&output)?;
        let requests_per_s = self
            .dialect
            .rate_in(&text)
            .with_context(|| format!("no requests per second in its output:\n{text}"))?;
        if requests == 0 {
            bail!("it sent nothing:\n{text}");
        }
        Ok(Sample {
            requests_per_s,
            cpu_us_per_request: account.cpu_us / requests as f64,
            peak_kib: account.peak_kib,
        })
    }
}

/// The number after `label`. k6 writes the count first and then `1234.5/s`.
fn rate_after(text: &str, label: &str) -> Option<f64> {
    let rest = text.split(label).nth(1)?.lines().next()?;
    let words = || rest.split_whitespace();
    words()
        .find_map(|word| word.strip_suffix("/s"))
        .or_else(|| words().next())
        .and_then(|word| word.trim_end_matches(',').parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found_in_every_dialect() {
        for (dialect, text, rate) in [
            (Dialect::Wrk, "Requests/sec:  54321.10\n", 54_321.1),
            (
                Dialect::Ab,
                "Requests per second:    100.5 [#/sec] (mean)",
                100.5,
            ),
            (
                Dialect::K6,
                "http_reqs......................: 5000   999.9/s\n",
                999.9,
            ),
            (
                Dialect::Weigh,
                "  \"requests_per_s_mean\": 28050.25,\n",
                28_050.25,
            ),
            (
                Dialect::H2load,
                "finished in 2.01s, 4961.50 req/s, 1.10MB/s\nrequests: 9923 total\n",
                4961.5,
            ),
            (
                Dialect::Bombardier,
                "  Reqs/sec     12345.67    1500.00   14000.00\n",
                12_345.67,
            ),
        ] {
            assert_eq!(dialect.rate_in(text), Some(rate), "{dialect:?}");
        }
    }
}
