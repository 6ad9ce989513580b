//! Tests of HTTP with old clients, of limits, and of the stop.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use rustix::process::Signal;

use crate::server::start;

const BODY: &str = include_str!("../../../../labs/webhook/requests/route.json");
const ANSWER: &str = include_str!("../../../../labs/webhook/expected/today.json");

#[test]
fn a_client_of_http_1_0_is_answered_and_the_connection_closed() {
    let server = start(&[]);
    let head = format!(
        "POST /sync HTTP/1.0\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        BODY.len()
    );
    let answer = server.raw(format!("{head}{BODY}").as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.0 200"), "{head}");
    assert!(
        head.contains(&format!("content-length: {}", ANSWER.len())),
        "{head}"
    );
    assert_eq!(body, ANSWER);
}

#[test]
fn a_connection_is_kept_for_a_client_of_http_1_1() {
    let server = start(&["--workers", "1"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let once = format!(
        "POST /webhook/sync HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let last = "GET /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream
        .write_all(format!("{once}{once}{last}").as_bytes())
        .unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3);
    assert_eq!(answers.matches(ANSWER).count(), 2);
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let server = start(&["--body-limit", "1000"]);
    let response = server.client().post("/sync", [b' '; 1001]);
    assert_eq!(response.status, 413);
    assert_eq!(response.body, "expected a body of at most 1000 bytes");
    assert_eq!(server.client().post("/sync", [b' '; 1000]).status, 400);
    // The size of the largest object in etcd, plus room for its children.
    let padded = format!("{}{BODY}", " ".repeat((4 << 20) - BODY.len()));
    let response = start(&[]).client().post("/sync", padded.as_bytes());
    assert_eq!((response.status, &*response.body), (200, ANSWER));
}

#[test]
fn what_is_under_way_is_finished_before_the_end() {
    let server = start(&["--workers", "1"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "POST /sync HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        BODY.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The interim response shows that the service waits for the body, so the request is in progress.
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.signal(Signal::TERM);
    stream.write_all(BODY.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(ANSWER), "{answer}");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn pages_of_named_origins_may_ask() {
    let flags = ["--cors-allowed-origins", "http://console.example, http://b"];
    let server = start(&flags);
    let origin = ("origin", "http://console.example");
    let response = server.client().request("GET", "/status", &[origin], b"");
    let allowed = response.header("access-control-allow-origin");
    assert_eq!(allowed, Some("http://console.example"));
    let method = ("access-control-request-method", "PUT");
    let asked = [origin, method];
    let response = server.client().request("OPTIONS", "/route", &asked, b"");
    assert_eq!((response.status, &*response.body), (200, "OK"));
    let stranger = [("origin", "http://c"), method];
    let response = server.client().request("OPTIONS", "/route", &stranger, b"");
    assert_eq!(response.status, 400);
    let closed = start(&[]);
    let response = closed.client().request("GET", "/status", &[origin], b"");
    assert_eq!(response.header("access-control-allow-origin"), None);
    assert_eq!(
        closed
            .client()
            .request("OPTIONS", "/route", &asked, b"")
            .status,
        405
    );
}

#[test]
fn metrics_count_answers_by_endpoint_and_status() {
    let server = start(&[]);
    let mut client = server.client();
    client.post("/sync", BODY.as_bytes());
    client.post("/webhook/sync", b"{}");
    client.post("/nowhere", b"");
    let text = client.get("/metrics").body;
    for line in [
        "webhook_answers_total{endpoint=\"sync\",status=\"2xx\"} 1\n",
        "webhook_answers_total{endpoint=\"sync\",status=\"4xx\"} 1\n",
        "webhook_answers_total{endpoint=\"unknown\",status=\"4xx\"} 1\n",
        "webhook_duration_us_bucket{le=\"+Inf\"} 3\n",
        "webhook_duration_us_count 3\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn the_image_of_the_environment_is_used() {
    let server = start(&["--integration-image", "registry.example/keip:2"]);
    let body = server.client().post("/sync", BODY.as_bytes()).body;
    assert!(body.contains(r#""image":"registry.example/keip:2""#));
}

#[test]
fn a_port_that_is_taken_and_a_flag_that_is_wrong_are_said() {
    let server = start(&[]);
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_route-webhook"));
        command.args(words).output().unwrap()
    };
    let taken = run(&["--host", "127.0.0.1", "--port", port]);
    assert_eq!(taken.status.code(), Some(1));
    let said = String::from_utf8(taken.stderr).unwrap();
    assert!(
        said.contains("choose another with --host and --port"),
        "{said}"
    );
    assert_eq!(run(&["--compat", "future"]).status.code(), Some(2));
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    for variable in [
        "PORT",
        "INTEGRATION_IMAGE",
        "DEBUG",
        "LOG_LEVEL",
        "CORS_ALLOWED_ORIGINS",
        "KUBECONFIG",
        "WEBHOOK_COMPAT",
    ] {
        assert!(help.contains(&format!("[env: {variable}=")), "{variable}");
    }
}
