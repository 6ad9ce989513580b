//! The interoperability tests of gRPC, against the test server of grpc-go. Its descriptors come by reflection.
//!
//! The names of the tests are the names of the cases in "gRPC Interoperability Test Case Descriptions".

#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, but not what they call"
)]

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    Capture, CaptureFrom, Framing, GrpcCall, GrpcDescriptors, Job, Request, Step, StreamEnd,
    StreamRule, Target, Version,
};
use model::PlannedMessage;

#[path = "go_server/server.rs"]
mod go_server;

use go_server::{CALLS, GoServer, PATIENCE, job, measure, passes, reason};

/// The server, until it is dropped.
struct Server {
    _process: GoServer,
    target: Target,
}

/// Starts the server. `None` after a line NOT RUN, if it cannot be built.
#[track_caller]
fn server() -> Option<Server> {
    let process = GoServer::start("grpc-interop", &[])?;
    let target = process.target(Version::Http2 { streams: 2 });
    Some(Server {
        _process: process,
        target,
    })
}

/// A call of the test service.
struct Case(GrpcCall);

fn case(method: &str, messages: &[&str]) -> Case {
    let message = |json: &&str| PlannedMessage::of_text(*json);
    Case(GrpcCall::new(
        format!("grpc.testing.{method}"),
        GrpcDescriptors::Reflection,
        messages.iter().map(message).collect(),
    ))
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut GrpcCall)) -> Case {
        change(&mut self.0);
        self
    }

    fn request(self, target: &Target) -> Request {
        let mut request = Request::get(self.0.path());
        request.method = "POST".to_owned();
        request.grpc = Some(self.0);
        load::resolve(&mut request, target, PATIENCE).unwrap();
        request
    }
}

/// Zeros in base64.
fn zeros(count: usize) -> String {
    let mut text = "AAAA".repeat(count / 3);
    text += ["", "AA==", "AAA="][count % 3];
    text
}

fn large() -> (String, String) {
    let body = zeros(271_828);
    let request = format!(r#"{{"responseSize":314159,"payload":{{"body":"{body}"}}}}"#);
    let answer = format!(r#"{{"payload":{{"body":"{}"}}}}"#, zeros(314_159));
    (request, answer)
}

#[test]
fn empty_unary() {
    let Some(server) = server() else { return };
    let request = case("TestService/EmptyCall", &["{}"]).request(&server.target);
    let (_, answer) = passes(&server.target, request);
    assert_eq!(answer.body, [0; 5]);
}

#[test]
fn large_unary() {
    let Some(server) = server() else { return };
    let (message, answer) = large();
    let call = case("TestService/UnaryCall", &[&message]);
    let request = call.with(|call| call.answer = Some(answer));
    let (measurement, _) = passes(&server.target, request.request(&server.target));
    assert!(measurement.events.is_none());
    // A body with one byte less is found.
    let shorter = format!(r#"{{"payload":{{"body":"{}"}}}}"#, zeros(314_158));
    let call = case("TestService/UnaryCall", &[&message]);
    let request = call.with(|call| call.answer = Some(shorter));
    let wrong = measure(&server.target, request.request(&server.target));
    assert_eq!(wrong.outcomes.mismatched.body, CALLS);
}

#[test]
fn client_compressed_unary() {
    let Some(server) = server() else { return };
    let (message, answer) = large();
    let request = case("TestService/UnaryCall", &[&message]).with(|call| {
        call.is_compressed = true;
        call.answer = Some(answer);
    });
    let (measurement, answer) = passes(&server.target, request.request(&server.target));
    // The server compresses its answers to a client that does.
    assert_eq!(answer.header("grpc-encoding"), Some("gzip"));
    assert!(measurement.bytes_out < CALLS * 10_000);
    assert!(measurement.bytes_in < CALLS * 10_000);
}

#[test]
fn client_compressed_unary_with_a_probe() {
    let Some(server) = server() else { return };
    let body = zeros(271_828);
    for is_compressed in [true, false] {
        for expected in [true, false] {
            let json = format!(
                r#"{{"expectCompressed":{{"value":{expected}}},"responseSize":314159,"payload":{{"body":"{body}"}}}}"#
            );
            // The server refuses a message with another compression.
            let status = match is_compressed == expected {
                true => 0,
                false => 3,
            };
            let call = case("TestService/UnaryCall", &[&json]).with(|call| {
                call.is_compressed = is_compressed;
                call.status = status;
            });
            passes(&server.target, call.request(&server.target));
        }
    }
}

#[test]
fn server_compressed_unary() {
    let Some(server) = server() else { return };
    for is_compressed in [true, false] {
        let json = format!(
            r#"{{"responseCompressed":{{"value":{is_compressed}}},"responseSize":314159}}"#
        );
        let request = case("TestService/UnaryCall", &[&json]).with(|call| {
            call.is_compressed = true;
            call.answer = Some(format!(r#"{{"payload":{{"body":"{}"}}}}"#, zeros(314_159)));
        });
        let (measurement, answer) = passes(&server.target, request.request(&server.target));
        let coding = answer.header("grpc-encoding");
        assert_eq!(coding == Some("gzip"), is_compressed, "{coding:?}");
        let plain = CALLS * 314_159;
        match is_compressed {
            true => assert!(measurement.bytes_in < plain / 10),
            false => assert!(measurement.bytes_in > plain),
        }
    }
}

#[test]
fn server_compressed_streaming() {
    let Some(server) = server() else { return };
    for is_compressed in [true, false] {
        let parameters = [31_415, 92_653]
            .map(|size| format!(r#"{{"compressed":{{"value":{is_compressed}}},"size":{size}}}"#));
        let json = format!(r#"{{"responseParameters":[{}]}}"#, parameters.join(","));
        let call = case("TestService/StreamingOutputCall", &[&json]);
        let call = call.with(|call| call.is_compressed = true);
        let mut request = call.request(&server.target);
        request.expect.stream.as_mut().unwrap().events = Some(2);
        let (measurement, answer) = passes(&server.target, request);
        let coding = answer.header("grpc-encoding");
        assert_eq!(coding == Some("gzip"), is_compressed, "{coding:?}");
        let plain = CALLS * (31_415 + 92_653);
        match is_compressed {
            true => assert!(measurement.bytes_in < plain / 10),
            false => assert!(measurement.bytes_in > plain),
        }
    }
}

#[test]
fn per_rpc_credentials_with_a_captured_token() {
    let Some(server) = server() else { return };
    let echoed = "x-grpc-test-echo-initial";
    let mut first = case("TestService/UnaryCall", &["{}"]).request(&server.target);
    first.headers = vec![(echoed.to_owned(), "token-of-ann".to_owned())];
    let call = |answer: Option<&str>| {
        case("TestService/UnaryCall", &[r#"{"fillUsername":true}"#]).with(|call| {
            call.answer = answer.map(str::to_owned);
            call.contains = answer.map(|_| "\"ann\"".to_owned()).into_iter().collect();
            call.status = if answer.is_some() { 0 } else { 16 };
        })
    };
    passes(&server.target, call(None).request(&server.target));
    let mut second = call(Some(r#"{"username":"ann"}"#)).request(&server.target);
    second.headers = vec![("authorization".to_owned(), "Bearer {{token}}".to_owned())];
    let capture = Capture {
        name: "token".to_owned(),
        from: CaptureFrom::Header(echoed.to_owned()),
        pattern: None,
    };
    let step = |name: &str, captures: Vec<Capture>| Step {
        name: name.to_owned(),
        pause: Duration::ZERO,
        captures,
    };
    let job = Job {
        requests: vec![first, second],
        steps: vec![step("log in", vec![capture]), step("call", Vec::new())],
        ..job(&server.target, Vec::new())
    };
    load::walk(&job, 0).unwrap();
    let measurement = load::run(&job, &load::Live::new(), &AtomicBool::new(false)).unwrap();
    let completed = measurement.iterations.completed;
    assert_eq!(completed, CALLS, "{}", reason(&measurement));
}

#[test]
fn client_streaming() {
    let Some(server) = server() else { return };
    let messages = [27_182, 8, 1_828, 45_904]
        .map(|size| format!(r#"{{"payload":{{"body":"{}"}}}}"#, zeros(size)));
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    for every in [None, Some(Duration::from_millis(5))] {
        let request = case("TestService/StreamingInputCall", &messages).with(|call| {
            call.answer = Some(r#"{"aggregatedPayloadSize":74922}"#.to_owned());
            for (index, message) in call.messages.iter_mut().enumerate() {
                message.after = every.unwrap_or_default() * u32::try_from(index).unwrap();
            }
        });
        passes(&server.target, request.request(&server.target));
    }
}

const SIZES: &str =
    r#"{"responseParameters":[{"size":31415},{"size":9},{"size":2653},{"size":58979}]}"#;

#[test]
fn client_compressed_streaming() {
    let Some(server) = server() else { return };
    let messages =
        [27_182, 45_904].map(|size| format!(r#"{{"payload":{{"body":"{}"}}}}"#, zeros(size)));
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let request = case("TestService/StreamingInputCall", &messages).with(|call| {
        call.is_compressed = true;
        call.answer = Some(r#"{"aggregatedPayloadSize":73086}"#.to_owned());
    });
    let (measurement, _) = passes(&server.target, request.request(&server.target));
    assert!(measurement.bytes_out < CALLS * 10_000);
}

#[test]
fn server_streaming() {
    let Some(server) = server() else { return };
    for is_compressed in [false, true] {
        let call = case("TestService/StreamingOutputCall", &[SIZES]);
        let call = call.with(|call| call.is_compressed = is_compressed);
        let mut request = call.request(&server.target);
        let rule = request.expect.stream.as_mut().unwrap();
        rule.events = Some(4);
        let (measurement, _) = passes(&server.target, request);
        assert_eq!(measurement.events.unwrap().events, CALLS * 4);
    }
}

#[test]
fn ping_pong() {
    let Some(server) = server() else { return };
    let messages =
        [(31_415, 27_182), (9, 8), (2_653, 1_828), (58_979, 45_904)].map(|(answer, own)| {
            let body = zeros(own);
            format!(
                r#"{{"responseParameters":[{{"size":{answer}}}],"payload":{{"body":"{body}"}}}}"#
            )
        });
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let request = case("TestService/FullDuplexCall", &messages).with(|call| {
        call.has_replies = true;
        for (index, message) in call.messages.iter_mut().enumerate() {
            message.after = Duration::from_millis(10) * u32::try_from(index).unwrap();
        }
    });
    let (measurement, _) = passes(&server.target, request.request(&server.target));
    let events = measurement.events.unwrap();
    assert_eq!(events.round_trips.times.len(), CALLS * 4);
    assert!(measurement.latency.min_ns().unwrap() >= 30_000_000);
}

#[test]
fn empty_stream() {
    let Some(server) = server() else { return };
    let request = case("TestService/FullDuplexCall", &[]).request(&server.target);
    let (measurement, _) = passes(&server.target, request);
    assert_eq!(measurement.events.unwrap().events, 0);
}

#[test]
fn custom_metadata() {
    let Some(server) = server() else { return };
    for method in ["TestService/UnaryCall", "TestService/FullDuplexCall"] {
        let mut request = case(method, &["{}"]).request(&server.target);
        let (first, last) = ("x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin");
        request.headers = vec![
            (first.to_owned(), "test_initial_metadata_value".to_owned()),
            (last.to_owned(), "q6ur".to_owned()),
        ];
        request.expect.headers = vec![(first.to_owned(), "test_initial_metadata_value".to_owned())];
        let (_, answer) = passes(&server.target, request);
        assert!(
            answer
                .trailers
                .contains(&(last.to_owned(), "q6ur".to_owned())),
            "{:?}",
            answer.trailers
        );
    }
}

#[test]
fn status_code_and_message() {
    let Some(server) = server() else { return };
    let json = r#"{"responseStatus":{"code":2,"message":"test status message"}}"#;
    for method in ["TestService/UnaryCall", "TestService/FullDuplexCall"] {
        let call = || case(method, &[json]);
        let right = call().with(|call| call.status = 2);
        passes(&server.target, right.request(&server.target));
        let wrong = measure(&server.target, call().request(&server.target));
        assert_eq!(
            reason(&wrong),
            "expected grpc-status 0 (OK), found 2 (UNKNOWN): test status message"
        );
    }
}

#[test]
fn special_status_message() {
    let Some(server) = server() else { return };
    let text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n";
    let json = format!(
        r#"{{"responseStatus":{{"code":2,"message":{}}}}}"#,
        serde_json::Value::from(text)
    );
    let request = case("TestService/UnaryCall", &[&json]).request(&server.target);
    let wrong = measure(&server.target, request);
    assert_eq!(
        reason(&wrong),
        format!("expected grpc-status 0 (OK), found 2 (UNKNOWN): {text}")
    );
}

#[test]
fn unimplemented_method_and_service() {
    let Some(server) = server() else { return };
    for method in [
        "TestService/UnimplementedCall",
        "UnimplementedService/UnimplementedCall",
    ] {
        let right = case(method, &["{}"]).with(|call| call.status = 12);
        passes(&server.target, right.request(&server.target));
        let wrong = measure(
            &server.target,
            case(method, &["{}"]).request(&server.target),
        );
        assert!(
            reason(&wrong).contains("12 (UNIMPLEMENTED)"),
            "{}",
            reason(&wrong)
        );
    }
}

#[test]
fn cancel_after_first_response() {
    let Some(server) = server() else { return };
    let json = r#"{"responseParameters":[{"size":31415},{"size":9,"intervalUs":10000000}]}"#;
    let mut request = case("TestService/FullDuplexCall", &[json]).request(&server.target);
    request.expect.stream = Some(StreamRule {
        end: Some(StreamEnd::Count(1)),
        ..StreamRule::of(Framing::Grpc)
    });
    let (measurement, _) = passes(&server.target, request);
    assert!(measurement.elapsed < Duration::from_secs(5));
}

#[test]
fn timeout_on_sleeping_server() {
    let Some(server) = server() else { return };
    let json = r#"{"responseParameters":[{"size":31415,"intervalUs":10000000}]}"#;
    let call = |status: u32| {
        case("TestService/FullDuplexCall", &[json]).with(|call| {
            call.deadline = Some(Duration::from_millis(1));
            call.status = status;
        })
    };
    passes(&server.target, call(4).request(&server.target));
    let wrong = measure(&server.target, call(0).request(&server.target));
    assert_eq!(wrong.outcomes.passed, 0);
    assert!(
        reason(&wrong).contains("4 (DEADLINE_EXCEEDED)"),
        "{}",
        reason(&wrong)
    );
}
