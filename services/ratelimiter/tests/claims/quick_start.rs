//! Tests that the curl lines of the README work with the memory store and with Redis.

use std::process::Command;

use serde_json::Value;
use test_client::Process;

use crate::server::start;
use test_client::Redis;

/// Runs every line that starts with `curl`. Returns the output of each line.
fn run_readme(server: &Process) -> Vec<String> {
    let readme = include_str!("../../README.md").replace("\\\n", " ");
    let lines = readme.lines().filter(|line| line.starts_with("curl "));
    let printed: Vec<_> = lines
        .map(|line| {
            let line = line.replace("localhost:4000", &server.address);
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            assert!(output.status.success(), "{line}");
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(printed.len() >= 4, "the README lost its lines");
    printed
}

fn check(printed: &[String], store: &str) {
    let json = |text: &String| -> Value { serde_json::from_str(text).unwrap() };
    let response = &json(&printed[0])["data"]["ratelimit"];
    assert_eq!(response["ipFrom"], "10.0.0.1");
    assert_eq!(response["isRateLimited"], false);
    let info = json(&printed[1]);
    assert!(
        info["data"]["serverinfo"]["hostIPs"]
            .as_str()
            .unwrap()
            .contains("127.0.0.1")
    );
    assert!(printed[2].contains("pass"));
    let counted = format!(
        "ratelimiter_decisions_total{{result=\"passed\",store=\"{store}\",rule=\"fixed\"}} 1\n"
    );
    assert!(printed[3].contains(&counted), "{}", printed[3]);
}

#[test]
fn the_lines_of_the_readme_work_on_both_stores() {
    if !judged::is_installed("curl") {
        return;
    }
    check(&run_readme(&start(&[])), "memory");
    let redis = Redis::start();
    let flags = ["--redis-url", &redis.url(), "--store-deadline-ms", "30000"];
    check(&run_readme(&start(&flags)), "redis");
}
