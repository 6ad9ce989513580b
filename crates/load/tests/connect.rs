//! Calls of Connect, gRPC-Web and gRPC against a server of connect-go, which serves all three over HTTP/1.1,
//! HTTP/2 and HTTP/3.

#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, but not what they call"
)]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    Answer, BodyRule, Capture, CaptureFrom, Data, Framing, GrpcCall, GrpcDescriptors, Job,
    Measurement, Request, RequestError, Step, StreamEnd, StreamRule, Target, Version, exchange,
};
use model::{PlannedMessage, RpcProtocol};

#[path = "go_server/server.rs"]
mod go_server;

use go_server::{CALLS, GoServer, PATIENCE, job, measure, passes, reason};

const HTTP1: Version = Version::Http1;
const HTTP2: Version = Version::Http2 { streams: 2 };
const HTTP3: Version = Version::Http3 { streams: 2 };

/// The protocols over the versions of HTTP that carry them.
const CARRIED: [(RpcProtocol, Version); 7] = [
    (RpcProtocol::Grpc, HTTP2),
    (RpcProtocol::GrpcWeb, HTTP1),
    (RpcProtocol::GrpcWeb, HTTP2),
    (RpcProtocol::GrpcWeb, HTTP3),
    (RpcProtocol::Connect, HTTP1),
    (RpcProtocol::Connect, HTTP2),
    (RpcProtocol::Connect, HTTP3),
];

/// The server, until it is dropped.
struct Server {
    process: GoServer,
    descriptors: Arc<[u8]>,
}

/// Starts the server. `None` after a line NOT RUN, if it cannot be built.
#[track_caller]
fn server() -> Option<Server> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.binpb");
    let process = GoServer::start("connect", &[&file])?;
    Some(Server {
        process,
        descriptors: fs::read(file).unwrap().into(),
    })
}

/// A message with this text.
fn note(text: &str) -> String {
    format!(r#"{{"fileName":"{text}"}}"#)
}

impl Server {
    fn target(&self, version: Version) -> Target {
        self.process.target(version)
    }

    /// A call of a method with these texts, changed.
    fn call(
        &self,
        method: &str,
        texts: &[&str],
        protocol: RpcProtocol,
        change: impl FnOnce(&mut GrpcCall),
    ) -> Request {
        let set = GrpcDescriptors::Set(Arc::clone(&self.descriptors));
        let messages = texts.iter().map(|text| PlannedMessage::of_text(note(text)));
        let mut call = GrpcCall::new(format!("notes.Notes/{method}"), set, messages.collect());
        call.protocol = protocol;
        change(&mut call);
        let mut request = Request::get(call.path());
        request.method = "POST".to_owned();
        request.expect.grpc = Some(call.rule());
        if ["Watch", "Chat"].contains(&method) {
            let events = match texts {
                ["fail"] => 1,
                [_] => 3,
                several => several.len(),
            };
            request.expect.stream = Some(StreamRule {
                events: u64::try_from(events).ok(),
                ..StreamRule::of(Framing::Grpc)
            });
        }
        request.grpc = Some(call);
        request
    }

    fn measure(&self, version: Version, request: Request) -> Measurement {
        measure(&self.target(version), request)
    }

    #[track_caller]
    fn passes(&self, version: Version, request: Request) -> (Measurement, Answer) {
        passes(&self.target(version), request)
    }

    fn refusal(&self, version: Version, request: Request) -> String {
        let job = job(&self.target(version), vec![request.clone()]);
        let refused = load::run(&job, &load::Live::new(), &AtomicBool::new(false));
        let refused = refused.unwrap_err().to_string();
        let alone = exchange(&self.target(version), &request, PATIENCE).unwrap_err();
        assert!(
            matches!(alone, load::Failure::Request(RequestError::Grpc(_))),
            "{alone}"
        );
        refused
    }
}

#[test]
fn one_answer_is_compared_and_captured_in_every_protocol() {
    let Some(server) = server() else { return };
    for (protocol, version) in CARRIED {
        let call = |answer: &str| {
            server.call("Say", &["hello"], protocol, |call| {
                call.answer = Some(note(answer));
                call.contains = vec!["hell".to_owned()];
            })
        };
        let (measurement, answer) = server.passes(version, call("hello"));
        assert!(measurement.events.is_none(), "one answer is no stream");
        // The body of the proof is the body of the load.
        let mut same = call("hello");
        same.expect.body = BodyRule::known(&answer.body, &[]);
        server.passes(version, same.clone());
        let mut other = answer.body.clone();
        *other.last_mut().unwrap() ^= 1;
        same.expect.body = BodyRule::known(&other, &[]);
        let other = server.measure(version, same);
        assert_eq!(other.outcomes.mismatched.body, CALLS);
        let wrong = server.measure(version, call("hallo"));
        assert_eq!(wrong.outcomes.mismatched.body, CALLS, "{protocol:?}");
        assert!(reason(&wrong).contains("`/fileName`"), "{}", reason(&wrong));
        let kind = match protocol {
            RpcProtocol::Grpc => "application/grpc",
            RpcProtocol::GrpcWeb => "application/grpc-web+proto",
            RpcProtocol::Connect => "application/proto",
        };
        assert_eq!(answer.header("content-type"), Some(kind));
    }
}

#[test]
fn a_value_of_an_answer_is_in_the_next_call_of_every_protocol() {
    let Some(server) = server() else { return };
    for (protocol, version) in CARRIED {
        let first = server.call("Say", &["ada"], protocol, |_| {});
        let second = server.call("Say", &["{{name}} again"], protocol, |call| {
            call.answer = Some(note("ada again"));
        });
        let step = |captures: Vec<Capture>| Step {
            name: "a step".to_owned(),
            pause: Duration::ZERO,
            captures,
        };
        let name = Capture {
            name: "name".to_owned(),
            from: CaptureFrom::Json("/fileName".to_owned()),
            pattern: None,
        };
        let job = Job {
            requests: vec![first.clone(), second],
            steps: vec![step(vec![name]), step(Vec::new())],
            data: Some(Data::default()),
            ..job(&server.target(version), vec![first])
        };
        let measurement = load::run(&job, &load::Live::new(), &AtomicBool::new(false)).unwrap();
        let completed = measurement.iterations.completed;
        assert_eq!(completed, CALLS, "{}", reason(&measurement));
    }
}

#[test]
fn a_stream_of_answers_has_events_in_every_protocol() {
    let Some(server) = server() else { return };
    for (protocol, version) in CARRIED {
        let call = server.call("Watch", &["a"], protocol, |call| {
            call.contains = vec!["a ".to_owned()];
        });
        let (measurement, _) = server.passes(version, call.clone());
        assert_eq!(measurement.events.unwrap().events, CALLS * 3);
        let mut first = call;
        first.expect.stream = Some(StreamRule {
            end: Some(StreamEnd::Count(1)),
            ..StreamRule::of(Framing::Grpc)
        });
        let (measurement, _) = server.passes(version, first);
        assert_eq!(measurement.events.unwrap().events, CALLS);
    }
}

#[test]
fn errors_have_the_same_status_and_message_in_every_protocol() {
    let Some(server) = server() else { return };
    for (protocol, version) in CARRIED {
        let detail = r#"google.protobuf.SourceContext {"fileName":"why"}"#;
        for (method, status, words) in [
            ("Say", 5, format!("5 (NOT_FOUND): no such note [{detail}]")),
            (
                "Watch",
                8,
                "8 (RESOURCE_EXHAUSTED): no more notes".to_owned(),
            ),
        ] {
            let call =
                |status: u32| server.call(method, &["fail"], protocol, |call| call.status = status);
            let (_, answer) = server.passes(version, call(status));
            let mut same = call(status);
            if method == "Say" {
                same.expect.body = BodyRule::known(&answer.body, &[]);
            }
            server.passes(version, same);
            let wrong = server.measure(version, call(0));
            assert_eq!(
                reason(&wrong),
                format!("expected grpc-status 0 (OK), found {words}"),
                "{protocol:?}"
            );
        }
        // A path without a method is answered by a page of HTTP.
        let mut missing = server.call("Say", &["a"], protocol, |call| call.status = 12);
        missing.path = "/none".to_owned();
        server.passes(version, missing);
    }
}

#[test]
fn metadata_and_deadlines_reach_the_server_in_every_protocol() {
    let Some(server) = server() else { return };
    for (protocol, version) in CARRIED {
        let mut call = server.call("Say", &["token"], protocol, |call| {
            call.answer = Some(note("Bearer t"));
        });
        call.headers = vec![("authorization".to_owned(), "Bearer t".to_owned())];
        server.passes(version, call);
        for deaf in ["slow", "deaf"] {
            let late = |status: u32| {
                server.call("Say", &[deaf], protocol, |call| {
                    call.deadline = Some(Duration::from_millis(30));
                    call.status = status;
                })
            };
            server.passes(version, late(4));
            let failed = server.measure(version, late(0));
            assert_eq!(failed.outcomes.passed, 0);
            assert!(
                reason(&failed).contains("4 (DEADLINE_EXCEEDED)"),
                "{}",
                reason(&failed)
            );
        }
    }
}

#[test]
fn messages_and_answers_are_compressed_in_every_protocol() {
    let Some(server) = server() else { return };
    let long = "a".repeat(10_000);
    for (protocol, version) in CARRIED {
        let call = |text: &str, status: u32| {
            server.call("Say", &[text], protocol, |call| {
                call.is_compressed = true;
                call.status = status;
                call.answer = (status == 0).then(|| note(text));
            })
        };
        let (measurement, answer) = server.passes(version, call(&long, 0));
        let bytes = measurement.bytes_in + measurement.bytes_out;
        assert!(bytes < CALLS * 2_000, "{protocol:?}: {bytes} bytes");
        let mut same = call(&long, 0);
        let body = answer.content(1 << 20).unwrap();
        assert!(body.len() > 10_000, "{} bytes", body.len());
        same.expect.body = BodyRule::known(&body, &[]);
        server.passes(version, same);
        server.passes(version, call("fail", 5));
        let several = server.call("Watch", &[&long], protocol, |call| {
            call.is_compressed = true;
            call.contains = vec![long.clone()];
        });
        server.passes(version, several);
    }
}

#[test]
fn streams_of_messages_leave_by_grpc_and_connect() {
    let Some(server) = server() else { return };
    for (protocol, version) in CARRIED {
        let collect = server.call("Collect", &["a", "b"], protocol, |call| {
            call.answer = Some(note("a+b"));
        });
        let chat = server.call("Chat", &["a", "b"], protocol, |call| {
            call.has_replies = version == HTTP2;
        });
        match (protocol, version) {
            (RpcProtocol::GrpcWeb, _) => {
                for call in [collect, chat] {
                    let words = "takes a stream of messages, and `grpc-web` sends one message";
                    let refusal = server.refusal(version, call);
                    assert!(refusal.contains(words), "{refusal}");
                }
            }
            (_, HTTP1) => {
                server.passes(version, collect);
                let refusal = server.refusal(version, chat);
                let words = "`connect` cannot send over HTTP/1.1. Use HTTP/2";
                assert!(refusal.contains(words), "{refusal}");
            }
            _ => {
                server.passes(version, collect);
                let (measurement, _) = server.passes(version, chat);
                let events = measurement.events.unwrap();
                assert_eq!(events.events, CALLS * 2);
                // Only over HTTP/2 does a message wait for the reply to the one before it.
                let replies = if version == HTTP2 { CALLS * 2 } else { 0 };
                assert_eq!(events.round_trips.times.len(), replies);
            }
        }
    }
}

#[test]
fn a_call_that_cannot_leave_is_refused_in_words() {
    let Some(server) = server() else { return };
    let grpc = server.call("Say", &["a"], RpcProtocol::Grpc, |_| {});
    let refusal = server.refusal(HTTP1, grpc);
    assert!(
        refusal.contains("expected HTTP/2, found HTTP/1.1"),
        "{refusal}"
    );
    let replies = |protocol: RpcProtocol| {
        server.call("Say", &["a"], protocol, |call| call.has_replies = true)
    };
    for protocol in [RpcProtocol::GrpcWeb, RpcProtocol::Connect] {
        let refusal = server.refusal(HTTP1, replies(protocol));
        let words = "messages with times or replies need HTTP/2";
        assert!(refusal.contains(words), "{refusal}");
    }
    let mut call = server.call("Say", &["a"], RpcProtocol::Connect, |call| {
        call.is_compressed = true;
    });
    for (name, value) in [("Accept-Encoding", "br"), ("content-encoding", "br")] {
        call.headers = vec![(name.to_owned(), value.to_owned())];
        let refusal = server.refusal(HTTP1, call.clone());
        let words = format!("the generator itself writes `{name}`");
        assert!(refusal.contains(&words), "{refusal}");
    }
}
