//! The load generators, with flags that make them do the same work.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::material::Material;
use super::server::Server;
use super::task::{EVENTS, MESSAGE_GAP_MS, Task, Wire};
use super::{Sample, Setting, is_on_path, process};

/// A load generator with a task.
pub(super) struct Generator {
    pub(super) name: &'static str,
    program: PathBuf,
    dialect: Dialect,
    task: Task,
    pub(super) url: String,
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
        Task::Http3 => &[("weigh", Weigh), (CHECKED, Weigh), ("oha", Oha)],
        Task::Sse => &[
            ("weigh", Weigh),
            (BYTES, Weigh),
            ("wrk", Wrk),
            ("oha", Oha),
            ("k6", K6),
        ],
        Task::Websocket => &[("weigh", Weigh), ("k6", K6)],
        Task::Grpc => &[("weigh", Weigh), ("ghz", Ghz)],
    }
}

/// The row of weigh that compares every body.
const CHECKED: &str = "weigh, body checked";

/// The row of weigh that reads streams as bytes, like its peers.
const BYTES: &str = "weigh, bytes only";

/// Every generator that supports a task.
pub(super) fn all(
    task: Task,
    weigh: &Path,
    server: &dyn Server,
    material: &Material,
) -> Vec<Generator> {
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
            url: server.url(task),
            schema: material.schema(),
            right_body: (name == CHECKED).then(|| material.right_body(task)),
        })
        .collect()
}

/// A script that does the same work as the other generators, and checks the status as weigh does.
const K6_REQUESTS: &str = "import http from 'k6/http';\nimport { check } from 'k6';\n\
    export default function () { check(http.get(__ENV.URL), { ok: (r) => r.status === 200 }); }\n";

/// A script that sends the messages of one connection, and closes it after the last reply.
const K6_MESSAGES: &str = "import { WebSocket } from 'k6/websockets';\n\
    export default function () {\n\
    const socket = new WebSocket(__ENV.URL);\n\
    const count = Number(__ENV.COUNT);\n\
    let sent = 0, back = 0;\n\
    socket.onopen = () => { const timer = setInterval(() => {\n\
    socket.send('hello'); sent += 1; if (sent === count) clearInterval(timer); }, Number(__ENV.GAP)); };\n\
    socket.onmessage = () => { back += 1; if (back === count) socket.close(); };\n}\n";

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

    /// Reads the requests, streams or messages per second from its output. `messages` is their number in each
    /// conversation, if the task has conversations.
    fn rate_in(self, text: &str, messages: Option<u32>) -> Option<f64> {
        match self {
            Dialect::Weigh if let Some(messages) = messages => {
                let json: serde_json::Value = serde_json::from_str(text).ok()?;
                let metrics = &json["summary"]["variants"][0]["metrics"];
                Some(metrics["requests_per_s"]["value"].as_f64()? * f64::from(messages))
            }
            Dialect::K6 if messages.is_some() => rate_after(text, "ws_msgs_received"),
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

    pub(super) fn program(&self) -> &Path {
        &self.program
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
            Dialect::Weigh => self.weigh_line(setting),
            Dialect::Wrk => format!("-t{} -c{connections} -d{seconds}s {url}", setting.cores),
            Dialect::Ab => format!("-k -q -c {connections} -t {seconds} -n 100000000 {url}"),
            Dialect::Hey => format!("-cpus 1 -c {connections} -z {seconds}s {url}"),
            Dialect::Oha => {
                let version = match self.task.wire() {
                    Wire::Http3 => format!("--http-version 3 -p {streams}"),
                    _ if is_http2 => format!("--http2 -p {streams}"),
                    _ => String::new(),
                };
                format!("--no-tui --insecure {version} -c {connections} -z {seconds}s {url}")
            }
            // The script comes from stdin, and `run` supplies it.
            Dialect::K6 => {
                let end = match self.task.messages_each(setting) {
                    Some(count) => {
                        format!(
                            "--iterations {connections} -e COUNT={count} -e GAP={MESSAGE_GAP_MS}"
                        )
                    }
                    None => format!("--duration {seconds}s"),
                };
                format!("run --quiet --no-usage-report --vus {connections} {end} -e URL={url} -")
            }
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

    /// The arguments of weigh, which rejects flags without an effect.
    fn weigh_line(&self, setting: Setting) -> String {
        let seconds = setting.seconds;
        let (connections, streams) = self.task.shape(setting);
        let mut url = self.url.clone();
        let version = match self.task.wire() {
            Wire::Plain | Wire::Websocket => String::new(),
            Wire::Tls => "--insecure".to_owned(),
            Wire::Http2 => format!("--http2 --streams {streams}"),
            Wire::Http2Tls => format!("--http2 --streams {streams} --insecure"),
            Wire::Http3 => format!("--http3 --streams {streams} --insecure"),
        };
        let end = match self.task.messages_each(setting) {
            // One conversation on each connection.
            Some(count) => format!(
                "-n {connections} --message hello --message-every {MESSAGE_GAP_MS}ms \
                 --message-count {count} --replies order --timeout {}s",
                seconds + PATIENCE_S
            ),
            None => format!("-z {seconds}s"),
        };
        let call = match self.task {
            Task::Grpc => {
                let (address, call) = self.call();
                let line = format!("--grpc {call} --proto {}", self.schema.display());
                url = format!("http://{address}/");
                line
            }
            Task::Sse if self.name != BYTES => format!("--stream sse --events {EVENTS}"),
            _ => String::new(),
        };
        let threads = match setting.cores {
            1 => String::new(),
            cores => format!("--threads {cores}"),
        };
        format!("load {url} {version} {call} -c {connections} {threads} {end} --format json")
    }

    /// The address and the method of a call.
    fn call(&self) -> (&str, &str) {
        let after = self.url.trim_start_matches("http://");
        after.split_once('/').unwrap_or((after, ""))
    }

    /// One run, pinned to the cores next to the server's core.
    pub(super) fn run(&self, setting: Setting, server: &dyn Server) -> anyhow::Result<Sample> {
        let folder = tempfile::tempdir()?;
        let (script, output) = (folder.path().join("script"), folder.path().join("output"));
        let messages = self.task.messages_each(setting);
        std::fs::write(
            &script,
            match messages {
                Some(_) => K6_MESSAGES,
                None => K6_REQUESTS,
            },
        )?;
        let before = server.requests()?;
        let mut child = Command::new("taskset")
            .args(["--cpu-list", &setting.cpu_list()])
            .arg(&self.program)
            .args(self.arguments(setting))
            .stdin(File::open(&script)?)
            .stdout(File::create(&output)?)
            .stderr(Stdio::null())
            .spawn()
            .context("`taskset` starts it")?;
        let limit = Duration::from_secs(u64::from(setting.seconds + PATIENCE_S));
        let account = process::account(&mut child, limit)?;
        let requests = server.requests()? - before;
        let text = std::fs::read_to_string(&output)?;
        let requests_per_s = match (self.dialect, self.task.wire()) {
            // oha divides by its whole time, with the 30 s in which it waits for the end of its connections.
            (Dialect::Oha, Wire::Http3) => Some(requests as f64 / f64::from(setting.seconds)),
            (dialect, _) => dialect.rate_in(&text, messages),
        };
        let requests_per_s = requests_per_s
            .with_context(|| format!("no requests per second in its output:\n{text}"))?;
        if requests == 0 {
            bail!("it sent nothing:\n{text}");
        }
        let connections = self.task.shape(setting).0;
        let planned = messages.map(|each| u64::from(each) * u64::from(connections));
        if let Some(planned) = planned.filter(|planned| *planned != requests) {
            bail!("expected {planned} messages, the server received {requests}:\n{text}");
        }
        Ok(Sample {
            requests_per_s,
            cpu_us_per_request: account.cpu_us / requests as f64,
            peak_kib: account.peak_kib,
            own_kib: account.own_kib,
        })
    }
}

/// Time that a generator may take beyond its load, in seconds.
const PATIENCE_S: u32 = 60;

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
            assert_eq!(dialect.rate_in(text, None), Some(rate), "{dialect:?}");
        }
    }

    #[test]
    fn messages_are_counted_by_their_conversations_or_by_themselves() {
        let weigh = r#"{"summary":{"variants":[{"metrics":{"requests_per_s":{"value":49.5}}}]}}"#;
        assert_eq!(Dialect::Weigh.rate_in(weigh, Some(200)), Some(9900.0));
        assert_eq!(Dialect::Weigh.rate_in("no JSON", Some(200)), None);
        let k6 =
            "ws_msgs_received......: 20000  5116.5/s\nws_msgs_sent..........: 20100  5142.1/s\n";
        assert_eq!(Dialect::K6.rate_in(k6, Some(200)), Some(5116.5));
    }

    #[test]
    fn all_generators_of_a_task_do_the_same_work() {
        struct Nowhere;
        impl Server for Nowhere {
            fn url(&self, task: Task) -> String {
                format!("http://a{}", task.path())
            }
            fn requests(&self) -> anyhow::Result<u64> {
                Ok(0)
            }
            fn name(&self) -> anyhow::Result<String> {
                Ok("none".to_owned())
            }
        }
        let material = Material::new().unwrap();
        let setting = Setting {
            seconds: 2,
            connections: 100,
            cores: 1,
        };
        let lines = |task| -> Vec<String> {
            let all = all(task, Path::new("weigh"), &Nowhere, &material);
            let line = |it: &Generator| format!("{} {}", it.name, it.arguments(setting).join(" "));
            all.iter().map(line).collect()
        };
        assert_eq!(
            lines(Task::Websocket),
            [
                "weigh load http://a/ -c 100 -n 100 --message hello --message-every 10ms \
                 --message-count 200 --replies order --timeout 62s --format json",
                "k6 run --quiet --no-usage-report --vus 100 --iterations 100 -e COUNT=200 -e GAP=10 \
                 -e URL=http://a/ -",
            ]
        );
        assert_eq!(
            lines(Task::Sse)[..2],
            [
                "weigh load http://a/stream --stream sse --events 50 -c 100 -z 2s --format json",
                "weigh, bytes only load http://a/stream -c 100 -z 2s --format json",
            ]
        );
        let http3 = lines(Task::Http3);
        assert!(
            http3[0].contains("--http3 --streams 10 --insecure -c 10 -z 2s"),
            "{http3:?}"
        );
        assert!(http3[1].contains(" --expect-body "), "{http3:?}");
        assert!(
            http3[2].contains("--http-version 3 -p 10 -c 10 -z 2s"),
            "{http3:?}"
        );
    }
}
