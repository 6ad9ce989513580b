//! `weigh load` over TLS, HTTP/2 and HTTP/3.

#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, but not what they call"
)]

#[expect(dead_code, reason = "the engine's own tests use all of it")]
#[path = "../../../../crates/load/tests/engine/modern.rs"]
mod modern;

use e2e::{Run, weigh_command};
use serde_json::Value;

use modern::{Act, Modern, Speech};

fn server(is_http2: bool, offered: Option<&'static str>) -> Modern {
    let speech = Speech {
        is_http2,
        is_http3: offered == Some("h3"),
        tls: offered.map(|name| vec![name]),
        streams_max: None,
        client: None,
    };
    Modern::start(speech, |_| Act::answer(r#"{"data":{"test":{"id":"1"}}}"#))
}

/// Runs `weigh load` on the server. The scheme is part of the call.
fn load(scheme: &str, server: &Modern, flags: &[&str]) -> Run {
    let output = weigh_command()
        .arg("load")
        .arg(format!("{scheme}://{}/graphql", server.address))
        .args(["-c", "2"])
        .args(flags)
        .output()
        .expect("weigh starts");
    Run::of(output)
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.answer())
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()))
}

#[test]
fn http_2_is_spoken_by_prior_knowledge_and_the_report_says_so() {
    let server = server(true, None);
    let flags = ["-n", "40", "--http2", "--streams", "4", "--expect-graphql"];
    let run = load("http", &server, &flags).ran();
    let words = "HTTP/2, 4 streams a connection";
    run.shows(words);
    assert_eq!(server.requests(), 40);
    assert_eq!(server.connections(), 2);
}

#[test]
fn https_is_spoken_with_those_whom_the_user_trusts() {
    let server = server(false, Some("http/1.1"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = folder.path().join("ca.pem");
    std::fs::write(&authority, &server.authority).expect("it can be written");
    let authority = authority.to_str().expect("a path of ours");
    let run = load("https", &server, &["-n", "9", "--ca", authority]).ran();
    run.shows("HTTP/1.1 over TLS,");
    let run = load("https", &server, &["-n", "9", "--insecure"]).ran();
    let words = "HTTP/1.1 over TLS (certificate not verified)";
    run.shows(words);
    // The certificate is not signed by a trusted authority.
    let run = load("https", &server, &["-n", "2"]);
    assert!(!run.status().success(), "{}", run.answer());
}

#[test]
fn http_2_over_tls_is_in_the_recording() {
    let server = server(true, Some("h2"));
    let flags = ["-n", "9", "--http2", "--insecure", "--format", "json"];
    let result = json(&load("https", &server, &flags).ran());
    let protocol = &result["load"]["protocol"];
    assert_eq!(protocol["http"], "2", "{result:#}");
    assert_eq!(protocol["tls"], "unverified");
    assert_eq!(protocol["streams"], 1);
    // The protocol version is not negotiated down or up.
    let run = load("https", &server, &["--insecure", "-n", "2"]).exits_with(3);
    run.shows("connect");
}

#[test]
fn http_3_and_its_packets_are_in_the_report_and_in_the_recording() {
    let server = server(false, Some("h3"));
    let flags = ["-n", "40", "--http3", "--streams", "4", "--insecure"];
    let run = load("https", &server, &flags).ran();
    run.shows("HTTP/3 over TLS (certificate not verified), 4 streams a connection");
    run.shows("Packets ");
    let flags = ["-n", "9", "--http3", "--insecure", "--format", "json"];
    let result = json(&load("https", &server, &flags).ran());
    assert_eq!(result["load"]["protocol"]["http"], "3", "{result:#}");
    // The protocol version is not negotiated down or up.
    let run = load("https", &server, &["--insecure", "-n", "2"]).exits_with(3);
    run.shows("connect");
}

#[test]
fn flags_that_go_with_another_protocol_are_refused() {
    let server = server(false, None);
    for (flags, words) in [
        (
            &["--insecure"][..],
            "expected an https URL with --insecure or --ca",
        ),
        (&["--streams", "4"], "--http2"),
        (&["--http3"], "expected an https URL with --http3"),
        (&["--http3", "--http2"], "cannot be used with"),
        (&["--http3", "--unix-socket", "x"], "--unix-socket"),
        (
            &["--http2", "--streams", "4", "--no-keep-alive"],
            "--no-keep-alive",
        ),
    ] {
        let run = load("http", &server, flags).exits_with(2);
        run.says(words);
    }
    assert_eq!(server.requests(), 0);
}
