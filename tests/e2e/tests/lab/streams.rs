//! Streams of events and calls of gRPC, with planted times.

use e2e::{ATTEMPTS, Run, World, summary_of, weigh_command};
use serde_json::Value;

use e2e::Server;

/// True if the interval of a metric lies between these bounds, in microseconds.
fn is_found(row: &Value, metric: &str, least: f64, most: f64) -> bool {
    let overhead = &row["metrics"][metric]["overhead"];
    let end = |key: &str| overhead[key].as_f64();
    end("difference_low").is_some_and(|low| low > least)
        && end("difference_high").is_some_and(|high| high < most)
}

/// Measures until the planted times are found, at most [`ATTEMPTS`] times, because a busy machine hides them.
#[track_caller]
fn expect_found(mut is_found: impl FnMut() -> bool) {
    match (0..ATTEMPTS).any(|_| is_found()) {
        true => judged::ran(),
        false => judged::not_run(e2e::MACHINE_UNFIT),
    }
}

const EVENTS: &str = r"question: What does a later stream cost?
load:
  rate: 20/s
  duration: 600ms
  path: /
  stream: {framing: sse, ends: {data: '[DONE]'}, events: 5, each: json, sent-at: /at}
rounds: 6
warmup: 0s
target: server
systems:
  server:
    settings: {first: 1ms, gap: 2ms}
    run: '{{weigh}} null-server --listen {{addr}} --events 5 --first {{first}} --gap {{gap}} --marker [DONE]'
baseline: {name: plain}
variants:
  - {name: later, with: {server.first: 6ms}}
  - {name: slower, with: {server.gap: 4ms}}
";

#[test]
fn a_later_first_event_and_longer_gaps_are_told_apart() {
    expect_found(|| {
        let run = World::of_lab(EVENTS).run().ran();
        run.shows("Arrival of events");
        run.shows("Gaps between events");
        let summary = summary_of(&run.recording_folder());
        let [_, later, slower] = summary["variants"].as_array().expect("rows").as_slice() else {
            panic!("three rows");
        };
        assert_eq!(later["metrics"]["events_per_stream"]["value"], 5.0);
        is_found(later, "first_event_us_typical", 3_000.0, 8_000.0)
            && is_found(later, "event_gap_us_mean", -500.0, 500.0)
            && is_found(slower, "event_gap_us_mean", 1_500.0, 2_500.0)
            && is_found(slower, "first_event_us_typical", -1_500.0, 1_500.0)
            && is_found(slower, "event_us_mean", 2_500.0, 5_500.0)
    });
}

const CALLS: &str = r"question: What does a later call cost?
load:
  http2: on
  rate: 50/s
  duration: 500ms
  requests:
    - grpc: {method: notes.Notes/Echo, proto: notes.proto, message: {text: hello}}
expect: {same-as: baseline}
rounds: 6
warmup: 0s
target: server
systems:
  server:
    settings: {delay: 1ms}
    run: '{{weigh}} null-server --grpc --listen {{addr}} --delay {{delay}}'
baseline: {name: plain}
variants:
  - {name: later, with: {server.delay: 3ms}}
";

const NOTES: &str = "syntax = \"proto3\";\npackage notes;\n\
    service Notes { rpc Echo (Note) returns (Note); }\nmessage Note { string text = 1; }\n";

#[test]
fn a_later_call_of_grpc_is_found() {
    expect_found(|| {
        let world = World::of_lab(CALLS).file("notes.proto", NOTES);
        let run = world.run().ran();
        let summary = summary_of(&run.recording_folder());
        is_found(
            &summary["variants"][1],
            "latency_us_typical",
            1_000.0,
            3_500.0,
        )
    });
}

const CONNECT: &str = r"question: What does a later answer cost over Connect?
load:
  rate: 50/s
  duration: 500ms
  requests:
    - grpc:
        method: null.Echo/Say
        protocol: connect
        reflection: on
        message: {text: hello}
        answer: {text: hello}
expect: {same-as: baseline}
rounds: 6
warmup: 0s
target: server
systems:
  server:
    settings: {delay: 1ms}
    run: '{{weigh}} null-server --grpc --listen {{addr}} --delay {{delay}}'
baseline: {name: plain}
variants:
  - {name: later, with: {server.delay: 3ms}}
";

#[test]
fn a_later_call_of_connect_over_http_1_is_found() {
    expect_found(|| {
        let run = World::of_lab(CONNECT).run().ran();
        let headers = run.recording()["load"]["requests"][0]["headers"].to_string();
        assert!(headers.contains("Connect-Protocol-Version"), "{headers}");
        let summary = summary_of(&run.recording_folder());
        is_found(
            &summary["variants"][1],
            "latency_us_typical",
            1_000.0,
            3_500.0,
        )
    });
}

const TALKS: &str = r"question: What does a later reply cost?
load:
  http2: on
  rate: 20/s
  duration: 600ms
  requests:
    - grpc:
        method: null.Echo/Chat
        reflection: on
        replies: order
        compression: gzip
        sends: [{message: {text: a}, every: 5ms, count: 4}]
rounds: 6
warmup: 0s
target: server
systems:
  server:
    settings: {delay: 1ms}
    run: '{{weigh}} null-server --grpc --listen {{addr}} --delay {{delay}}'
baseline: {name: plain}
variants:
  - {name: later, with: {server.delay: 4ms}}
";

#[test]
fn a_later_reply_of_a_call_is_found_in_round_trips() {
    expect_found(|| {
        let run = World::of_lab(TALKS).run().ran();
        run.shows("Delivery and round trips");
        let recording = run.recording();
        let answer = &recording["variants"][0]["proof"]["answers"][0];
        assert!(answer["descriptors_sha256"].is_string(), "{answer}");
        let summary = summary_of(&run.recording_folder());
        let later = &summary["variants"][1];
        assert_eq!(later["metrics"]["events_per_stream"]["value"], 4.0);
        is_found(later, "round_trip_us_mean", 2_000.0, 4_500.0)
    });
}

#[test]
fn a_call_by_flags_asks_the_server_and_compares_fields() {
    let server = Server::of(&e2e::weigh(), &["null-server", "--grpc"]);
    let load = |method: &str, flags: &[&str]| {
        let mut command = weigh_command();
        command.args(["load", "-n", "5", "--grpc", method]);
        command
            .args(["--grpc-message", r#"{"text":"hi"}"#])
            .args(flags);
        command.arg(format!("http://{}/", server.address()));
        Run::of(command.output().expect("weigh starts"))
    };
    load(
        "null.Echo/Say",
        &["--grpc-answer", r#"{"text":"hi"}"#, "--grpc-gzip"],
    )
    .ran();
    let wrong = load("null.Echo/Say", &["--grpc-answer", r#"{"text":"ho"}"#]).exits_with(3);
    wrong.shows("expected \"ho\" at `/text` in message 1, found \"hi\"");
    let talk = ["--grpc-every", "5ms", "--grpc-count", "3", "--grpc-replies"];
    let right = load("null.Echo/Chat", &talk).ran();
    right.shows("5 complete streams, 3.00 events each");
    right.shows("Round trips");
    let none = load("null.Echo/Shout", &[]).exits_with(5);
    none.says("`null.Echo/Say`, `null.Echo/Watch`, `null.Echo/Chat`");
    judged::ran();
}

#[test]
fn a_call_of_another_protocol_leaves_over_http_1_by_default() {
    let server = Server::of(&e2e::weigh(), &["null-server", "--grpc"]);
    let load = |flags: &[&str]| {
        let mut command = weigh_command();
        command.args(["load", "-n", "5", "--grpc-message", r#"{"text":"hi"}"#]);
        command.args(flags);
        command.arg(format!("http://{}/", server.address()));
        Run::of(command.output().expect("weigh starts"))
    };
    for protocol in ["grpc-web", "connect"] {
        for more in [&["--grpc-gzip"][..], &["--http2"]] {
            let flags = ["--grpc", "null.Echo/Say", "--grpc-protocol", protocol];
            let answer = ["--grpc-answer", r#"{"text":"hi"}"#];
            load(&[&flags[..], &answer, more].concat()).ran();
            let wrong = ["--grpc-answer", r#"{"text":"ho"}"#];
            let wrong = load(&[&flags[..], &wrong, more].concat()).exits_with(3);
            wrong.shows("expected \"ho\" at `/text` in message 1, found \"hi\"");
        }
        let watch = ["--grpc", "null.Echo/Watch", "--grpc-protocol", protocol];
        load(&watch)
            .ran()
            .shows("5 complete streams, 1.00 events each");
    }
    let chat = ["--grpc", "null.Echo/Chat", "--grpc-protocol", "connect"];
    let refused = load(&chat).exits_with(2);
    refused.says("`connect` cannot send over HTTP/1.1. Use HTTP/2");
    load(&[&chat[..], &["--http2"]].concat()).ran();
    judged::ran();
}

#[test]
fn a_wrong_number_of_events_fails_a_load() {
    let flags = ["null-server", "--events", "3", "--gap", "1ms"];
    let server = Server::of(&e2e::weigh(), &flags);
    let load = |events: &str| {
        let mut command = weigh_command();
        command.args(["load", "-n", "5", "--stream", "sse", "--events", events]);
        command.arg(format!("http://{}/", server.address()));
        Run::of(command.output().expect("weigh starts"))
    };
    let right = load("3").exits_with(0);
    right.shows("5 complete streams, 3.00 events each");
    let wrong = load("4").exits_with(3);
    wrong.shows("expected 4 events, found 3 events");
    judged::ran();
}
