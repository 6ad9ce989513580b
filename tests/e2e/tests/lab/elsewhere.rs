//! Systems that run already. They are compared, and neither started nor stopped.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use e2e::{ATTEMPTS, Run, Server, World, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::null_servers::is_found;

/// A null server that the test started. It does not belong to the keeper.
fn null_server(flags: &[&str]) -> Server {
    let all: Vec<&str> = ["null-server"]
        .into_iter()
        .chain(flags.iter().copied())
        .collect();
    Server::of(&weigh(), &all)
}

/// A run of `weigh ab` in a folder of its own.
struct Comparison {
    run: Run,
    folder: TempDir,
}

impl Comparison {
    fn of(a: &str, b: &str, flags: &[&str]) -> Comparison {
        let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
        let output = weigh_command()
            .current_dir(folder.path())
            .args(["ab", a, b])
            .args(flags)
            .output()
            .expect("weigh starts");
        let run = Run::of(output);
        Comparison { run, folder }
    }

    fn recording_folder(&self) -> PathBuf {
        let recordings = self.folder.path().join("recordings");
        let mut folders = fs::read_dir(recordings).expect("it was recorded");
        let first = folders.next().expect("one recording");
        first.expect("it can be read").path()
    }

    fn recording(&self) -> Value {
        let text = fs::read(self.recording_folder().join("recording.json"));
        serde_json::from_slice(&text.expect("a recording")).expect("JSON")
    }
}

fn url(server: &Server) -> String {
    format!("http://{}/", server.address())
}

/// Short, for tests that check actions and not figures.
const SHORT: [&str; 4] = ["-z", "1200ms", "--rounds", "6"];

#[test]
fn two_urls_are_compared_and_run_on() {
    let (a, b) = (null_server(&[]), null_server(&[]));
    let pid = a.process().id().to_string();
    let flags = [&SHORT[..], &["--attach-a", &pid]].concat();
    let comparison = Comparison::of(&url(&a), &url(&b), &flags);
    let run = &comparison.run;
    run.shows(&format!(
        "What does {} cost, compared with {}?",
        b.address(),
        a.address()
    ));
    run.shows("ran before and kept running");
    let mut full = weigh_command();
    full.arg("report")
        .arg(comparison.recording_folder())
        .arg("--full");
    let full = Run::of(full.output().expect("weigh starts"));
    full.shows(&format!("ran already at http://{}", b.address()));
    run.shows("all variants side by side");
    let recording = comparison.recording();
    assert_eq!(recording["load"]["keeps_systems"], true);
    assert_eq!(recording["lab"]["files"][0]["path"], "ab.yaml");
    let system = |variant: usize| recording["variants"][variant]["systems"][0].clone();
    assert_eq!(system(0)["url"], url(&a).trim_end_matches('/'));
    assert_eq!(system(1)["url"], url(&b).trim_end_matches('/'));
    // An attached program has a cost. A program that is not attached has no cost that could be wrong.
    let rounds = recording["rounds"].as_array().expect("rounds");
    assert_eq!(rounds.len(), 12);
    for round in rounds {
        let systems = round["systems"].as_array().expect("systems");
        if round["variant"] == a.address() {
            assert_eq!(systems[0]["source"], "clock of the process");
            assert!(systems[0]["cpu_us"].as_u64() > Some(0), "{systems:?}");
        } else {
            assert!(systems.is_empty(), "{systems:?}");
        }
    }
    // Both still respond.
    for server in [&a, &b] {
        assert!(server.get("/seen")["requests"].as_u64() > Some(0));
    }
}

#[test]
fn a_planted_delay_is_found_between_two_urls() {
    let (a, b) = (null_server(&[]), null_server(&["--delay", "300us"]));
    for _ in 0..ATTEMPTS {
        let comparison = Comparison::of(&url(&a), &url(&b), &["-z", "6s"]);
        if is_found(&comparison.recording_folder(), 150.0, 600.0) {
            comparison.run.shows("slower");
            judged::ran();
            return;
        }
    }
    judged::not_run(e2e::MACHINE_UNFIT);
}

#[test]
fn two_urls_that_answer_differently_are_told_apart_and_not_loaded() {
    let (a, b) = (
        null_server(&["--answer", "one"]),
        null_server(&["--answer", "two"]),
    );
    let comparison = Comparison::of(&url(&a), &url(&b), &SHORT);
    let run = comparison.run.exits_with(3);
    run.shows("one");
    run.shows("two");
    // Only some requests were sent, to see the response, and no load.
    let seen = b.get("/seen")["requests"].as_u64().expect("a number");
    assert!(seen < 20, "{seen} requests");
    let comparison = Comparison::of(&url(&a), &url(&b), &[&SHORT[..], &["--different"]].concat());
    comparison.run.shows("all variants side by side");
}

#[test]
fn nothing_there_is_said_with_its_address() {
    let a = null_server(&[]);
    let lab = World::of_lab(&format!(
        "question: What?\nload: {{connections: 1, duration: 100ms}}\ntarget: a\nsystems:\n  a: {{url: \"{}\"}}\n  \
         b: {{url: \"http://127.0.0.1:1\", ready: {{within: 200ms}}}}\nbaseline: {{name: a}}\nvariants:\n  - {{name: b, target: b}}\n",
        url(&a)
    ));
    let run = lab.run().exits_with(5);
    run.shows("`b` does not answer at 127.0.0.1:1");
    run.shows("The lab does not start it");
}

#[test]
fn another_machine_is_not_loaded_without_consent_and_not_without_bounds() {
    // An address for documentation (RFC 5737), without a server.
    let (here, there) = (null_server(&[]), "http://192.0.2.1:9/");
    let refused = |flags: &[&str], words: &str| {
        let comparison = Comparison::of(&url(&here), there, flags);
        comparison.run.exits_with(2).says(words);
        let left = fs::read_dir(comparison.folder.path()).expect("a folder");
        assert_eq!(left.count(), 0, "a refused run leaves nothing: {flags:?}");
    };
    refused(&[], "add `--yes-load 192.0.2.1`");
    refused(&["--yes-load", "192.0.2.2"], "add `--yes-load 192.0.2.1`");
    let consent = ["--yes-load", "192.0.2.1"];
    refused(
        &[&consent[..], &["-r", "501"]].concat(),
        "at most 500 requests a second",
    );
    refused(
        &[&consent[..], &["-c", "17"]].concat(),
        "at most 16 connections",
    );
    refused(
        &[&consent[..], &["-z", "16m"]].concat(),
        "at most 15 minutes",
    );
}

/// The URL of a server that reports overload after the given number of responses.
fn soon_busy(answers: u32) -> String {
    busy(move |number| number >= answers)
}

/// The URL of a server that responds with 429 to the requests of these numbers, counted from 0.
fn busy(is_refused: impl Fn(u32) -> bool + Copy + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let given = Arc::new(AtomicU32::new(0));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let given = Arc::clone(&given);
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                    let status = match is_refused(given.fetch_add(1, Ordering::Relaxed)) {
                        false => "200 OK",
                        true => "429 Too Many Requests",
                    };
                    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    format!("http://{address}/")
}

#[test]
fn a_server_that_asks_for_less_ends_the_run() {
    let busy = soon_busy(30);
    let here = null_server(&["--answer", "ok"]);
    let comparison = Comparison::of(&url(&here), &busy, &["-z", "60s"]);
    let recording = comparison.recording();
    comparison.run.exits_with(3).shows("429");
    let rounds = recording["rounds"].as_array().expect("rounds");
    let sent: u64 = rounds
        .iter()
        .map(|round| round["planned"].as_u64().unwrap_or_default())
        .sum();
    assert!(sent < 2_000, "{sent} of 12,000 requests were sent");
}

#[test]
fn an_answer_that_is_to_be_compared_ends_nothing() {
    let (a, b) = (soon_busy(0), soon_busy(0));
    let comparison = Comparison::of(&a, &b, &[&SHORT[..], &["--status", "429"]].concat());
    comparison.run.ran().shows("all variants side by side");
}

#[test]
fn a_limiter_beyond_its_limit_has_counts_and_latencies_of_both_statuses() {
    let [a, b] = [
        busy(|number| number % 4 == 3),
        busy(|number| number % 4 == 3),
    ];
    for load in [["-c", "2"], ["-r", "100"]] {
        let flags = [&SHORT[..], &["--status", "200,429"], &load].concat();
        let comparison = Comparison::of(&a, &b, &flags);
        let recording = comparison.recording();
        comparison.run.ran();
        let rounds = recording["rounds"].as_array().expect("rounds");
        let count = |round: &Value, status: &str| round["statuses"][status].as_u64().unwrap_or(0);
        for round in rounds {
            let [right, refused] = ["200", "429"].map(|status| count(round, status));
            assert_eq!(Some(right + refused), round["outcomes"]["passed"].as_u64());
            // Every fourth request was refused. The requests that count may be any of them.
            assert!(right > refused && refused > 0, "{right} {refused}");
            let latencies = round["latency_by_status_ns_hdr"].as_object();
            assert_eq!(latencies.map(serde_json::Map::len), Some(2), "{round}");
        }
    }
}

#[test]
fn the_lab_of_a_comparison_can_be_kept_and_run() {
    let (a, b) = (null_server(&[]), null_server(&[]));
    let flags = [&SHORT[..], &["--write-lab", "kept", "-d", "{}"]].concat();
    let comparison = Comparison::of(&url(&a), &url(&b), &flags);
    comparison.run.says("weigh lab kept/ab.yaml");
    let kept: &Path = &comparison.folder.path().join("kept");
    assert_eq!(fs::read(kept.join("ab.body")).expect("the body"), b"{}");
    let output = weigh_command()
        .current_dir(comparison.folder.path())
        .args(["lab", "kept/ab.yaml"])
        .output()
        .expect("weigh starts");
    Run::of(output).shows("all variants side by side");
}

#[test]
fn a_service_of_a_cluster_is_not_loaded_without_consent_or_a_rate() {
    let urls = ["http://web-a.shop.svc/", "http://web-b.shop.svc/"];
    let asked = |flags: &[&str]| {
        let flags = [&["--on", "kubernetes"], flags].concat();
        Comparison::of(urls[0], urls[1], &flags).run
    };
    let unasked = asked(&["--rate", "10"]).exits_with(2);
    unasked.says("`web-a.shop.svc` is a host that this run does not start");
    unasked.says("--yes-load web-a.shop.svc");
    let one = asked(&["--rate", "10", "--yes-load", "web-a.shop.svc"]).exits_with(2);
    one.says("--yes-load web-b.shop.svc");
    let both = [
        "--yes-load",
        "web-a.shop.svc",
        "--yes-load",
        "web-b.shop.svc",
    ];
    let much = asked(&[&["--rate", "5000"], &both[..]].concat()).exits_with(2);
    much.says("expected at most 500 requests a second, found 5000");
    let chosen = asked(&both).exits_with(2);
    chosen.says("expected `--rate` or `--connections` with `--on kubernetes`");
    let own = Comparison::of(
        "http://localhost:8080/",
        "http://127.0.0.1:8081/",
        &["--on", "kubernetes", "--rate", "10"],
    );
    let own = own.run.exits_with(2);
    own.says("the generator's own pod");
}
