//! `weigh load` as a user of other load generators meets it.

use std::process::{Child, Command, Stdio};

use e2e::{PATIENCE, Run, fixture, wait_until, weigh};
use serde_json::Value;

/// A fixture server of a test's own, ended with it.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(flags: &[&str]) -> Server {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        let address = format!("127.0.0.1:{port}");
        let child = Command::new(fixture())
            .args(["--listen", &address])
            .args(flags)
            .stderr(Stdio::null())
            .spawn()
            .expect("the fixture starts");
        wait_until("the fixture listens", PATIENCE, || {
            std::net::TcpStream::connect(&address).is_ok()
        });
        Server { child, address }
    }

    fn load(&self, flags: &[&str]) -> Run {
        let output = Command::new(weigh())
            .arg("load")
            .arg(format!("http://{}/graphql", self.address))
            .args(flags)
            .output()
            .expect("weigh starts");
        Run::of(output)
    }

    fn json(&self, flags: &[&str]) -> Value {
        let flags: Vec<&str> = flags.iter().copied().chain(["--format", "json"]).collect();
        let run = self.load(&flags);
        serde_json::from_str(&run.answer())
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The child may have ended by itself; either way it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
    assert!(run.answer().contains("graphql"), "{}", run.answer());
}

#[test]
fn the_same_answers_are_right_when_only_the_status_counts() {
    let server = Server::start(&["--answer", "errors"]);
    let _ = server
        .load(&["-n", "20", "-c", "2", "-d", "{}"])
        .exits_with(0);
}

#[test]
fn a_target_that_is_not_there_is_said_so() {
    // Port 9 of loopback: discard, not in use.
    let output = Command::new(weigh())
        .args(["load", "http://127.0.0.1:9/", "-n", "3", "-c", "1"])
        .output()
        .expect("weigh starts");
    let run = Run::of(output).exits_with(3);
    assert!(run.answer().contains("connect"), "{}", run.answer());
}

#[test]
fn other_protocols_are_refused_with_help() {
    for url in ["ftp://127.0.0.1/", "127.0.0.1:80/x"] {
        let output = Command::new(weigh())
            .args(["load", url])
            .output()
            .expect("weigh starts");
        let run = Run::of(output).exits_with(2);
        assert!(
            run.talk().contains("http://127.0.0.1:8080/path"),
            "{}",
            run.talk()
        );
    }
}
