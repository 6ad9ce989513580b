//! Calls of gRPC: the status in trailers decides, and each message is an event.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{GrpcBehavior, serve_grpc};
use load::{
    Address, BodyRule, Framing, GrpcRule, Job, Measurement, Protocol, Request, StreamEnd,
    StreamRule, Target, Version, exchange,
};

use crate::general;
use crate::modern::{Act, Modern};
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

/// The reason why calls to a server with this behavior did not pass.
fn reason(act: Act) -> String {
    let server = Modern::start(general::speech(VERSION, false), move |_| act.clone());
    let mut target = general::target(&server, VERSION, false);
    target.protocol.version = VERSION;
    let measurement = calls(&target, call(0));
    assert_eq!(measurement.outcomes.passed, 0);
    measurement.failures[0].reason.clone()
}

#[test]
fn a_response_without_a_status_did_not_pass() {
    let found = reason(Act::Answer(MESSAGE.into()));
    assert_eq!(found, "expected grpc-status 0 (OK), found none");
    assert!(
        reason(Act::Reset).contains("stream"),
        "a reset is no status"
    );
}

#[test]
fn an_endless_message_ends_at_the_limit() {
    // The length of the message is 4 GiB, and the server sends 20 MiB of it.
    let mut huge = vec![0, 0xff, 0xff, 0xff, 0xff];
    huge.resize(20 << 20, 0);
    let server = Modern::start(general::speech(VERSION, false), move |_| {
        Act::Answer(huge.clone().into())
    });
    let target = general::target(&server, VERSION, false);
    let mut call = call(0);
    call.expect.stream = Some(StreamRule {
        end: Some(StreamEnd::Count(1)),
        ..StreamRule::of(Framing::Grpc)
    });
    let measurement = measure(&Job {
        requests: vec![call],
        ..job(&target, closed(1, 2))
    });
    assert_eq!(
        measurement.outcomes.failed.too_large, 2,
        "{:?}",
        measurement.failures
    );
}
