//! `weigh load` from the view of a user of other load generators.

use e2e::{Run, Server, weigh_command};
use serde_json::Value;

fn passed(result: &Value) -> u64 {
    let outcomes = &result["summary"]["variants"][0]["outcomes"];
    outcomes["passed"].as_u64().expect("a count")
}

#[test]
fn a_count_is_kept_to_the_request() {
    let server = Server::start(&[]);
    let result = server.json(&["-c", "7", "-n", "1001", "-d", "{}", "-t", "2"]);
    assert_eq!(passed(&result), 1001, "{result:#}");
}

#[test]
fn a_rate_is_planned_and_kept() {
    let server = Server::start(&[]);
    let result = server.json(&["-r", "200/s", "-z", "1s", "-d", "{}"]);
    assert_eq!(passed(&result), 200, "{result:#}");
}

#[test]
fn graphql_errors_in_a_200_are_wrong_answers() {
    let server = Server::start(&["--answer", "errors"]);
    let run = server.load(&["-n", "20", "-c", "2", "-d", "{}", "--expect-graphql"]);
    let run = run.exits_with(3);
    run.shows("graphql");
}

#[test]
fn the_same_answers_are_right_when_only_the_status_counts() {
    let server = Server::start(&["--answer", "errors"]);
    let _ = server.load(&["-n", "20", "-c", "2", "-d", "{}"]).ran();
}

#[test]
fn a_target_that_is_not_there_is_said_so() {
    // Port 9 of loopback (discard) is not in use.
    let output = weigh_command()
        .args(["load", "http://127.0.0.1:9/", "-n", "3", "-c", "1"])
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(3);
    run.shows("connect");
}

#[test]
fn a_load_without_an_answer_has_no_figures_of_one() {
    let output = weigh_command()
        .args(["load", "http://127.0.0.1:1/", "-z", "300ms"])
        .output();
    let run = Run::of(output.expect("weigh starts")).exits_with(3);
    run.shows("100 % of the requests had no complete answer");
    run.shows("Latency – – –");
    // The time of the load can be printed. The cost of a request is unknown.
    let text = run.answer();
    assert!(!text.contains(" 0 us"), "{text}");
}

#[test]
fn the_mistakes_of_a_scenario_have_a_sentence_before_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bad.yaml");
    for (text, mistake) in [
        ("steps:\n  - path: /\n   x: [\n", "error: this is not YAML"),
        ("stepz:\n  - path: /\n", "error: unknown key `stepz`"),
    ] {
        std::fs::write(&path, text).expect("a file");
        let output = weigh_command()
            .args(["load", "http://127.0.0.1:1/", "-n", "1", "--scenario"])
            .arg(&path)
            .output();
        let run = Run::of(output.expect("weigh starts")).exits_with(2);
        assert!(
            run.talk().starts_with("weigh: the scenario has mistakes\n"),
            "{}",
            run.talk()
        );
        run.says(mistake);
    }
}

#[test]
fn other_protocols_are_refused_with_help() {
    for url in ["ftp://127.0.0.1/", "api.test/x"] {
        let output = weigh_command()
            .args(["load", url])
            .output()
            .expect("weigh starts");
        let run = Run::of(output).exits_with(2);
        run.says("http://127.0.0.1:8080/path");
    }
}
