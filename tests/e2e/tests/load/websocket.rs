//! `weigh load` of conversations over WebSocket, against null servers with planted delays.
//!
//! A delay is never shorter than planted. No claim limits how much longer it is.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use e2e::{Run, weigh_command};
use serde_json::Value;

/// A running `weigh null-server --websocket`. Dropping it ends the process.
struct SocketServer {
    child: Child,
    url: String,
}

impl SocketServer {
    fn start(flags: &[&str]) -> SocketServer {
        let mut child = weigh_command()
            .args(["null-server", "--websocket"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .expect("weigh starts");
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe"))
            .read_line(&mut url)
            .expect("the server says where it listens");
        let url = url.trim().to_owned();
        assert!(url.starts_with("ws://"), "{url}");
        SocketServer { child, url }
    }

    /// The median of a figure of a load, in milliseconds.
    fn median_ms(&self, figure: &str, flags: &[&str]) -> f64 {
        let output = weigh_command()
            .args(["load", &self.url, "--format", "json"])
            .args(flags)
            .output()
            .expect("weigh starts");
        let run = Run::of(output);
        let document: Value = serde_json::from_str(&run.answer()).expect("JSON");
        let row = &document["summary"]["variants"][0];
        assert_eq!(
            row["outcomes"]["mismatched"]["total"].as_u64().unwrap_or(0),
            0
        );
        let value = row["metrics"][figure]["value"].as_f64();
        value.unwrap_or_else(|| panic!("`{figure}` is missing: {row:#}")) / 1e3
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        // The server may have ended by itself, and then the test has noticed it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn planted_delays_of_replies_are_round_trips() {
    let flags = [
        "-n",
        "4",
        "-c",
        "2",
        "--message",
        "hello",
        "--message-every",
        "5ms",
        "--message-count",
        "20",
        "--replies",
        "order",
    ];
    let [early, late] = ["1ms", "40ms"].map(|delay| {
        SocketServer::start(&["--delay", delay]).median_ms("round_trip_us_p50", &flags)
    });
    assert!(early >= 1.0 && late >= 40.0, "{early} ms and {late} ms");
    assert!(late > early, "{early} ms and {late} ms");
}

#[test]
fn planted_delays_of_a_publisher_are_delivery_times() {
    let flags = [
        "-n",
        "4",
        "-c",
        "4",
        "--subscribe",
        "subscription { price }",
        "--stream",
        "messages",
        "--events",
        "10",
        "--each-event",
        "graphql",
        "--sent-at",
        "/data/at",
    ];
    let [early, late] = ["1ms", "30ms"].map(|delay| {
        let flags_of_server = ["--events", "10", "--gap", "5ms", "--deliver-after", delay];
        SocketServer::start(&flags_of_server).median_ms("delivery_us_p50", &flags)
    });
    assert!(late >= 30.0 && late > early, "{early} ms and {late} ms");
}
