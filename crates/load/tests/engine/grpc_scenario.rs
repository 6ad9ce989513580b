//! Iterations that log in over HTTP and then call gRPC with the captured token.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Data, GrpcCall, GrpcDescriptors, Job, Measurement, Request, StatusRule, Version, walk};
use model::{PlannedMessage, StatusPart};

use crate::general;
use crate::modern::{Act, Got, Modern, Parts};
use crate::scenario::{captured, step};
use crate::server::PATIENCE;
use crate::{closed, get, job};

const VERSION: Version = Version::Http2 { streams: 4 };
const GRPC: (&str, &[u8]) = ("content-type", b"application/grpc");

/// Gives a token with a number, and answers calls that contain it. All other calls are refused.
fn shop(got: &Got) -> Parts {
    let call = Parts {
        status: 200,
        headers: vec![GRPC],
        trailers: Some(vec![("grpc-status", b"0")]),
        ..Parts::default()
    };
    if got.path.contains("ServerReflection") {
        let mut body = Vec::new();
        if let Some(question) = got.body.get(grpc_schema::PREFIX_BYTES..) {
            let answer = grpc_schema::reflection::echo::answer(question);
            grpc_schema::frame(&answer, false, &mut body);
        }
        return Parts {
            body: body.into(),
            ..call
        };
    }
    match got.path.as_str() {
        "/login" => Parts {
            status: 201,
            headers: vec![("content-type", b"application/json")],
            body: r#"{"token":"t-7","id":12}"#.into(),
            ..Parts::default()
        },
        "/busy/null.Echo/Say" => Parts {
            status: 503,
            ..Parts::default()
        },
        _ if got.body.ends_with(b"t-7 12") => Parts {
            body: got.body.clone(),
            ..call
        },
        _ => Parts {
            trailers: Some(vec![("grpc-status", b"16")]),
            ..call
        },
    }
}

/// Logs in, calls with the token and this rule for the status of HTTP, and sends a captured field over HTTP.
fn entering(server: &Modern, login: StatusRule, call: StatusRule) -> Job {
    let target = general::target(server, VERSION, false);
    let grpc = GrpcCall::new(
        "null.Echo/Say".to_owned(),
        GrpcDescriptors::Reflection,
        vec![PlannedMessage::of_text(r#"{"text":"{{token}} {{id}}"}"#)],
    );
    let mut request = Request::get(grpc.path());
    request.method = "POST".to_owned();
    request.grpc = Some(grpc);
    load::resolve(&mut request, &target, PATIENCE).unwrap();
    request.expect.status = call;
    let mut first = get("/login");
    first.expect.status = login;
    let mut last = get("/login?{{said}}");
    last.expect.status = StatusRule::Exactly(201);
    let captures = vec![captured("token", "/token"), captured("id", "/id")];
    Job {
        requests: vec![first, request, last],
        steps: vec![
            step("log in", Duration::ZERO, captures),
            step("call", Duration::ZERO, vec![captured("said", "/text")]),
            step("again", Duration::ZERO, Vec::new()),
        ],
        data: Some(Data::default()),
        ..job(&target, closed(2, 10))
    }
}

fn start() -> Modern {
    Modern::start(general::speech(VERSION, false), |got| {
        Act::Parts(shop(&got))
    })
}

fn run(job: &Job) -> Measurement {
    load::run(job, &load::Live::new(), &AtomicBool::new(false)).unwrap()
}

#[test]
fn a_token_of_a_login_is_in_the_messages_of_the_next_call() {
    let server = start();
    let created = StatusRule::Exactly(201);
    let several = StatusRule::of(&[StatusPart::Code(200), StatusPart::Code(503)]).unwrap();
    // The status of HTTP and the status of gRPC both count.
    for of_call in [StatusRule::Success, StatusRule::Exactly(200), several] {
        let job = entering(&server, created, of_call);
        let answers = walk(&job, 0).unwrap();
        assert!(answers[1].body.ends_with(b"t-7 12"), "{:?}", answers[1]);
        let measurement = run(&job);
        let completed = measurement.iterations.completed;
        assert_eq!(completed, 10, "{of_call:?} {:?}", measurement.failures);
    }
}

#[test]
fn a_rule_for_the_status_of_http_holds_for_calls_too() {
    let server = start();
    let created = StatusRule::Exactly(201);
    // A status for the login alone is no status of a call.
    let measurement = run(&entering(&server, created, created));
    assert_eq!(measurement.steps[1].outcomes.mismatched.status, 10);
    let reason = &measurement.failures[0].reason;
    assert_eq!(reason, "expected status 201, found 200");
    assert_eq!(measurement.steps[2].skipped, 10);
}

#[test]
fn a_status_of_http_that_is_expected_is_still_no_status_of_a_call() {
    let server = start();
    let several = StatusRule::of(&[StatusPart::Code(200), StatusPart::Code(503)]).unwrap();
    let mut job = entering(&server, StatusRule::Exactly(201), several);
    job.requests[1].path = "/busy/null.Echo/Say".to_owned();
    let measurement = run(&job);
    assert_eq!(measurement.steps[1].outcomes.passed, 0);
    let reason = &measurement.failures[0].reason;
    let words =
        "expected grpc-status 0 (OK), found 14 (UNAVAILABLE): the answer has the HTTP status 503";
    assert_eq!(reason, words);
}

#[test]
fn a_call_without_the_value_of_its_login_is_refused_by_the_server() {
    let server = start();
    let mut job = entering(&server, StatusRule::Exactly(201), StatusRule::Success);
    let call = job.requests[1].grpc.as_mut().unwrap();
    call.messages = vec![PlannedMessage::of_text(r#"{"text":"{{id}}"}"#)];
    let measurement = run(&job);
    let reason = &measurement.failures[0].reason;
    assert!(reason.contains("16 (UNAUTHENTICATED)"), "{reason}");
    assert_eq!(measurement.iterations.broken, 10);
}
