//! Calls of gRPC-Web and Connect: the status at the end of an answer, over every version of HTTP that carries them.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{GrpcBehavior, serve_grpc};
use load::{
    Address, BodyRule, Data, FailureKind, GrpcCall, GrpcDescriptors, Job, Measurement, Protocol,
    Request, Target, Version, check, exchange,
};
use model::{PlannedMessage, RpcProtocol};

use crate::grpc::changed;
use crate::server::{PATIENCE, Server};
use crate::{closed, job, measure};

const HTTP1: Version = Version::Http1;
const HTTP2: Version = Version::Http2 { streams: 4 };

/// The protocols over the versions of HTTP without encryption.
const CARRIED: [(RpcProtocol, Version); 4] = [
    (RpcProtocol::GrpcWeb, HTTP1),
    (RpcProtocol::GrpcWeb, HTTP2),
    (RpcProtocol::Connect, HTTP1),
    (RpcProtocol::Connect, HTTP2),
];

const BEHAVIOR: GrpcBehavior = GrpcBehavior {
    delay: Duration::from_millis(2),
    events: None,
    gap: Duration::from_millis(1),
    status: 0,
};

/// The text of `null.Message` is `hi`.
pub(crate) const HI: &[u8] = b"\x0a\x02hi";

/// Stops the null server, also if a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the null server for calls.
fn with_null<T>(behavior: &GrpcBehavior, work: impl FnOnce(&dyn Fn(Version) -> Target) -> T) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let target = |version: Version| Target {
        address: Address::Tcp(address),
        host: "null.test".to_owned(),
        protocol: Protocol {
            version,
            ..Protocol::default()
        },
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| serve_grpc(listener, behavior, &stop).unwrap());
        let stopping = Stop(&stop);
        let result = work(&target);
        drop(stopping);
        server.join().unwrap();
        result
    })
}

/// A call of the null server's own method, with the text `hi`.
pub(crate) fn call(protocol: RpcProtocol, method: &str) -> Request {
    let set = grpc_schema::reflection::echo::descriptors();
    let message = PlannedMessage::of_text(r#"{"text":"hi"}"#);
    let mut grpc = GrpcCall::new(
        format!("null.Echo/{method}"),
        GrpcDescriptors::Reflection,
        vec![message],
    );
    grpc.protocol = protocol;
    let mut request = Request::get(grpc.path());
    request.method = "POST".to_owned();
    request.grpc = Some(grpc);
    load::describe(&mut request, set.into()).unwrap();
    request
}

fn calls(target: &Target, call: Request) -> Measurement {
    measure(&Job {
        requests: vec![call],
        ..job(target, closed(2, 20))
    })
}

#[track_caller]
fn passed(measurement: &Measurement) {
    let reason = measurement.failures.first().map(|it| &it.reason);
    assert_eq!(measurement.outcomes.passed, 20, "{reason:?}");
}

fn reason(measurement: &Measurement) -> &str {
    &measurement.failures[0].reason
}

#[test]
fn the_null_server_is_called_by_every_protocol() {
    with_null(&BEHAVIOR, |target| {
        for (protocol, version) in CARRIED {
            let target = target(version);
            let mut say = changed(call(protocol, "Say"), |call| {
                call.answer = Some(r#"{"text":"hi"}"#.to_owned());
            });
            let answer = exchange(&target, &say, PATIENCE).unwrap();
            check(&say.expect, &answer).unwrap();
            assert!(answer.body.ends_with(HI), "{answer:?}");
            say.expect.body = BodyRule::known(&answer.body, &[]);
            let measurement = calls(&target, say.clone());
            passed(&measurement);
            assert!(measurement.latency.min_ns().unwrap() >= 2_000_000);
            let packed = changed(say, |call| call.is_compressed = true);
            passed(&calls(&target, packed));
            let wrong = changed(call(protocol, "Say"), |call| {
                call.answer = Some(r#"{"text":"ho"}"#.to_owned());
            });
            let wrong = calls(&target, wrong);
            assert_eq!(
                reason(&wrong),
                "expected \"ho\" at `/text` in message 1, found \"hi\""
            );
            let request = &wrong.failures[0].request;
            assert!(request.ends_with(r#"{"text":"hi"}"#), "{request}");
        }
    });
}

#[test]
fn each_message_of_a_stream_is_an_event_in_every_protocol() {
    let streaming = GrpcBehavior {
        events: Some(5),
        ..BEHAVIOR
    };
    with_null(&streaming, |target| {
        for (protocol, version) in CARRIED {
            let watch = call(protocol, "Watch");
            let answer = exchange(&target(version), &watch, PATIENCE).unwrap();
            check(&watch.expect, &answer).unwrap();
            let measurement = calls(&target(version), watch);
            passed(&measurement);
            let events = measurement.events.expect("a stream");
            assert_eq!((events.streams, events.events), (20, 100));
        }
    });
}

#[test]
fn a_planted_status_is_found_in_every_protocol() {
    let refusing = GrpcBehavior {
        status: 14,
        ..BEHAVIOR
    };
    with_null(&refusing, |target| {
        for (protocol, version) in CARRIED {
            for method in ["Say", "Watch"] {
                let wrong = calls(&target(version), call(protocol, method));
                assert_eq!(wrong.outcomes.mismatched.status, 20);
                assert_eq!(
                    reason(&wrong),
                    "expected grpc-status 0 (OK), found 14 (UNAVAILABLE): planted by the null server"
                );
                let right = changed(call(protocol, method), |call| call.status = 14);
                let answer = exchange(&target(version), &right, PATIENCE).unwrap();
                check(&right.expect, &answer).unwrap();
                passed(&calls(&target(version), right));
            }
        }
    });
}

#[test]
fn rows_of_the_data_are_encoded_for_each_call() {
    with_null(&BEHAVIOR, |target| {
        for (protocol, version) in CARRIED {
            let message = PlannedMessage::of_text(r#"{"text":"{{word}}"}"#);
            let mut say = changed(call(protocol, "Say"), |call| {
                call.messages = vec![message];
                call.contains = vec!["0123456789".to_owned()];
            });
            say.headers = vec![("x-word".to_owned(), "{{word}}".to_owned())];
            let row = |text: String| vec![text];
            let data = Data {
                columns: vec!["word".to_owned()],
                rows: vec![row("0123456789".to_owned()), row("0123456789".repeat(300))],
                ..Data::default()
            };
            let measurement = measure(&Job {
                requests: vec![say],
                data: Some(data),
                ..job(&target(version), closed(2, 20))
            });
            passed(&measurement);
        }
    });
}

#[test]
fn the_deadline_ends_a_call_over_http_1() {
    let late = GrpcBehavior {
        delay: Duration::from_millis(300),
        ..BEHAVIOR
    };
    with_null(&late, |target| {
        for (protocol, version) in CARRIED {
            for method in ["Say", "Watch"] {
                let with = |status: u32| {
                    changed(call(protocol, method), |call| {
                        call.deadline = Some(Duration::from_millis(15));
                        call.status = status;
                    })
                };
                let answer = exchange(&target(version), &with(4), PATIENCE).unwrap();
                check(&with(4).expect, &answer).unwrap();
                passed(&calls(&target(version), with(4)));
                let failed = calls(&target(version), with(0));
                assert_eq!(failed.outcomes.failed.timeout, 20);
                let words = "within the deadline of 15ms: grpc-status 4 (DEADLINE_EXCEEDED)";
                assert!(reason(&failed).contains(words), "{}", reason(&failed));
            }
        }
    });
}

#[test]
fn descriptors_come_by_reflection_over_http_2() {
    with_null(&BEHAVIOR, |target| {
        for (protocol, version) in CARRIED {
            let mut say = changed(call(protocol, "Say"), |call| {
                call.descriptors = GrpcDescriptors::Reflection;
            });
            load::resolve(&mut say, &target(version), PATIENCE).unwrap();
            passed(&calls(&target(version), say));
        }
    });
    let plain = Server::tcp(|mut client| {
        client.bytes(1);
    });
    let mut say = changed(call(RpcProtocol::Connect, "Say"), |call| {
        call.descriptors = GrpcDescriptors::Reflection;
    });
    let error = load::resolve(&mut say, &plain.target, PATIENCE).unwrap_err();
    assert!(
        error.contains("Reflection is a call of gRPC over HTTP/2"),
        "{error}"
    );
}

/// A message with this flag.
pub(crate) fn flagged(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    grpc_schema::frame(message, false, &mut framed);
    framed[0] = flag;
    framed
}

/// Sends calls to a server that answers each of them with these bytes over HTTP/1.1.
fn against(response: &[u8], call: &Request) -> Measurement {
    let response = response.to_vec();
    let server = Server::tcp(move |mut client| {
        while client.request().is_some() {
            client.send_bytes(&response);
        }
    });
    let measurement = calls(&server.target, call.clone());
    // A proof has the same verdict.
    let proof = exchange(&server.target, call, PATIENCE);
    let is_right = proof.is_ok_and(|answer| check(&call.expect, &answer).is_ok());
    assert_eq!(
        is_right,
        measurement.outcomes.passed == 20,
        "{:?}",
        measurement.failures
    );
    measurement
}

/// A whole response with this body.
fn response(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Some\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

const WEB: &str = "application/grpc-web+proto";
const STREAM: &str = "application/connect+proto";

#[test]
fn an_answer_without_its_end_did_not_pass() {
    let web = call(RpcProtocol::GrpcWeb, "Watch");
    let connect = call(RpcProtocol::Connect, "Watch");
    let message = flagged(0, HI);
    let none = "expected grpc-status 0 (OK), found none";
    for (call, kind, end) in [
        (&web, WEB, flagged(0x80, b"grpc-status: 0\r\n")),
        (&connect, STREAM, flagged(2, b"{}")),
    ] {
        let whole = [&message[..], &end].concat();
        passed(&against(&response(200, kind, &whole), call));
        for body in [
            &message[..],
            b"",
            // The end of the answer within its last message.
            &whole[..whole.len() - 1],
            &whole[..message.len() + 3],
            &message[..4],
        ] {
            let wrong = against(&response(200, kind, body), call);
            assert_eq!(wrong.outcomes.mismatched.status, 20);
            assert!(reason(&wrong).starts_with(none), "{}", reason(&wrong));
        }
        // The end twice, and a message after it.
        for body in [[&whole[..], &end].concat(), [&end[..], &message].concat()] {
            let wrong = against(&response(200, kind, &body), call);
            assert_eq!(wrong.outcomes.mismatched.body, 20, "{}", reason(&wrong));
        }
    }
    let garbage = [&message[..], &flagged(2, b"{\"error\":{\"code\"")].concat();
    let wrong = against(&response(200, STREAM, &garbage), &connect);
    assert_eq!(
        reason(&wrong),
        format!("{none}: the last message is no JSON")
    );
}

#[test]
fn trailers_of_http_are_no_trailers_of_grpc_web() {
    let chunked = b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web\r\n\
        Transfer-Encoding: chunked\r\nTrailer: grpc-status\r\n\r\n9\r\n\0\0\0\0\x04\x0a\x02hi\r\n\
        0\r\ngrpc-status: 0\r\n\r\n";
    let wrong = against(chunked, &call(RpcProtocol::GrpcWeb, "Say"));
    assert_eq!(reason(&wrong), "expected grpc-status 0 (OK), found none");
}

#[test]
fn an_error_of_connect_is_json_or_the_http_status() {
    let say = call(RpcProtocol::Connect, "Say");
    passed(&against(&response(200, "application/proto", HI), &say));
    let error = br#"{"code":"permission_denied","message":"not you"}"#;
    let wrong = against(&response(403, "application/json", error), &say);
    assert_eq!(wrong.outcomes.mismatched.status, 20);
    assert_eq!(
        reason(&wrong),
        "expected grpc-status 0 (OK), found 7 (PERMISSION_DENIED): not you"
    );
    let right = changed(say.clone(), |call| call.status = 7);
    passed(&against(&response(403, "application/json", error), &right));
    for garbage in [&b"{\"code\":"[..], b"", b"\xff\xfe", br#"{"code":{}}"#] {
        let wrong = against(&response(503, "application/json", garbage), &say);
        assert_eq!(
            reason(&wrong),
            "expected grpc-status 0 (OK), found 14 (UNAVAILABLE): the answer has the HTTP status 503"
        );
    }
    let page = against(&response(200, "text/html", b"<p>"), &say);
    assert!(
        reason(&page).contains("found 2 (UNKNOWN)"),
        "{}",
        reason(&page)
    );
    // A head with a longer body is a closed connection.
    let cut =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 9\r\n\r\n\x0a\x02";
    let server = Server::tcp(move |mut client| {
        client.request();
        client.send_bytes(cut);
    });
    let failed = calls(&server.target, say);
    assert_eq!(failed.outcomes.failed.closed, 20, "{}", reason(&failed));
}

#[test]
fn an_answer_without_an_end_is_not_kept() {
    let mut huge = vec![0, 0xff, 0xff, 0xff, 0xff];
    huge.resize(1 << 20, b'a');
    let mut end = huge.clone();
    end[0] = 0x82;
    for (call, kind, head) in [
        (call(RpcProtocol::GrpcWeb, "Watch"), WEB, &huge),
        (call(RpcProtocol::GrpcWeb, "Watch"), WEB, &end),
        (call(RpcProtocol::Connect, "Watch"), STREAM, &huge),
        (call(RpcProtocol::Connect, "Watch"), STREAM, &end),
        (
            call(RpcProtocol::Connect, "Say"),
            "application/proto",
            &huge,
        ),
    ] {
        let begin = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n").into_bytes();
        let begin = [&begin[..], head].concat();
        let server = Server::tcp(move |mut client| {
            client.request();
            client.send_bytes(&begin);
            client.flood(&[b'a'; 4096]);
        });
        let failed = calls(&server.target, call.clone());
        assert_eq!(failed.outcomes.failed.too_large, 20, "{}", reason(&failed));
        let failure = exchange(&server.target, &call, PATIENCE).unwrap_err();
        assert_eq!(failure.kind(), Some(FailureKind::TooLarge), "{failure}");
    }
}
