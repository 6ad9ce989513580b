//! The null server for HTTP/3: planted times, bodies, events and faults, seen by a load over HTTP/3.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{
    Behavior, NullCertificate, NullEarlyData, NullEncoding, NullStream, Pace, Seen, serve_http3,
};
use load::{
    Address, BodyRule, EventCheck, Failed, Framing, Protocol, StreamEnd, StreamRule, Target, Trust,
    Version, exchange, reach,
};

use crate::server::PATIENCE;
use crate::{closed, get, job, measure, open};

const DELAY: Duration = Duration::from_millis(20);

/// The socket and the certificate of a null server, and the target for its load.
pub(crate) fn ready() -> (UdpSocket, NullCertificate, Target) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let certificate = NullCertificate::new(vec!["null.test".to_owned()]).unwrap();
    let target = Target {
        address: Address::Tcp(socket.local_addr().unwrap()),
        host: "null.test".to_owned(),
        protocol: Protocol {
            version: Version::Http3 { streams: 4 },
            tls: Some(Trust::Authorities(certificate.pem().into_bytes())),
            ..Protocol::default()
        },
    };
    (socket, certificate, target)
}

/// Runs `work` with the target of a null server. Returns the result and the counts of the server.
fn with_null<T>(behavior: &Behavior, work: impl FnOnce(&Target) -> T) -> (T, Seen) {
    with_early(behavior, None, work)
}

/// Runs `work` with a null server that handles 0-RTT in this way.
pub(crate) fn with_early<T>(
    behavior: &Behavior,
    early: Option<NullEarlyData>,
    work: impl FnOnce(&Target) -> T,
) -> (T, Seen) {
    let (socket, certificate, target) = ready();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let server =
            scope.spawn(|| serve_http3(socket, &certificate, behavior, early, &stop).unwrap());
        let result = work(&target);
        stop.store(true, Ordering::Relaxed);
        (result, server.join().unwrap())
    })
}

#[test]
fn a_planted_delay_is_in_every_latency() {
    let behavior = Behavior {
        pace: Pace::Delay(DELAY),
        ..Behavior::default()
    };
    let (measurement, seen) = with_null(&behavior, |target| {
        let mut job = job(target, open(100.0, Duration::from_millis(300)));
        job.requests[0].expect.graphql = true;
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 30, "{measurement:?}");
    assert_eq!((seen.requests, seen.answered), (30, 30));
    assert!(seen.connections >= 1);
    let delay_ns = u64::try_from(DELAY.as_nanos()).unwrap();
    let fastest_ns = measurement.latency.min_ns().unwrap();
    // A histogram may show a value lower by less than a hundredth.
    assert!(fastest_ns >= delay_ns / 100 * 99, "{fastest_ns}");
    assert!(measurement.first_byte.min_ns().unwrap() >= delay_ns / 100 * 99);
}

#[test]
fn planted_faults_are_found_and_counted_on_both_sides() {
    let behavior = Behavior {
        wrong_every: Some(5),
        reset_every: Some(7),
        close_after: Some(10),
        encoding: Some(NullEncoding {
            coding: "gzip".to_owned(),
            is_varying: false,
        }),
        ..Behavior::default()
    };
    let (measurement, seen) = with_null(&behavior, |target| {
        let mut job = job(target, closed(1, 70));
        job.requests[0].expect.body = BodyRule::known(behavior_body().as_bytes(), &[]);
        measure(&job)
    });
    assert_eq!(measurement.sent, 70);
    assert_eq!(seen.requests, 70, "{measurement:?}");
    assert_eq!(measurement.outcomes.mismatched.body, seen.wrong);
    let expected = Failed {
        reset: seen.reset,
        ..Failed::default()
    };
    assert_eq!(measurement.outcomes.failed, expected, "{measurement:?}");
    assert!(seen.wrong > 0 && seen.reset > 0, "{seen:?}");
    assert!(seen.connections >= 7, "{seen:?}");
    assert_eq!(measurement.encodings.keys().collect::<Vec<_>>(), ["gzip"]);
}

/// The body of a correct response without settings.
fn behavior_body() -> &'static str {
    r#"{"data":{"fill":""}}"#
}

#[test]
fn events_leave_at_their_times_and_an_open_end_is_cut_by_the_rule() {
    for stays_open in [false, true] {
        let behavior = Behavior {
            stream: Some(NullStream {
                is_server_sent: true,
                events: 5,
                first: Duration::from_millis(3),
                gap: Duration::from_millis(2),
                marker: Some("[DONE]".to_owned()),
                stays_open,
            }),
            ..Behavior::default()
        };
        let (measurement, _) = with_null(&behavior, |target| {
            // More than the streams that a connection has at once.
            let mut job = job(target, closed(1, 40));
            job.requests[0].expect.stream = Some(StreamRule {
                framing: Framing::ServerSent,
                end: Some(StreamEnd::Data(b"[DONE]".to_vec())),
                events: Some(5),
                each: EventCheck::Json,
                sent_at: Some("/at".to_owned()),
            });
            measure(&job)
        });
        assert_eq!(measurement.outcomes.passed, 40, "{measurement:?}");
        let events = measurement.events.unwrap();
        let first_ns = events.first.min_ns().unwrap();
        assert!(first_ns >= 2_970_000, "{first_ns}");
        assert_eq!(measurement.connect.len(), 1);
    }
}

#[test]
fn requests_without_a_response_time_out_and_the_counts_can_be_read() {
    let behavior = Behavior {
        never_every: Some(3),
        ..Behavior::default()
    };
    let ((), seen) = with_null(&behavior, |target| {
        reach(target, PATIENCE).unwrap();
        let mut job = job(target, closed(1, 6));
        job.timeout = Duration::from_millis(200);
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.failed.timeout, 2, "{measurement:?}");
        let counts = exchange(target, &get("/seen"), PATIENCE).unwrap();
        let counts = String::from_utf8(counts.body).unwrap();
        assert!(counts.contains("\"never\":2"), "{counts}");
        let mut head = get("/");
        head.method = "HEAD".to_owned();
        let found = exchange(target, &head, PATIENCE).unwrap();
        assert_eq!((found.status, found.body.len()), (200, 0));
        assert_eq!(found.header("content-length"), Some("20"));
    });
    assert_eq!((seen.requests, seen.never), (7, 2));
}

#[test]
fn nothing_that_listens_is_not_reached() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = Target {
        address: Address::Tcp(socket.local_addr().unwrap()),
        host: "null.test".to_owned(),
        protocol: Protocol {
            version: Version::Http3 { streams: 1 },
            tls: Some(Trust::SkipVerification),
            ..Protocol::default()
        },
    };
    let silent = reach(&target, Duration::from_millis(100)).unwrap_err();
    assert!(silent.to_string().contains("no connection within 100ms"));
    drop(socket);
    let closed = reach(&target, PATIENCE).unwrap_err().to_string();
    assert!(closed.contains("refused"), "{closed}");
}
