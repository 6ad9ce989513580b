//! The known weight: figures of `weigh load` against a server with set figures.
//!
//! Bounds are generous, so that a busy machine does not break a claim. They are narrow enough that
//! coordinated omission, a dropped request or an unread body breaks a claim. `cargo xtask calibrate` prints
//! the actual deviations.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use e2e::{Run, weigh_command};
use serde_json::Value;

/// A running `weigh null-server`. Dropping it ends the process.
struct NullServer {
    child: Child,
    url: String,
}

impl NullServer {
    fn start(flags: &[&str]) -> NullServer {
        let mut child = weigh_command()
            .arg("null-server")
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .expect("weigh starts");
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe"))
            .read_line(&mut url)
            .expect("the server says where it listens");
        let url = url.trim().to_owned();
        NullServer { child, url }
    }

    fn load(&self, flags: &[&str]) -> Run {
        let output = weigh_command()
            .args(["load", &self.url, "--format", "json"])
            .args(flags)
            .output()
            .expect("weigh starts");
        Run::of(output)
    }

    /// The only row of a load's summary.
    fn row(&self, flags: &[&str], exit_code: i32) -> Value {
        only_row(&self.load(flags).exits_with(exit_code))
    }

    /// The JSON response to `GET /seen`.
    fn seen(&self) -> Value {
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).expect("the server is there");
        stream
            .write_all(b"GET /seen HTTP/1.1\r\nconnection: close\r\n\r\n")
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let body = answer.split("\r\n\r\n").nth(1).expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // The server may have ended by itself, and then the test has noticed it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The only row of the summary that `run` printed.
fn only_row(run: &Run) -> Value {
    let document: Value = serde_json::from_str(&run.answer()).expect("JSON");
    document["summary"]["variants"][0].clone()
}

/// Quantile `q` of the latency: service + max(0, stall - (1 - q) run (1 - rate service)).
fn stalled_ms(q: f64, stall_s: f64, run_s: f64) -> f64 {
    let (rate, service_s) = (1000.0, 0.0002);
    (service_s + (stall_s - (1.0 - q) * run_s * (1.0 - rate * service_s)).max(0.0)) * 1e3
}

/// A load of 1,000/s on a server of 0.2 ms that stalls once.
///
/// During the stall, the generator opens a connection for each request. On a slow machine that delays more than
/// 1 % of the sends by a millisecond, and `weigh` withholds its verdict. The latencies count from the planned
/// time of each request, so the formula holds in that case too.
#[track_caller]
fn tells_the_stall(stall: &str, stall_s: f64, run: &str, run_s: f64, connections: &str) {
    let server = NullServer::start(&["--service", "200us", "--stall", stall]);
    let row = only_row(
        &server
            .load(&["-r", "1000/s", "-z", run, "-c", connections])
            .ran(),
    );
    assert_eq!(row["outcomes"]["passed"], run_s * 1000.0, "{row:#}");
    let distribution = &row["distribution"];
    for (field, quantile) in [
        ("latency_us_p99", 0.99),
        ("latency_us_p999", 0.999),
        ("latency_us_max", 1.0),
    ] {
        let found_ms = distribution[field].as_f64().expect("a figure") / 1e3;
        let expected_ms = stalled_ms(quantile, stall_s, run_s);
        assert!(
            (found_ms - expected_ms).abs() < 0.2 * expected_ms,
            "{field}: {found_ms} ms, expected {expected_ms} ms"
        );
    }
    assert_eq!(server.seen()["requests"], run_s * 1000.0);
}

#[test]
fn a_short_stall_is_in_the_tail_as_the_formula_says() {
    tells_the_stall("300ms@500ms", 0.3, "3s", 3.0, "500");
}

#[test]
fn a_long_stall_is_in_the_tail_even_when_connections_run_out() {
    tells_the_stall("1s@500ms", 1.0, "3s", 3.0, "8");
}

#[test]
fn one_wrong_body_in_a_hundred_thousand_is_found() {
    let server = NullServer::start(&["--wrong-every", "60000"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let right = folder.path().join("right");
    std::fs::write(&right, r#"{"data":{"fill":""}}"#).expect("a file");
    let right = right.to_str().expect("a readable path");
    let row = server.row(&["-n", "100000", "-c", "20", "--expect-body", right], 3);
    assert_eq!(row["outcomes"]["mismatched"]["body"], 1, "{row:#}");
    assert_eq!(row["outcomes"]["passed"], 99_999);
    assert_eq!(server.seen()["wrong"], 1);
}

#[test]
fn a_closed_loop_on_a_single_server_waits_for_the_others() {
    let server = NullServer::start(&["--service", "2ms"]);
    let row = server.row(&["-n", "500", "-c", "10"], 0);
    let found_ms = row["distribution"]["latency_us_p50"]
        .as_f64()
        .expect("a figure")
        / 1e3;
    // Ten connections times 2 ms of service give 20 ms, by Little's law with a busy server.
    assert!((16.0..24.0).contains(&found_ms), "{found_ms} ms");
    // A response needs at least a system call from its set moment on, and is not sent before that moment.
    let sent_us = server.seen()["sent_us_typical"].as_f64().expect("a figure");
    assert!((0.1..2e3).contains(&sent_us), "{sent_us} us");
}

#[test]
fn every_way_to_spoil_an_answer_has_its_outcome() {
    let server = NullServer::start(&[
        "--reset-every",
        "100",
        "--never-every",
        "151",
        "--close-after",
        "7",
    ]);
    let row = server.row(&["-n", "302", "-c", "4", "--timeout", "300ms"], 3);
    let outcomes = &row["outcomes"];
    assert_eq!(outcomes["failed"]["timeout"], 2, "{outcomes:#}");
    let broken = outcomes["failed"]["reset"].as_u64().unwrap()
        + outcomes["failed"]["closed"].as_u64().unwrap()
        // When a kept connection closes, the sender cannot see if the server read the request.
        + outcomes["failed"]["closed_idle"].as_u64().unwrap_or(0);
    assert_eq!(broken, 3, "{outcomes:#}");
    assert_eq!(outcomes["passed"], 297);
    let seen = server.seen();
    assert_eq!(seen["open"], 1, "only the one that asks: {seen:#}");
}
