//! The generators of a lab in a cluster, as local processes: two of them send one load of streams and calls.
//!
//! The lab and its files travel in the job of a round, and the generators have no other files.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use e2e::{Run, Server, free_port, shop, weigh, weigh_command};
use serde_json::{Value, json};

/// Passes bytes through a program with these flags.
fn piped(program: &str, flags: &[&str], bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} is not installed: {error}"));
    let mut input = child.stdin.take().expect("a pipe");
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads");
    output.stdout
}

/// The files of a job as one sequence: their paths and lengths, then their contents.
fn sequence(files: &[(&str, &str)]) -> Vec<u8> {
    let entries = files
        .iter()
        .map(|(path, content)| json!({"path": path, "bytes": content.len()}));
    let mut whole = json!(entries.collect::<Vec<Value>>()).to_string();
    whole.push('\n');
    whole.extend(files.iter().map(|(_, content)| *content));
    whole.into_bytes()
}

/// The fingerprint of the source code that sends and records. Generators refuse the job of another one.
fn method() -> &'static str {
    let mut lines = include_str!("../../../../crates/recording/method.toml").lines();
    let quoted = lines.find_map(|line| line.strip_prefix("fingerprint = "));
    quoted.expect("a fingerprint").trim_matches('"')
}

/// A lab of one variant with this load, and the files that it names.
struct Job<'a> {
    load: &'a str,
    files: &'a [(&'a str, &'a str)],
    server: &'a Server,
}

impl Job<'_> {
    /// The text of the lab.
    fn lab(&self) -> String {
        format!(
            "question: Do two generators send one load?\nload:\n  rate: 40/s\n  duration: 500ms\n{}\
             generators: 2\nrounds: 1\nwarmup: 0s\ntarget: server\n\
             systems:\n  server: {{image: 'server:1', port: 80}}\n\
             baseline: {{name: a}}\nvariants: [{{name: b}}]\n",
            self.load
        )
    }

    /// The job of a round with these files in two parts.
    fn spec(&self, barrier: &str, files: &[u8]) -> Value {
        let digest = String::from_utf8(piped("sha256sum", &[], files)).expect("text");
        let digest = digest.split_whitespace().next().expect("a digest");
        let phase = json!({"duration_us": 500_000, "rate_from_per_s": 40.0, "rate_to_per_s": 40.0});
        let place = |variant: &str| {
            let address = self.server.address();
            json!({"variant": variant, "system": "server", "address": address, "instances": []})
        };
        let round = json!({
            "meeting": {
                "weigh": {"version": env!("CARGO_PKG_VERSION"), "method": method()},
                "generators": 2, "barrier": barrier, "token": "t", "wait_s": 60,
            },
            "lab": "l/lab.yaml",
            "files": {"parts": 2, "bytes": files.len(), "sha256": digest},
            "settings": [],
            "variants": ["a", "b"],
            "load": {
                "loop": "open", "phases": [phase], "arrival": "uniform",
                "connections_max": 20, "requests": null,
            },
            "warmup_us": 0, "settle": null, "seed": 7, "round": 0, "rounds": 1,
            "places": [place("a"), place("b")],
        });
        json!({"round": round})
    }

    /// Runs two generators in an empty folder, and returns their ends.
    fn run(&self) -> Vec<Output> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let barrier = format!("127.0.0.1:{}", free_port());
        let job = folder.path().join("job.json");
        let lab = self.lab();
        let lab = [("l/lab.yaml", lab.as_str())];
        let files: Vec<(&str, &str)> = lab.iter().chain(self.files).copied().collect();
        let files = sequence(&files);
        fs::write(&job, self.spec(&barrier, &files).to_string()).expect("it can be written");
        let compressed = piped("gzip", &["-c"], &files);
        let (first, second) = compressed.split_at(compressed.len() / 2);
        for (name, part) in [("files-000", first), ("files-001", second)] {
            fs::write(folder.path().join(name), part).expect("it can be written");
        }
        let children = [0, 1].map(|index| start(&job, index, &barrier));
        let ends = children.into_iter().map(|it| it.wait_with_output());
        ends.map(|end| end.expect("it ends")).collect()
    }

    /// Returns the recordings of both generators.
    #[track_caller]
    fn recordings(&self) -> Vec<Value> {
        let ends = self.run();
        ends.iter().map(recording).collect()
    }
}

fn start(job: &Path, index: u32, listen: &str) -> std::process::Child {
    weigh_command()
        .arg("generator")
        .arg(job)
        .args(["--index", &index.to_string(), "--listen", listen])
        .current_dir(job.parent().expect("a folder"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weigh starts")
}

/// The recording in the output of a generator.
#[track_caller]
fn recording(output: &Output) -> Value {
    let talk = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"));
    let coded: String = lines
        .skip(1)
        .take_while(|line| !line.starts_with("-----END"))
        .collect();
    let compressed = piped("base64", &["-d"], coded.as_bytes());
    let bytes = piped("gzip", &["-dc"], &compressed);
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {talk}"))
}

/// Checks that both generators have sent their halves. Returns the first measurement of each.
#[track_caller]
fn halves(recordings: &[Value]) -> Vec<&Value> {
    let first = |recording: &'_ Value| -> Vec<usize> {
        let rounds = recording["rounds"].as_array().expect("rounds");
        let counts = rounds.iter().enumerate();
        let counts = counts.filter(|(_, round)| round["disturbed"] != true);
        counts.map(|(index, _)| index).collect()
    };
    let mut found = Vec::new();
    for recording in recordings {
        let rounds = first(recording);
        assert_eq!(rounds.len(), 2, "two variants: {recording:#}");
        for index in rounds {
            let round = &recording["rounds"][index];
            assert_eq!(round["planned"], 10, "{round:#}");
            let failures = &round["failures"];
            assert_eq!(
                round["outcomes"]["failed"]["total"].as_u64().unwrap_or(0),
                0,
                "{failures:#}"
            );
            assert_eq!(
                round["outcomes"]["mismatched"]["total"]
                    .as_u64()
                    .unwrap_or(0),
                0,
                "{failures:#}"
            );
            found.push(round);
        }
    }
    found
}

const PROTO: &str = "syntax = \"proto3\";\npackage notes;\nimport \"common/note.proto\";\n\
    service Notes {\n  rpc Echo (common.Note) returns (common.Note);\n  \
    rpc Watch (common.Note) returns (stream common.Note);\n}\n";

const NOTE: &str = "syntax = \"proto3\";\npackage common;\nmessage Note { string text = 1; }\n";

#[test]
fn files_of_calls_travel_to_two_generators() {
    let server = Server::of(
        &weigh(),
        &["null-server", "--grpc", "--events", "3", "--gap", "1ms"],
    );
    let load = "  http2: on\n  data: users.csv\n  requests:\n    \
        - {grpc: {method: notes.Notes/Watch, proto: api/notes.proto, import-paths: shared, \
        message: {text: 'user {{user}}'}}, stream: {events: 3}}\n";
    let files = [
        ("l/api/notes.proto", PROTO),
        ("l/shared/common/note.proto", NOTE),
        ("l/users.csv", "user\nann\nbo\n"),
    ];
    let job = Job {
        load,
        files: &files,
        server: &server,
    };
    let recordings = job.recordings();
    for round in halves(&recordings) {
        assert_eq!(round["outcomes"]["passed"], 10, "{round:#}");
        assert_eq!(round["events"]["events"], 30, "{round:#}");
    }
    let digest = |of: &Value| of["load"]["requests"][0]["descriptors_sha256"].clone();
    assert!(digest(&recordings[0]).is_string());
    assert_eq!(digest(&recordings[0]), digest(&recordings[1]));
    // A file that does not travel is named.
    let job = Job {
        files: &files[..1],
        ..job
    };
    for end in job.run() {
        assert_eq!(end.status.code(), Some(2));
        let talk = String::from_utf8_lossy(&end.stderr).into_owned();
        assert!(talk.contains("common/note.proto"), "{talk}");
    }
}

#[test]
fn descriptors_of_a_server_reach_the_second_generator_from_the_first() {
    let server = Server::of(&weigh(), &["null-server", "--grpc"]);
    let calls = [
        ("Say, message: {text: hello}, answer: {text: hello}", None),
        ("Chat, messages: [{text: hello}, {text: hells}]", Some(20)),
    ];
    for (call, events) in calls {
        let load = format!(
            "  http2: on\n  requests: {{grpc: {{reflection: on, contains: hell, method: null.Echo/{call}}}}}\n"
        );
        let job = Job {
            load: &load,
            files: &[],
            server: &server,
        };
        for round in halves(&job.recordings()) {
            assert_eq!(round["outcomes"]["passed"], 10, "{round:#}");
            assert_eq!(round["events"]["events"].as_u64(), events, "{round:#}");
        }
    }
}

#[test]
fn two_generators_send_events_and_conversations() {
    let server = Server::of(&weigh(), &["null-server", "--events", "3", "--gap", "1ms"]);
    let job = Job {
        load: "  stream: {framing: sse, events: 3}\n",
        files: &[],
        server: &server,
    };
    for round in halves(&job.recordings()) {
        assert_eq!(round["outcomes"]["passed"], 10, "{round:#}");
        assert_eq!(round["events"]["events"], 30, "{round:#}");
    }
    let server = Server::of(&shop(), &[]);
    let load = "  scenario:\n    - {name: log in, path: /login, json: {user: ann}, \
        expect: {status: 201}, capture: {token: {json: /token}}}\n    \
        - {name: talk, path: /notices, headers: {X-Token: '{{token}}'}, websocket: {replies: order, \
        messages: [{json: {mine: '{{token}}'}}, {file: bytes.bin}]}}\n";
    let job = Job {
        load,
        files: &[("l/bytes.bin", "bytes")],
        server: &server,
    };
    for end in job.run() {
        let recording = recording(&end);
        let rounds = recording["rounds"].as_array().expect("rounds");
        assert!(
            rounds
                .iter()
                .any(|round| round["iterations"]["completed"] == 10),
            "{rounds:#?}"
        );
    }
}

#[test]
fn a_cluster_refuses_files_beyond_its_limit_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lab = "question: Why?\nload: {rate: 10/s, duration: 1s, data: users.csv, \
        requests: [{path: '/{{user}}'}]}\ntarget: server\n\
        systems:\n  server: {image: 'server:1', port: 80}\n\
        baseline: {name: a}\nvariants: [{name: b}]\nexpect: {status: 200}\n";
    fs::write(folder.path().join("large.yaml"), lab).expect("a file");
    let check = |bytes: usize| {
        let row = format!("{}\n", "x".repeat(9_999));
        let rows = format!("user\n{}", row.repeat(bytes / row.len()));
        fs::write(folder.path().join("users.csv"), rows).expect("a file");
        let output = weigh_command()
            .current_dir(folder.path())
            .args(["check", "large.yaml", "--on", "kubernetes"])
            .output()
            .expect("weigh starts");
        Run::of(output)
    };
    // More than a Secret holds.
    check(4 << 20).shows("2 variants, possible in a cluster");
    let refused = check(34 << 20).exits_with(2);
    refused.says("expected at most 32 MiB of files for the pods of generators");
    refused.says("The largest file is `users.csv`");
}
