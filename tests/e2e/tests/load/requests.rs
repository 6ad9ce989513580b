//! Requests of `weigh load` and their times: targets, phases, expected headers.

use std::io::Write as _;
use std::process::Stdio;

use e2e::{Run, Server, shop, weigh_command};
use serde_json::Value;

fn passed(result: &Value) -> u64 {
    let outcomes = &result["summary"]["variants"][0]["outcomes"];
    outcomes["passed"].as_u64().expect("a count")
}

/// Runs `weigh load --targets -` on this text.
fn targets(text: &str, flags: &[&str]) -> Run {
    let mut child = weigh_command()
        .args(["load", "--targets", "-", "--format", "json"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weigh starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    stdin.write_all(text.as_bytes()).expect("weigh reads");
    drop(stdin);
    Run::of(child.wait_with_output().expect("weigh ends"))
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.answer())
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()))
}

#[test]
fn phases_are_planned_one_after_the_other() {
    let server = Server::start(&[]);
    // 0.5 s at 100/s, then from 100/s to 300/s in 0.5 s, which is 200/s on average.
    let phases = "500ms@100/s,500ms@100/s..300/s";
    assert_eq!(passed(&server.json(&["--phases", phases])), 150);
    assert_eq!(passed(&server.json(&["--phases", phases, "-n", "70"])), 70);
}

#[test]
fn poisson_gaps_go_with_phases_and_repeat_with_their_seed() {
    let server = Server::start(&[]);
    let run = |seed: &str| {
        let flags = [
            "--phases",
            "1s@100/s",
            "--arrival",
            "poisson",
            "--seed",
            seed,
        ];
        passed(&server.json(&flags))
    };
    assert_eq!(run("3"), run("3"));
}

#[test]
fn a_count_and_a_duration_end_the_load_at_whichever_comes_first() {
    let server = Server::start(&[]);
    for way in [&[][..], &["-r", "1000"]] {
        let both = |count: &str, duration: &str| {
            let flags = [way, &["-n", count, "-z", duration]].concat();
            passed(&server.json(&flags))
        };
        assert_eq!(both("50", "1h"), 50);
        assert!(both("1000000000", "100ms") < 1_000_000_000);
    }
}

#[test]
fn a_bare_rate_is_per_second() {
    let server = Server::start(&[]);
    assert_eq!(passed(&server.json(&["-r", "100", "-z", "500ms"])), 50);
}

#[test]
fn targets_are_sent_in_rotation() {
    let server = Server::start(&[]);
    let address = server.address();
    let text = format!("GET http://{address}/a\nX: y\n\nPOST http://{address}/graphql\n");
    let result = json(&targets(&text, &["-n", "10", "-c", "1"]).ran());
    assert_eq!(passed(&result), 10);
    let requests = result["load"]["requests"].as_array();
    assert_eq!(requests.map(Vec::len), Some(2), "{result:#}");
    let lines = format!("{{\"method\": \"GET\", \"url\": \"http://{address}/a\"}}\n");
    assert_eq!(passed(&json(&targets(&lines, &["-n", "10"]).ran())), 10);
}

#[test]
fn targets_have_weights_where_they_are_given() {
    let server = Server::of(&shop(), &[]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("targets.json");
    let target = |path: &str, rest: &str| {
        let address = server.address();
        format!("{{\"method\":\"GET\",\"url\":\"http://{address}/{path}\"{rest}}}\n")
    };
    let text = target("often", ",\"weight\":3") + &target("seldom", "");
    std::fs::write(&file, text).expect("it can be written");
    let output = weigh_command()
        .args(["load", "-n", "40", "-c", "1", "--targets"])
        .arg(&file)
        .output()
        .expect("weigh starts");
    let _ = Run::of(output).ran();
    let seen = server.get("/seen");
    assert_eq!(seen["by_path"]["/often"], 30, "{seen:#}");
    assert_eq!(seen["by_path"]["/seldom"], 10);
}

#[test]
fn flags_of_other_tools_mean_what_they_mean_there_or_are_refused() {
    let server = Server::start(&[]);
    let result = server.json(&["-R", "100", "-z", "100ms", "-t", "1"]);
    assert_eq!(passed(&result), 10, "{result:#}");
    let run = server.load(&["-d", "30s"]).exits_with(2);
    run.says("write -z 30s");
}

#[test]
fn targets_on_two_hosts_are_refused() {
    let text = "GET http://127.0.0.1:1/\n\nGET http://127.0.0.1:2/\n";
    let run = targets(text, &[]).exits_with(2);
    let words = "line 3: expected a target on `127.0.0.1:1`";
    run.says(words);
}

#[test]
fn an_expected_header_is_looked_for_in_every_answer() {
    let server = Server::start(&[]);
    let load = |header: &str| server.load(&["-n", "5", "-c", "1", "--expect-header", header]);
    let _ = load("Content-Type: application/json").ran();
    let run = load("Content-Type: text/html").exits_with(3);
    run.shows("expected header");
}

#[test]
fn what_differs_by_nature_can_be_left_out_of_the_comparison() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let known = folder.path().join("known.json");
    std::fs::write(&known, r#"{"data":{"test":{"id":"7"}}}"#).expect("it can be written");
    let server = Server::start(&[]);
    let known = known.to_str().expect("a path of ours");
    let load = |flags: &[&str]| {
        server.load(&[&["-n", "5", "-c", "1", "--expect-body", known], flags].concat())
    };
    let run = load(&[]).exits_with(3);
    run.shows("expected the known body");
    let _ = load(&["--ignore", "/data/test/id"]).ran();
    let run = load(&["--ignore", "/data/other"]).exits_with(3);
    run.shows("`/data/test/id`");
    let run = load(&["--ignore", "id"]).exits_with(2);
    run.says("write `/id`");
}

#[test]
fn rows_of_a_data_set_are_filled_into_requests() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("users.csv");
    std::fs::write(&file, "id,name\n1,Ann\n2,Bo\n").expect("it can be written");
    let file = file.to_str().expect("a path of ours");
    // The recording keeps requests with a wrong response, and these show the bytes that were sent.
    let server = Server::start(&["--answer", "unavailable"]);
    let kept = |flags: &[&str]| {
        let recording = folder.path().join("run.json");
        let path = recording.to_str().expect("a path of ours");
        let always = [
            "-n",
            "4",
            "-c",
            "1",
            "-d",
            "{\"id\": {{id}}}",
            "--record",
            path,
        ];
        let run = server.load(&[&always, flags].concat());
        let recording = std::fs::read(recording).unwrap_or_default();
        let recording: Value = serde_json::from_slice(&recording).unwrap_or_default();
        let failures = recording["rounds"][0]["failures"].as_array().cloned();
        let requests = failures.into_iter().flatten();
        let requests = requests.filter_map(|it| Some(it["request"].as_str()?.to_owned()));
        requests.collect::<String>() + &run.talk()
    };
    let sent = kept(&["--data-set", file, "-H", "X-Name: {{name}}"]);
    assert!(
        sent.contains("X-Name: Ann") && sent.contains("X-Name: Bo"),
        "{sent}"
    );
    assert!(
        sent.contains("{\"id\": 1}") && sent.contains("{\"id\": 2}"),
        "{sent}"
    );
    let wrong = kept(&["--data-set", file, "-H", "X: {{unknown}}"]);
    assert!(
        wrong.contains("no column `unknown`. The data has `id`, `name`"),
        "{wrong}"
    );
    let plain = kept(&["-H", "X: {{index}}"]);
    assert!(
        plain.contains("X: 0") && plain.contains("{\"id\": {{id}}}"),
        "{plain}"
    );
}
