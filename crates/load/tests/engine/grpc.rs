//! Calls of gRPC: the status in trailers decides, and each message is an event.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{GrpcBehavior, serve_grpc};
use load::{
    Address, BodyRule, Capture, CaptureFrom, Data, Framing, GrpcCall, GrpcDescriptors, GrpcRule,
    Job, Measurement, Protocol, Request, Step, StreamEnd, StreamRule, Target, Version, exchange,
};
use model::PlannedMessage;

use crate::general;
use crate::modern::{Act, Modern, Parts};
use crate::server::PATIENCE;
use crate::{closed, job, measure};

const VERSION: Version = Version::Http2 { streams: 4 };

/// A message of two bytes with its prefix.
const MESSAGE: &[u8] = b"\0\0\0\0\x02hi";

fn behavior() -> GrpcBehavior {
    GrpcBehavior {
        delay: Duration::from_millis(2),
        events: None,
        gap: Duration::from_millis(1),
        status: 0,
    }
}

fn call(status: u32) -> Request {
    let mut call = Request::get("/test.Service/Method");
    call.method = "POST".to_owned();
    call.headers = vec![
        ("Content-Type".to_owned(), "application/grpc".to_owned()),
        ("TE".to_owned(), "trailers".to_owned()),
    ];
    call.body = MESSAGE.to_vec();
    call.expect.grpc = Some(GrpcRule::of_status(status));
    call
}

fn with_null<T>(behavior: &GrpcBehavior, work: impl FnOnce(&Target) -> T) -> (T, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target {
        address: Address::Tcp(listener.local_addr().unwrap()),
        host: "null.test".to_owned(),
        protocol: Protocol {
            version: VERSION,
            ..Protocol::default()
        },
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| serve_grpc(listener, behavior, &stop).unwrap());
        let result = work(&target);
        stop.store(true, Ordering::Relaxed);
        (result, server.join().unwrap())
    })
}

fn calls(target: &Target, call: Request) -> Measurement {
    measure(&Job {
        requests: vec![call],
        ..job(target, closed(2, 20))
    })
}

#[test]
fn a_call_passes_by_its_status_and_its_message() {
    let (measurement, calls) = with_null(&behavior(), |target| {
        let mut call = call(0);
        call.expect.body = BodyRule::known(MESSAGE, &[]);
        let answer = exchange(target, &call, PATIENCE).unwrap();
        assert!(
            answer
                .trailers
                .contains(&("grpc-status".to_owned(), "0".to_owned()))
        );
        calls(target, call)
    });
    assert_eq!(
        measurement.outcomes.passed, 20,
        "{:?}",
        measurement.failures
    );
    assert_eq!(calls, 21);
    assert!(measurement.latency.min_ns().unwrap() >= 2_000_000);
}

#[test]
fn another_status_is_a_mismatch_with_its_name() {
    let refusing = GrpcBehavior {
        status: 14,
        ..behavior()
    };
    let (measurement, _) = with_null(&refusing, |target| calls(target, call(0)));
    assert_eq!(measurement.outcomes.mismatched.status, 20);
    assert_eq!(
        measurement.failures[0].reason,
        "expected grpc-status 0 (OK), found 14 (UNAVAILABLE): planted by the null server"
    );
    let (measurement, _) = with_null(&refusing, |target| calls(target, call(14)));
    assert_eq!(
        measurement.outcomes.passed, 20,
        "{:?}",
        measurement.failures
    );
}

#[test]
fn each_message_of_a_stream_is_an_event() {
    let streaming = GrpcBehavior {
        events: Some(5),
        ..behavior()
    };
    let (measurement, _) = with_null(&streaming, |target| {
        let mut call = call(0);
        call.expect.stream = Some(StreamRule {
            events: Some(5),
            ..StreamRule::of(Framing::Grpc)
        });
        calls(target, call)
    });
    assert_eq!(
        measurement.outcomes.passed, 20,
        "{:?}",
        measurement.failures
    );
    let events = measurement.events.expect("a stream");
    assert_eq!(
        (events.streams, events.events, events.gaps.times.len()),
        (20, 100, 80)
    );
    assert!(measurement.latency.min_ns().unwrap() >= 6_000_000);
}

const GRPC: (&str, &[u8]) = ("content-type", b"application/grpc");
const OK: (&str, &[u8]) = ("grpc-status", b"0");

/// A response of gRPC with one message.
fn parts() -> Parts {
    Parts {
        status: 200,
        headers: vec![GRPC],
        body: MESSAGE.into(),
        trailers: Some(vec![OK]),
        ..Parts::default()
    }
}

/// The measurement of calls to a server with this behavior.
fn against(act: Act, call: Request) -> Measurement {
    let server = Modern::start(general::speech(VERSION, false), move |_| act.clone());
    let mut target = general::target(&server, VERSION, false);
    target.protocol.version = VERSION;
    calls(&target, call)
}

/// The reason why calls to a server with this behavior did not pass.
fn reason(act: Act) -> String {
    let measurement = against(act, call(0));
    assert_eq!(measurement.outcomes.passed, 0);
    measurement.failures[0].reason.clone()
}

#[test]
fn a_response_without_a_status_did_not_pass() {
    assert_eq!(against(Act::Parts(parts()), call(0)).outcomes.passed, 20);
    let found = reason(Act::Parts(Parts {
        trailers: None,
        ..parts()
    }));
    assert_eq!(found, "expected grpc-status 0 (OK), found none");
    // Trailers without a status are no status either.
    let found = reason(Act::Parts(Parts {
        trailers: Some(vec![("x-other", b"0")]),
        ..parts()
    }));
    assert_eq!(found, "expected grpc-status 0 (OK), found none");
    assert!(
        reason(Act::Reset).contains("stream"),
        "a reset is no status"
    );
}

#[test]
fn a_response_that_is_not_grpc_has_the_status_of_its_http_status() {
    let found = reason(Act::Parts(Parts {
        status: 503,
        headers: vec![("content-type", b"text/html")],
        trailers: None,
        ..parts()
    }));
    assert_eq!(
        found,
        "expected grpc-status 0 (OK), found 14 (UNAVAILABLE): the answer has the HTTP status 503"
    );
    // The head alone is a whole response.
    let refused = Act::Parts(Parts {
        headers: vec![GRPC, ("grpc-status", b"7"), ("grpc-message", b"no%20entry")],
        body: bytes::Bytes::new(),
        trailers: None,
        ..parts()
    });
    assert_eq!(
        reason(refused.clone()),
        "expected grpc-status 0 (OK), found 7 (PERMISSION_DENIED): no entry"
    );
    assert_eq!(against(refused, call(7)).outcomes.passed, 20);
}

#[test]
fn a_message_that_is_not_utf_8_is_still_shown() {
    let found = reason(Act::Parts(Parts {
        trailers: Some(vec![("grpc-status", b"2"), ("grpc-message", b"a\xff%FE")]),
        ..parts()
    }));
    assert_eq!(
        found,
        "expected grpc-status 0 (OK), found 2 (UNKNOWN): a\u{fffd}\u{fffd}"
    );
}

#[test]
fn details_of_a_status_are_shown() {
    // google.rpc.Status with the code 3 and an ErrorInfo with the reason `QUOTA`.
    let details = b"CAMaNQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIJCgVRVU9UQRAB";
    let found = reason(Act::Parts(Parts {
        trailers: Some(vec![
            ("grpc-status", b"3"),
            ("grpc-message", b"wrong"),
            ("grpc-status-details-bin", details),
        ]),
        ..parts()
    }));
    assert_eq!(
        found,
        "expected grpc-status 0 (OK), found 3 (INVALID_ARGUMENT): wrong \
         [google.rpc.ErrorInfo (9 bytes): `QUOTA`]"
    );
}

#[test]
fn a_storm_of_resets_fails_every_call_and_ends() {
    let measurement = against(
        Act::Parts(Parts {
            resets: true,
            ..parts()
        }),
        call(0),
    );
    assert_eq!(
        measurement.outcomes.failed.reset, 20,
        "{:?}",
        measurement.outcomes
    );
    assert!(measurement.failures[0].reason.contains("ENHANCE_YOUR_CALM"));
}

#[test]
fn messages_without_an_end_stop_at_the_timeout_or_at_a_count() {
    let endless = Act::Parts(Parts {
        is_endless: true,
        ..parts()
    });
    let server = Modern::start(general::speech(VERSION, false), move |_| endless.clone());
    let target = general::target(&server, VERSION, false);
    let mut call = call(0);
    let with = |call: &Request, timeout: Duration| {
        measure(&Job {
            requests: vec![call.clone()],
            timeout,
            ..job(&target, closed(1, 2))
        })
    };
    call.expect.stream = Some(StreamRule::of(Framing::Grpc));
    let measurement = with(&call, Duration::from_millis(200));
    assert_eq!(measurement.outcomes.failed.timeout, 2);
    // A rule may end the stream. The call is then cancelled, and has no status.
    call.expect.stream = Some(StreamRule {
        end: Some(StreamEnd::Count(100)),
        ..StreamRule::of(Framing::Grpc)
    });
    let measurement = with(&call, PATIENCE);
    assert_eq!(
        measurement.outcomes.passed,
        2,
        "{:?}",
        measurement.failures.first().map(|it| &it.reason)
    );
}

#[test]
fn an_endless_message_ends_at_the_limit() {
    // The length of the message is 4 GiB, and the server never stops to send it.
    let mut huge = vec![0, 0xff, 0xff, 0xff, 0xff];
    huge.resize(1 << 20, 0);
    let measurement = against(
        Act::Parts(Parts {
            body: huge.into(),
            is_endless: true,
            ..parts()
        }),
        call(0),
    );
    assert_eq!(measurement.outcomes.failed.too_large, 20);
}

#[test]
fn a_compressed_bomb_ends_at_the_limit() {
    let bomb = load::encoded("gzip", &vec![0; 20 << 20]).unwrap();
    let mut body = Vec::new();
    grpc_schema::frame(&bomb, true, &mut body);
    assert!(body.len() < 100_000);
    let measurement = against(
        Act::Parts(Parts {
            headers: vec![GRPC, ("grpc-encoding", b"gzip")],
            body: body.into(),
            ..parts()
        }),
        call(0),
    );
    assert_eq!(measurement.outcomes.failed.too_large, 20);
}

/// A call of the null server's own method, with the schema that its reflection describes.
fn echo(target: &Target, method: &str, json: &[&str]) -> Request {
    let message = |json: &&str| PlannedMessage::of_text(*json);
    let grpc = GrpcCall::new(
        format!("null.Echo/{method}"),
        GrpcDescriptors::Reflection,
        json.iter().map(message).collect(),
    );
    let mut request = Request::get(grpc.path());
    request.method = "POST".to_owned();
    request.grpc = Some(grpc);
    load::resolve(&mut request, target, PATIENCE).unwrap();
    request
}

/// Changes the call of a request.
pub(crate) fn changed(mut request: Request, change: impl FnOnce(&mut GrpcCall)) -> Request {
    let call = request.grpc.as_mut().unwrap();
    change(call);
    request.expect.grpc = Some(call.rule());
    request
}

fn passed(measurement: &Measurement) {
    let reason = measurement.failures.first().map(|it| &it.reason);
    assert_eq!(measurement.outcomes.passed, 20, "{reason:?}");
}

#[test]
fn a_call_by_reflection_compares_the_fields_of_its_answer() {
    let ((right, wrong), calls) = with_null(&behavior(), |target| {
        let call = echo(target, "Say", &[r#"{"text":"hi"}"#]);
        let with = |answer: &str| {
            let call = changed(call.clone(), |call| call.answer = Some(answer.to_owned()));
            calls(target, call)
        };
        (with(r#"{"text":"hi"}"#), with(r#"{"text":"ho"}"#))
    });
    passed(&right);
    assert_eq!(calls, 40, "questions of reflection are no calls");
    assert!(right.events.is_none(), "one answer is no stream");
    assert_eq!(wrong.outcomes.mismatched.body, 20);
    assert_eq!(
        wrong.failures[0].reason,
        "expected \"ho\" at `/text` in message 1, found \"hi\""
    );
    assert!(wrong.failures[0].request.ends_with(r#"{"text":"hi"}"#));
}

#[test]
fn each_answer_contains_the_texts() {
    let ((right, wrong, of_stream), _) = with_null(&behavior(), |target| {
        let with = |method: &str, texts: &[&str]| {
            let call = echo(target, method, &[r#"{"text":"say \"hi\""}"#]);
            let texts = texts.iter().map(|&text| text.to_owned());
            let call = changed(call, |call| call.contains = texts.collect());
            calls(target, call)
        };
        (
            with("Say", &[r#""text":"say"#, "hi"]),
            with("Say", &["hi", "ho"]),
            with("Chat", &["ho"]),
        )
    });
    passed(&right);
    assert_eq!(wrong.outcomes.mismatched.body, 20);
    let reason = &wrong.failures[0].reason;
    assert!(
        reason.starts_with("expected a message that contains `ho` in message 1, found `{"),
        "{reason}"
    );
    assert_eq!(
        of_stream.outcomes.passed, 0,
        "each message of a stream, too"
    );
}

#[test]
fn a_method_that_the_server_does_not_have_is_named() {
    with_null(&behavior(), |target| {
        let mut call = echo(target, "Say", &["{}"]);
        let mut resolved = |method: &str| {
            let grpc = call.grpc.as_mut().unwrap();
            grpc.method = method.to_owned();
            grpc.descriptors = GrpcDescriptors::Reflection;
            load::resolve(&mut call, target, PATIENCE).unwrap_err()
        };
        let error = resolved("null.Echo/Shout");
        assert!(error.contains("the methods are `null.Echo/Say`"), "{error}");
        let error = resolved("other.Service/Say");
        assert!(error.contains("no `other.Service`"), "{error}");
        let error = resolved("Say");
        assert!(error.contains("`package.Service/Method`"), "{error}");
    });
    let none = Parts {
        headers: vec![GRPC, ("grpc-status", b"12")],
        body: bytes::Bytes::new(),
        trailers: None,
        ..parts()
    };
    let server = Modern::start(general::speech(VERSION, false), move |_| {
        Act::Parts(none.clone())
    });
    let target = general::target(&server, VERSION, false);
    let mut call = Request::get("/");
    let reflection = GrpcDescriptors::Reflection;
    call.grpc = Some(GrpcCall::new("a.B/C".to_owned(), reflection, Vec::new()));
    let error = load::resolve(&mut call, &target, PATIENCE).unwrap_err();
    assert!(error.contains("12 (UNIMPLEMENTED)"), "{error}");
    assert!(error.contains("Give the `.proto` file"), "{error}");
    assert_eq!(server.requests(), 2, "both versions of reflection");
}

#[test]
fn a_server_with_the_older_reflection_is_asked_by_it() {
    let server = Modern::start(general::speech(VERSION, false), move |got| {
        let mut body = Vec::new();
        if let Some(question) = got.body.get(grpc_schema::PREFIX_BYTES..) {
            let answer = grpc_schema::reflection::echo::answer(question);
            grpc_schema::frame(&answer, false, &mut body);
        }
        Act::Parts(match got.path.contains(".v1alpha.") {
            true => Parts {
                body: body.into(),
                ..parts()
            },
            false => Parts {
                headers: vec![GRPC, ("grpc-status", b"12")],
                body: bytes::Bytes::new(),
                trailers: None,
                ..parts()
            },
        })
    });
    let target = general::target(&server, VERSION, false);
    let call = echo(&target, "Watch", &["{}"]);
    assert!(call.grpc.unwrap().set().is_some());
    assert_eq!(call.expect.stream, Some(StreamRule::of(Framing::Grpc)));
    assert_eq!(server.requests(), 2);
}

#[test]
fn spaced_messages_have_round_trips_from_their_planned_times() {
    let (measurement, _) = with_null(&behavior(), |target| {
        let call = echo(target, "Chat", &[r#"{"text":"hi"}"#]);
        let call = changed(call, |call| {
            call.has_replies = true;
            call.messages[0].every = Some(Duration::from_millis(5));
            call.messages[0].count = Some(6);
        });
        calls(target, call)
    });
    passed(&measurement);
    let events = measurement.events.as_ref().expect("a stream");
    assert_eq!((events.streams, events.events), (20, 120));
    assert_eq!(events.round_trips.times.len(), 120);
    // The planted delay. A busy machine adds to it.
    assert!(events.round_trips.times.min_ns().unwrap() >= 2_000_000);
    // Five gaps of 5 ms, and the delay of the last answer.
    assert!(measurement.latency.min_ns().unwrap() >= 27_000_000);
}

#[test]
fn a_call_without_a_reply_to_each_message_did_not_pass() {
    let one = GrpcBehavior {
        events: Some(2),
        ..behavior()
    };
    let (measurement, _) = with_null(&one, |target| {
        let call = echo(target, "Chat", &["{}", "{}", r#"{"text":"last"}"#]);
        calls(target, changed(call, |call| call.has_replies = true))
    });
    assert_eq!(measurement.outcomes.mismatched.event, 20);
    assert_eq!(
        measurement.failures[0].reason,
        "expected a reply to each of 3 messages, found 2 replies"
    );
}

#[test]
fn a_hold_ends_the_sending() {
    let (measurement, _) = with_null(&behavior(), |target| {
        let call = echo(target, "Chat", &["{}"]);
        let call = changed(call, |call| {
            call.messages[0].every = Some(Duration::from_millis(10));
            call.hold = Some(Duration::from_millis(35));
        });
        calls(target, call)
    });
    passed(&measurement);
    let events = measurement.events.as_ref().expect("a stream");
    assert_eq!(events.events, 80, "at 0, 10, 20 and 30 ms");
    assert!(measurement.latency.min_ns().unwrap() >= 35_000_000);
}

#[test]
fn an_empty_stream_has_no_message() {
    let (measurement, _) = with_null(&behavior(), |target| {
        calls(target, echo(target, "Chat", &[]))
    });
    passed(&measurement);
    assert_eq!(measurement.events.as_ref().unwrap().events, 0);
}

#[test]
fn compressed_messages_and_answers_are_understood() {
    let text = "long ".repeat(1000);
    let json = format!(r#"{{"text":"{text}"}}"#);
    let (measurement, _) = with_null(&behavior(), |target| {
        let call = echo(target, "Say", &[&json]);
        let call = changed(call, |call| {
            call.is_compressed = true;
            call.answer = Some(json.clone());
        });
        // The proof compares a plain body, and the load a compressed one.
        let answer = exchange(target, &call, PATIENCE).unwrap();
        assert_eq!(answer.header("grpc-encoding"), Some("gzip"));
        assert_eq!(answer.body.len(), 5 + 3 + text.len());
        let mut call = call;
        call.expect.body = BodyRule::known(&answer.body, &[]);
        calls(target, call)
    });
    passed(&measurement);
    assert!(measurement.bytes_in < 20 * 1000, "{}", measurement.bytes_in);
}

#[test]
fn placeholders_are_encoded_for_every_slot() {
    let (measurement, _) = with_null(&behavior(), |target| {
        let mut call = echo(target, "Say", &[r#"{"text":"user {{name}} {{index}}"}"#]);
        call.expect.stream = None;
        measure(&Job {
            requests: vec![call],
            data: Some(data(&["name"], &[&["Ada"], &["Grace Hopper"]])),
            ..job(target, closed(2, 20))
        })
    });
    passed(&measurement);
    // The lengths of `user Ada 0` to `user Grace Hopper 19` with prefixes of 7 bytes.
    let texts = (0..20).map(|slot| format!("user {} {slot}", ["Ada", "Grace Hopper"][slot % 2]));
    let bytes: usize = texts.map(|text| text.len() + 7).sum();
    assert_eq!(measurement.bytes_in_bodies, bytes as u64);
}

#[test]
fn a_wrong_row_is_refused_before_the_load() {
    with_null(&behavior(), |target| {
        let call = echo(target, "Say", &[r#"{"{{field}}":"a"}"#]);
        let job = Job {
            requests: vec![call],
            data: Some(data(&["field"], &[&["text"], &["txt"]])),
            ..job(target, closed(2, 20))
        };
        let error = load::run(&job, &load::Live::new(), &AtomicBool::new(false)).unwrap_err();
        let words = error.to_string();
        assert!(words.contains("row 2 of the data"), "{words}");
        assert!(
            words.contains("`null.Message` has no field `txt`"),
            "{words}"
        );
    });
}

fn data(columns: &[&str], rows: &[&[&str]]) -> Data {
    Data {
        columns: columns.iter().map(|it| (*it).to_owned()).collect(),
        rows: rows
            .iter()
            .map(|row| row.iter().map(|it| (*it).to_owned()).collect())
            .collect(),
        ..Data::default()
    }
}

#[test]
fn a_captured_field_is_sent_in_the_next_step() {
    let (measurement, _) = with_null(&behavior(), |target| {
        let first = echo(target, "Say", &[r#"{"text":"token-{{index}}"}"#]);
        let second = echo(target, "Chat", &[r#"{"text":"{{token}}"}"#]);
        let capture = Capture {
            name: "token".to_owned(),
            from: CaptureFrom::Json("/text".to_owned()),
            pattern: Some("token-(.*)".to_owned()),
        };
        let step = |name: &str, captures: Vec<Capture>| Step {
            name: name.to_owned(),
            pause: Duration::ZERO,
            captures,
        };
        let scenario = Job {
            requests: vec![first, second],
            steps: vec![step("first", vec![capture.clone()]), step("second", vec![])],
            data: Some(Data::default()),
            ..job(target, closed(1, 5))
        };
        let answers = load::walk(&scenario, 3).unwrap();
        assert_eq!(answers[1].body, b"\0\0\0\0\x03\x0a\x013");
        let wrong = Capture {
            from: CaptureFrom::Json("/txt".to_owned()),
            ..capture
        };
        let mut refused = scenario.clone();
        refused.steps[0].captures = vec![wrong];
        let error = load::walk(&refused, 0).unwrap_err().to_string();
        assert!(
            error.contains("`null.Message` has no field `txt`"),
            "{error}"
        );
        load::run(&scenario, &load::Live::new(), &AtomicBool::new(false)).unwrap()
    });
    assert_eq!(
        measurement.iterations.completed, 5,
        "{:?}",
        measurement.failures
    );
    let events = measurement.events.as_ref().unwrap();
    assert_eq!(
        (events.streams, events.events_of_streams),
        (5, 5),
        "one answer of the first step is no stream"
    );
}

#[test]
fn a_deadline_ends_a_call() {
    let slow = GrpcBehavior {
        delay: Duration::from_secs(5),
        ..behavior()
    };
    let ((right, wrong), _) = with_null(&slow, |target| {
        let call = echo(target, "Say", &["{}"]);
        let with = |status: u32| {
            let call = changed(call.clone(), |call| {
                call.deadline = Some(Duration::from_millis(20));
                call.status = status;
            });
            calls(target, call)
        };
        (with(4), with(0))
    });
    passed(&right);
    assert!(right.latency.quantile_ns(0.5).unwrap() < 1_000_000_000);
    assert_eq!(wrong.outcomes.failed.timeout, 20);
    assert!(
        wrong.failures[0]
            .reason
            .contains("the deadline of 20ms: grpc-status 4")
    );
}
