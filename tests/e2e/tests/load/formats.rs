//! The output of `weigh load` in every layout, and the same output from its recording.

use std::path::Path;

use e2e::{Run, Server, World, weigh_command};
use serde_json::{Value, json};

const FORMATS: [&str; 13] = [
    "text",
    "json",
    "csv",
    "md",
    "html",
    "hgrm",
    "ab",
    "vegeta",
    "vegeta-json",
    "k6",
    "bombardier",
    "bombardier-json",
    "artillery",
];

fn report(recording: &Path, flags: &[&str]) -> Run {
    let output = weigh_command()
        .arg("report")
        .arg(recording)
        .args(flags)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

fn parsed(run: &Run) -> Value {
    serde_json::from_str(&run.answer()).unwrap_or_else(|error| panic!("{error}: {}", run.answer()))
}

#[test]
fn one_real_run_is_laid_out_as_every_other_tool_would() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = folder.path().join("run.json");
    let server = Server::start(&[]);
    let flags = ["-n", "200", "-c", "4", "-d", "{}", "--format", "k6"];
    let path = recording.to_str().expect("a path of ours");
    let live = server.load(&[&flags[..], &["--record", path]].concat());
    let live = live.ran();
    let of = |format: &str| report(&recording, &["--format", format]).exits_with(0);

    assert_eq!(
        live.answer(),
        of("k6").answer(),
        "a recording loses nothing"
    );
    let k6 = parsed(&live);
    assert_eq!(k6["metrics"]["http_reqs"]["count"], 200);
    for key in ["avg", "min", "med", "max", "p(90)", "p(95)"] {
        assert!(k6["metrics"]["http_req_duration"][key].is_number(), "{key}");
    }
    let vegeta = parsed(&of("vegeta-json"));
    assert_eq!(vegeta["requests"], 200);
    assert_eq!(vegeta["status_codes"], json!({"200": 200}));
    assert_eq!(vegeta["success"], 1.0);
    assert_eq!(vegeta["bytes_in"]["mean"], 28.0, "the fixture's body");
    assert!(vegeta["latencies"]["99th"].is_u64());
    let bombardier = parsed(&of("bombardier-json"));
    assert_eq!(bombardier["result"]["req2xx"], 200);
    assert_eq!(bombardier["spec"]["numberOfConnections"], 4);
    let artillery = parsed(&of("artillery"));
    assert_eq!(artillery["aggregate"]["counters"]["http.codes.200"], 200);
    assert!(artillery["aggregate"]["summaries"]["http.response_time"]["p99"].is_number());
    assert_eq!(passed(&parsed(&of("json"))), 200);
    for (format, words) in [
        (
            "ab",
            &["Complete requests:      200", "Concurrency Level:      4"][..],
        ),
        (
            "vegeta",
            &["Requests", "[total, rate, throughput]", "200:200"],
        ),
        ("bombardier", &["Latency Distribution", "2xx - 200"]),
        ("hgrm", &["Percentile", "#[Mean"]),
        (
            "text",
            &["Requests/s", "200 requests", "Latency distribution"],
        ),
        ("csv", &["lab,variant,verdict,metric,value"]),
    ] {
        let answer = of(format).answer();
        for word in words {
            assert!(answer.contains(word), "{format}: no `{word}` in\n{answer}");
        }
    }
}

fn passed(result: &Value) -> u64 {
    let outcomes = &result["summary"]["variants"][0]["outcomes"];
    outcomes["passed"].as_u64().expect("a count")
}

#[test]
fn every_layout_is_printed_by_the_load_itself() {
    let server = Server::start(&[]);
    for format in FORMATS {
        let run = server.load(&["-n", "20", "-c", "2", "--format", format]);
        assert!(!run.ran().answer().is_empty(), "{format}");
    }
}

#[test]
fn no_credential_is_in_a_recording_or_in_any_layout_of_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = folder.path().join("run.json");
    let path = recording.to_str().expect("a path of ours");
    let server = Server::start(&[]);
    let flags = ["-n", "20", "-H", "Authorization: Bearer hush-hush", "-H"];
    let rest = ["X-Api-Key: hush-hush", "-HCookie: id=hush-hush", "--record"];
    server.load(&[&flags[..], &rest, &[path]].concat()).ran();
    let text = std::fs::read_to_string(&recording).expect("it is written");
    assert!(!text.contains("hush-hush"), "{text}");
    let recorded: Value = serde_json::from_str(&text).expect("JSON");
    let headers = recorded["load"]["requests"][0]["headers"].to_string();
    assert_eq!(headers.matches("(hidden)").count(), 3, "{headers}");
    let command = recorded["command"].to_string();
    assert!(command.contains("Authorization: (hidden)"), "{command}");
    for format in FORMATS {
        let answer = report(&recording, &["--format", format])
            .exits_with(0)
            .answer();
        assert!(!answer.contains("hush-hush"), "{format}: {answer}");
    }
}

#[test]
fn a_foreign_recording_gives_a_terminal_no_orders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recording = folder.path().join("run.json");
    let path = recording.to_str().expect("a path of ours");
    let server = Server::start(&[]);
    server.load(&["-n", "20", "--record", path]).ran();
    let text = std::fs::read_to_string(&recording).expect("it is written");
    let mut foreign: Value = serde_json::from_str(&text).expect("JSON");
    let orders = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m";
    foreign["load"]["url"] = format!("http://a/{orders}").into();
    foreign["load"]["requests"][0]["name"] = orders.into();
    foreign["environment"]["kernel"] = orders.into();
    std::fs::write(&recording, foreign.to_string()).expect("it is ours");
    for kind in ["load", "lab"] {
        foreign["kind"] = kind.into();
        std::fs::write(&recording, foreign.to_string()).expect("it is ours");
        let answer = report(&recording, &["--format", "text"])
            .exits_with(0)
            .answer();
        assert!(answer.contains("]0;owned"), "it is shown: {answer}");
        let is_order = |character: char| character.is_control() && character != '\n';
        assert!(!answer.contains(is_order), "{kind}: {answer:?}");
    }
}

#[test]
fn failed_requests_are_laid_out_too() {
    let server = Server::start(&["--answer", "unavailable"]);
    let run = server.load(&["-n", "20", "-c", "2", "--format", "vegeta-json"]);
    let vegeta = parsed(&run.exits_with(3));
    assert_eq!(vegeta["status_codes"], json!({"503": 20}));
    assert_eq!(vegeta["success"], 0.0);
}

#[test]
fn a_variant_of_a_lab_is_laid_out_by_its_name() {
    let world = World::new().variant("slow", "server.delay: 2000");
    let Some(run) = world.believed() else { return };
    let folder = run.recording_folder();
    let count = |flags: &[&str]| {
        let run = report(&folder, &[&["--format", "k6"], flags].concat()).exits_with(0);
        let k6 = parsed(&run);
        k6["metrics"]["http_reqs"]["count"]
            .as_u64()
            .expect("a count")
    };
    assert_eq!(count(&[]), count(&["--variant", "honest"]));
    assert!(count(&["--variant", "slow"]) < count(&[]), "2 ms each");
    let wrong = report(&folder, &["--format", "k6", "--variant", "no"]).exits_with(2);
    wrong.says("found `no`");
    let pointless = report(&folder, &["--variant", "slow"]).exits_with(2);
    pointless.says("--variant");
}
