//! Tests that a real collector accepts the gateway's data. It is OpenTelemetry's own collector, built from
//! `tests/otelcol`. The test reads the received data from the files that the collector writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertificateParams, KeyPair};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use test_client::Process;

use crate::client::{Request, post};
use crate::gateway::Setup;
use crate::stub::{Answer, Stub, json};

const BOTH: &str =
    r#"{"query":"query Both { locations { name overallRating } }","operationName":"Both"}"#;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector with a folder for the received data.
struct Otelcol {
    process: Process,
    folder: TempDir,
    grpc: String,
    http: String,
}

/// The program, built once. `None` after a line NOT RUN, if it cannot be built.
#[track_caller]
fn program() -> Option<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(program) => {
            judged::ran();
            Some(program.clone())
        }
        Err(reason) => {
            judged::not_run(reason);
            None
        }
    }
}

fn build() -> Result<PathBuf, String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("otelcol");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otelcol");
    judged::build_go(&folder, &program, "collector")?;
    Ok(program)
}

impl Otelcol {
    /// Starts the collector. `tls` is the TLS part of its receivers' configuration.
    fn start(program: &Path, tls: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let protocol = format!(
            "{{endpoint: '127.0.0.1:0'{}}}",
            tls.replace("{folder}", &path(""))
        );
        let mut config =
            format!("receivers: {{otlp: {{protocols: {{grpc: {protocol}, http: {protocol}}}}}}}\n");
        let (traces, metrics) = (path("traces"), path("metrics"));
        write!(
            config,
            "exporters: {{file/t: {{path: '{traces}'}}, file/m: {{path: '{metrics}'}}}}\n\
             service: {{pipelines: {{traces: {{receivers: [otlp], exporters: [file/t]}}, metrics: {{receivers: [otlp], exporters: [file/m]}}}}}}\n"
        )
        .unwrap();
        fs::write(path("otelcol.yaml"), config).unwrap();
        if !tls.is_empty() {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            let certificate = params.self_signed(&key).unwrap();
            fs::write(path("certificate.pem"), certificate.pem()).unwrap();
            fs::write(path("key.pem"), key.serialize_pem()).unwrap();
        }
        let mut command = Command::new(program);
        command.args(["--config", &format!("file:{}", path("otelcol.yaml"))]);
        let (mut process, []) = Process::start_with_addresses(&mut command);
        let mut port = |server: &str| {
            let line = process.wait_for(&format!("Starting {server} server"));
            let endpoint = line["endpoint"].as_str().unwrap();
            endpoint.rsplit_once(':').unwrap().1.to_owned()
        };
        let (grpc, http) = (port("GRPC"), port("HTTP"));
        Self {
            process,
            folder,
            grpc,
            http,
        }
    }

    /// The URL of the receiver for a protocol.
    fn endpoint(&self, scheme: &str, protocol: &str) -> String {
        let port = if protocol == "grpc" {
            &self.grpc
        } else {
            &self.http
        };
        format!("{scheme}://localhost:{port}")
    }

    /// Ends the collector. Returns its messages of traces, and of metrics.
    fn end(self) -> [Vec<Value>; 2] {
        self.process.signal(Signal::TERM);
        let (status, log) = self.process.wait_with_log();
        assert!(status.success(), "{log}");
        ["traces", "metrics"].map(|name| {
            let text = fs::read_to_string(self.folder.path().join(name)).unwrap();
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        })
    }
}

fn config(endpoint: &str, protocol: &str, more: &str) -> String {
    let otlp =
        format!("otlp: {{enabled: true, endpoint: '{endpoint}', protocol: {protocol}{more}}}");
    let common = "common: {service_name: front, resource: {deployment.environment.name: test}}";
    format!(
        "telemetry: {{exporters: {{tracing: {{{common}, {otlp}}}, metrics: {{{common}, {otlp}}}}}}}\n"
    )
}

/// All values at a path of nested arrays, over all messages.
fn all<'a>(messages: &'a [Value], path: [&str; 3]) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = messages.iter().collect();
    for name in path {
        let arrays = found.into_iter().filter_map(|it| it[name].as_array());
        found = arrays.flatten().collect();
    }
    found
}

/// Attributes as text, by name.
fn attributes(of: &Value) -> BTreeMap<&str, String> {
    let list = of["attributes"].as_array().into_iter().flatten();
    list.map(|it| {
        let value = it["value"].as_object().unwrap().values().next().unwrap();
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (it["key"].as_str().unwrap(), text)
    })
    .collect()
}

/// The spans with a name.
fn named<'a>(spans: &[&'a Value], name: &str) -> Vec<&'a Value> {
    spans
        .iter()
        .filter(|it| it["name"] == name)
        .copied()
        .collect()
}

/// The sum of all points of a counter or histogram with these attributes.
fn count(message: &Value, name: &str, wanted: &[(&str, &str)]) -> f64 {
    let messages = std::slice::from_ref(message);
    let metrics = all(messages, ["resourceMetrics", "scopeMetrics", "metrics"]);
    let metric = metrics.iter().find(|it| it["name"] == name);
    let metric = metric.unwrap_or_else(|| panic!("no {name} in {message:#}"));
    let data = metric.get("histogram").unwrap_or(&metric["sum"]);
    let points = data["dataPoints"].as_array().unwrap();
    let points = points.iter().filter(|point| {
        let has = attributes(point);
        wanted
            .iter()
            .all(|(name, value)| has.get(name).is_some_and(|it| it == value))
    });
    // In the JSON of Protobuf, 64-bit numbers are strings.
    let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let count = |point: &Value| {
        let Some(buckets) = point["bucketCounts"].as_array() else {
            let value = point["asDouble"].as_f64();
            return value.unwrap_or_else(|| number(&point["asInt"]));
        };
        let sum: f64 = buckets.iter().map(number).sum();
        assert_eq!(sum, number(&point["count"]), "{point:#}");
        sum
    };
    points.map(count).sum()
}

/// Sends two requests to a gateway with this configuration, and stops it. In the second request, a subgraph
/// fails.
fn serve(setup: impl FnOnce(&Stub) -> Setup) {
    let asked = AtomicUsize::new(0);
    let stub = Stub::start(move |seen| match seen.target.as_str() {
        "/l" if asked.fetch_add(1, Ordering::SeqCst) == 1 => {
            Answer::With(503, Some("text/plain"), b"no".to_vec())
        }
        "/l" => json(r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"A"}]}}"#),
        _ => json(r#"{"data":{"_entities":[{"overallRating":4}]}}"#),
    });
    let gateway = setup(&stub).start();
    for headers in [&[("traceparent", PARENT)][..], &[]] {
        let usual = post(BOTH);
        let headers = [usual.headers, headers].concat();
        let response = gateway.send(&Request {
            headers: &headers,
            ..usual
        });
        assert_eq!(response.status, 200, "{}", response.text());
    }
    gateway.signal(Signal::TERM);
    let (status, log) = gateway.wait();
    assert!(status.success());
    // The log would contain an error about a refused or dropped message.
    assert!(!log.contains("collector"), "{log}");
}

/// Checks the data that a collector must have received from [`serve`].
fn judge([traces, metrics]: [Vec<Value>; 2]) {
    for resource in traces.iter().chain(&metrics).flat_map(|message| {
        let both = ["resourceSpans", "resourceMetrics"].map(|name| message[name].as_array());
        both.into_iter().flatten().flatten()
    }) {
        let attributes = attributes(&resource["resource"]);
        assert_eq!(attributes["service.name"], "front");
        assert_eq!(attributes["deployment.environment.name"], "test");
    }
    let spans = all(&traces, ["resourceSpans", "scopeSpans", "spans"]);
    let (first, second): (Vec<&Value>, Vec<&Value>) =
        spans.into_iter().partition(|span| span["traceId"] == TRACE);
    let server = judge_tree(&first, &["POST /l", "POST /r"]);
    assert_eq!(server["parentSpanId"], "b7ad6b7169203331");
    // The plan is in the cache. Without places, no ratings are requested.
    let server = judge_tree(&second, &["POST /l"]);
    assert!(named(&second, "query_planning").is_empty());
    assert!(server["parentSpanId"].is_null());
    let failed = named(&second, "POST /l")[0];
    assert_eq!(failed["status"]["code"], 2);
    assert_eq!(attributes(failed)["error.type"], "503");

    let last = metrics.last().unwrap();
    assert_eq!(count(last, "http.server.request.duration", &[]), 2.0);
    let served = [("http.response.status_code", "200")];
    assert_eq!(count(last, "http.server.requests", &served), 2.0);
    for (subgraph, calls) in [("locations", 2.0), ("reviews", 1.0)] {
        let wanted = [("subgraph.name", subgraph)];
        let counted = count(last, "http.client.request.duration", &wanted);
        assert_eq!(counted, calls, "{subgraph}");
    }
}

/// Checks the spans of a request. Returns the request's own span.
fn judge_tree<'a>(spans: &[&'a Value], fetches: &[&str]) -> &'a Value {
    let one = |name: &str| {
        let found = named(spans, name);
        assert_eq!(found.len(), 1, "{name} in {spans:#?}");
        found[0]
    };
    let (server, operation) = (one("POST /"), one("query"));
    assert_eq!(server["kind"], 2);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/"),
        ("http.response.status_code", "200"),
        ("graphql.operation.name", "Both"),
    ] {
        assert_eq!(attributes(server)[name], value, "{name}");
    }
    assert_eq!(operation["parentSpanId"], server["spanId"]);
    assert_eq!(attributes(operation)["graphql.operation.type"], "query");
    for fetch in fetches {
        let fetch = one(fetch);
        assert_eq!(fetch["kind"], 3);
        assert_eq!(fetch["parentSpanId"], operation["spanId"]);
        assert!(attributes(fetch).contains_key("subgraph.name"));
    }
    let planning = named(spans, "query_planning").len();
    assert_eq!(spans.len(), 2 + planning + fetches.len(), "{spans:#?}");
    server
}

#[test]
fn opentelemetrys_own_collector_takes_traces_and_metrics() {
    let Some(program) = program() else { return };
    for protocol in ["http", "grpc"] {
        let collector = Otelcol::start(&program, "");
        let endpoint = collector.endpoint("http", protocol);
        serve(|stub| Setup::new(&stub.config(&config(&endpoint, protocol, ""))));
        judge(collector.end());
    }
}

#[test]
fn its_grpc_over_tls_is_spoken() {
    let Some(program) = program() else { return };
    let tls = ", tls: {cert_file: '{folder}certificate.pem', key_file: '{folder}key.pem'}";
    let collector = Otelcol::start(&program, tls);
    let authority = fs::read_to_string(collector.folder.path().join("certificate.pem")).unwrap();
    let endpoint = collector.endpoint("https", "grpc");
    let trusts = ", grpc: {ca: '${file.certificate.pem}'}";
    serve(|stub| {
        let config = config(&endpoint, "grpc", trusts);
        Setup::new(&stub.config(&config)).file("certificate.pem", &authority)
    });
    judge(collector.end());
}
