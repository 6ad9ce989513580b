//! A target that freezes or dies in the middle of a load. Rates refer to the time of the load, and a gate on
//! failures does not hide the crash.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::{PATIENCE, Run, Server, wait_until, weigh, weigh_command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A null server with 1 ms per response.
fn null_server() -> Server {
    Server::of(&weigh(), &["null-server", "--delay", "1ms"])
}

/// Starts a load on it, with a recording as JSON.
fn start(server: &Server, flags: &[&str]) -> Child {
    weigh_command()
        .arg("load")
        .arg(format!("http://{}/", server.address()))
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weigh starts")
}

/// Waits until the server has responded to some requests of the load.
fn is_loaded(server: &Server) {
    wait_until("the load has begun", PATIENCE, || {
        server.get("/seen")["requests"].as_u64().unwrap_or(0) > 50
    });
}

fn ended(child: Child) -> Run {
    Run::of(child.wait_with_output().expect("weigh ends"))
}

fn signal(server: &Server, signal: Signal) {
    kill_process(Pid::from_child(server.process()), signal).expect("it is alive");
}

const FOREVER_FAILING: [&str; 4] = [
    "--gate",
    "failures value < 99%",
    "--gate",
    "requests/s value > 1/s",
];

#[test]
fn the_rate_of_a_frozen_server_is_over_the_time_of_the_load() {
    let server = null_server();
    let flags = [
        "-c",
        "4",
        "-z",
        "3s",
        "--timeout",
        "500ms",
        "--format",
        "json",
    ];
    let load = start(&server, &flags);
    is_loaded(&server);
    signal(&server, Signal::STOP);
    let run = ended(load).exits_with(3);
    signal(&server, Signal::CONT);
    let result: Value = serde_json::from_str(&run.answer()).expect("JSON");
    let row = &result["summary"]["variants"][0];
    let passed = row["outcomes"]["passed"].as_f64().expect("a count");
    let rate = row["metrics"]["requests_per_s"]["value"].as_f64();
    let seconds = passed / rate.expect("a rate");
    // Timeouts end the load after its plan.
    assert!((3.0..10.0).contains(&seconds), "{passed} in {seconds} s");
    let checks = row["checks"].as_array().expect("checks");
    let stopped = checks.iter().find(|it| it["name"] == "stopped-answering");
    assert_eq!(stopped.expect("the check")["state"], "failed", "{row:#}");
    for check in checks {
        if matches!(
            check["name"].as_str(),
            Some("generator-pauses" | "generator-starved")
        ) {
            let share = check["figure"].as_f64().expect("a share");
            assert!(share <= 1.0, "{check:#}");
        }
    }
    // The JSON contains the reasons.
    let reasons = result["failures"].as_array().expect("failures");
    assert!(
        reasons.iter().any(|it| it["kind"] == "timeout"),
        "{reasons:?}"
    );
}

#[test]
fn a_gate_on_failures_does_not_cover_up_a_server_that_died() {
    let server = null_server();
    let flags: Vec<&str> = ["-c", "4", "-z", "3s"]
        .into_iter()
        .chain(FOREVER_FAILING)
        .collect();
    let load = start(&server, &flags);
    is_loaded(&server);
    signal(&server, Signal::KILL);
    let run = ended(load).exits_with(4);
    let text = run.answer();
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("The target stopped answering: no answer came after"),
        "{text}"
    );
    assert!(text.contains("holds: failures value < 99%"), "{text}");
    assert!(
        text.contains("NOT VALID: target stopped answering"),
        "{text}"
    );
}

#[test]
fn a_gate_on_failures_alone_leaves_the_exit_code_of_a_server_that_died() {
    let server = null_server();
    let flags: Vec<&str> = ["-r", "200", "-z", "3s"]
        .into_iter()
        .chain(["--gate", "failures value < 99%"])
        .collect();
    let load = start(&server, &flags);
    is_loaded(&server);
    signal(&server, Signal::KILL);
    let _ = ended(load).exits_with(3);
}

#[test]
fn a_slow_plan_has_its_own_rate() {
    let server = null_server();
    let mut command = weigh_command();
    command.args(["load", &format!("http://{}/", server.address())]);
    command.args(["-r", "1/s", "-z", "2s", "--format", "json"]);
    let run = Run::of(command.output().expect("weigh starts"));
    let result: Value = serde_json::from_str(&run.answer()).expect("JSON");
    let rate = &result["summary"]["variants"][0]["metrics"]["requests_per_s"]["value"];
    assert_eq!(rate.as_f64(), Some(1.0), "{result:#}");
}

#[test]
fn a_full_disk_is_no_place_for_an_answer() {
    let server = null_server();
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("it opens")
    };
    let into = |flags: &[&str], out: Stdio| -> Run {
        let mut command = Command::new(weigh());
        command.args(flags).stdout(out).stderr(Stdio::piped());
        Run::of(
            command
                .spawn()
                .and_then(Child::wait_with_output)
                .expect("weigh runs"),
        )
    };
    let url = format!("http://{}/", server.address());
    for flags in [
        &["load", &url, "-n", "20", "-c", "1"][..],
        &["load", &url, "-n", "20", "-c", "1", "--format", "json"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let _ = into(flags, full().into()).exits_with(5);
    }
    // A reader that closed the pipe has read all that it wanted.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let _ = into(&["completions", "bash"], writer.into()).exits_with(0);
}

/// The duration of a load that is over at once.
#[test]
fn a_number_of_requests_ends_a_load_with_the_last_outcome() {
    let server = Server::start(&["--delay-us", "20000"]);
    let result = server.json(&["-n", "10", "-c", "1", "-z", "20s"]);
    let rate = &result["summary"]["variants"][0]["metrics"]["requests_per_s"]["value"];
    let lasted = Duration::from_secs_f64(10.0 / rate.as_f64().expect("a rate"));
    assert!(lasted >= Duration::from_millis(200), "{lasted:?}");
    assert!(lasted < Duration::from_secs(20), "{lasted:?}");
}
