//! `weigh load` without a free local port, in a network namespace with few ports.

use std::path::Path;
use std::process::Command;

use e2e::{Run, fixture, weigh_command};
use serde_json::Value;

/// Number of local ports in the namespace. The server listens outside of this range.
const PORTS: u32 = 100;

/// Starts a server and a load in a network namespace of their own. `$@` is the load.
const SCRIPT: &str = r#"
set -eu
ip link set lo up
echo "40000 $((40000 + PORTS - 1))" > /proc/sys/net/ipv4/ip_local_port_range
echo 0 > /proc/sys/net/ipv4/tcp_tw_reuse
"$FIXTURE" --listen 127.0.0.1:8080 > /dev/null 2>&1 &
server=$!
trap 'kill "$server"' EXIT
tries=0
until "$WEIGH" load http://127.0.0.1:8080/ -c 1 -n 1 > /dev/null 2>&1; do
  tries=$((tries + 1))
  test "$tries" -lt 50
  sleep 0.1
done
"$@"
"#;

/// Runs `weigh load` in the namespace. `None` if this user may not create one.
fn load(flags: &[&str]) -> Option<Run> {
    let weigh = weigh_command();
    let weigh = Path::new(weigh.get_program());
    let may = Command::new("unshare").args(["--net", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        judged::absent("only root may create a network namespace");
        return None;
    }
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", SCRIPT, "sh"])
        .arg(weigh)
        .args(["load", "http://127.0.0.1:8080/", "--format", "json"])
        .args(flags)
        .env("PORTS", PORTS.to_string())
        .env("WEIGH", weigh)
        .env("FIXTURE", fixture())
        .output()
        .expect("unshare starts");
    Some(Run::of(output))
}

#[test]
fn ports_that_run_out_are_the_generators_fault_and_the_remedy_is_told() {
    let Some(run) = load(&["-c", "4", "-n", "200", "--no-keep-alive"]) else {
        return;
    };
    let run = run.exits_with(3);
    let result: Value = serde_json::from_str(&run.answer())
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()));
    let outcomes = &result["summary"]["variants"][0]["outcomes"];
    let of_generator = outcomes["failed"]["local_port"].as_u64().unwrap_or(0);
    assert!(of_generator > 0, "{outcomes:#}");
    // The server accepted every connection, so it has no part in the failures.
    assert!(
        outcomes["failed"]["connect"].as_u64().unwrap_or(0) == 0,
        "{outcomes:#}"
    );
    let told = format!("{}{}", run.answer(), run.talk());
    assert!(told.contains("no free local port"), "{told}");
}

#[test]
fn a_kept_connection_needs_one_port() {
    let Some(run) = load(&["-c", "4", "-n", "200"]) else {
        return;
    };
    let run = run.exits_with(0);
    let result: Value = serde_json::from_str(&run.answer()).expect("JSON");
    let outcomes = &result["summary"]["variants"][0]["outcomes"];
    assert_eq!(outcomes["passed"], 200, "{outcomes:#}");
}
