//! Loads that the run chooses: `rate: auto`, the default of `weigh ab` without a rate.

use std::fs;

use e2e::{Run, Server, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

fn null_server(flags: &[&str]) -> Server {
    Server::of(&weigh(), &[&["null-server"], flags].concat())
}

fn url(server: &Server) -> String {
    format!("http://{}/", server.address())
}

/// Runs `weigh` in a folder of its own. Also returns the recording, if there is one.
fn run(arguments: &[&str]) -> (Run, Option<Value>, TempDir) {
    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let output = weigh_command()
        .current_dir(folder.path())
        .args(arguments)
        .output()
        .expect("weigh starts");
    let recordings = fs::read_dir(folder.path().join("recordings"));
    let recording = recordings
        .ok()
        .and_then(|mut found| found.next())
        .map(|it| {
            let path = it.expect("it can be read").path().join("recording.json");
            serde_json::from_slice(&fs::read(path).expect("a recording")).expect("JSON")
        });
    (Run::of(output), recording, folder)
}

/// The rate of a recording, in requests per second.
fn rate(recording: &Value) -> f64 {
    let phase = &recording["load"]["model"]["phases"][0];
    let rate = phase["rate_from_per_s"].as_f64();
    rate.unwrap_or_else(|| panic!("no rate in {}", recording["load"]["model"]))
}

#[test]
fn a_server_that_answers_one_request_at_a_time_gets_no_queue() {
    // 12 ms each allow 83/s at most, and 100/s would be a queue that grows without end.
    let (fast, serial) = (null_server(&[]), null_server(&["--service", "12ms"]));
    let flags = ["-z", "3s", "--rounds", "6"];
    let (run, recording, _folder) =
        run(&[&["ab", &url(&fast), &url(&serial)], &flags[..]].concat());
    let run = run.ran();
    run.says("chose");
    run.says("answers about");
    let recording = recording.expect("it was recorded");
    let rate = rate(&recording);
    assert!((5.0..=16.0).contains(&rate), "{rate}");
    let chosen = &recording["load"]["chosen"];
    assert_eq!(chosen["variants"].as_array().map(Vec::len), Some(2));
    let alone = chosen["variants"][1]["alone_us"].as_f64();
    assert!(alone.is_some_and(|us| us >= 12_000.0), "{chosen}");
    // The fast server answers within the gap.
    let measured = &recording["measured"];
    assert_eq!(measured["leaves_at_any_time"].as_bool(), None, "{measured}");
}

#[test]
fn a_slow_server_that_only_waits_gets_no_more_in_flight_than_was_tried() {
    let servers = [
        null_server(&["--delay", "400ms"]),
        null_server(&["--delay", "400ms"]),
    ];
    let [a, b] = [url(&servers[0]), url(&servers[1])];
    let (run, recording, _folder) = run(&["ab", &a, &b, "-z", "3s", "--rounds", "6"]);
    run.ran()
        .says("requests in flight, and more were not tried");
    // 16 in flight for 400 ms each give 40/s.
    let recording = recording.expect("it was recorded");
    let rate = rate(&recording);
    assert!((20.0..=40.0).contains(&rate), "{rate}");
    // Each response outlasts the gap.
    let measured = &recording["measured"];
    assert_eq!(
        measured["leaves_at_any_time"].as_bool(),
        Some(true),
        "{measured}"
    );
}

#[test]
fn a_given_rate_is_kept_and_a_chosen_one_wants_no_count() {
    let server = null_server(&[]);
    let given = ["-r", "40", "-z", "600ms", "--rounds", "6"];
    let here = url(&server);
    let (run_given, recording, _folder) = run(&[&["ab", &here, &here], &given[..]].concat());
    run_given.ran();
    let recording = recording.expect("it was recorded");
    assert_eq!(rate(&recording), 40.0);
    assert_eq!(recording["load"]["chosen"], Value::Null);

    let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    let lab = folder.path().join("x.yaml");
    let text = format!(
        "question: Why?\nload: {{rate: auto, count: 10}}\ntarget: a\nsystems: {{a: {{url: '{here}'}}}}\n\
         baseline: {{name: a}}\nvariants: [{{name: b}}]\n"
    );
    fs::write(&lab, text).expect("a lab");
    let path = lab.display().to_string();
    let (refused, ..) = run(&["check", &path]);
    refused
        .exits_with(2)
        .says("`count` cannot be used with `rate: auto`");
}

#[test]
fn a_check_predicts_how_the_run_will_go() {
    let (a, b) = (
        null_server(&["--delay", "5ms"]),
        null_server(&["--delay", "6ms"]),
    );
    let here = [url(&a), url(&b)];
    let (kept, _, folder) = run(&["ab", &here[0], &here[1], "--write-lab", "kept"]);
    kept.ran();
    let lab = folder.path().join("kept/ab.yaml").display().to_string();
    let (checked, ..) = run(&["check", &lab]);
    let checked = checked.exits_with(0);
    // 5 ms at 100/s give 0.5 requests in flight.
    checked.shows("requests in flight: 0.5 of");
    checked.shows("8 rounds of about 2.");
    checked.shows("smallest difference that the run would probably show");
}
