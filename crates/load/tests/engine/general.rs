//! The claims of the fast carrier for TLS and HTTP/2.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use load::{
    Address, BodyRule, Data, Failed, Failure, FailureKind, Job, Live, LoadError, Measurement,
    Protocol, RowOrder, Target, Trust, Version, exchange, run,
};

use crate::modern::{Act, Got, Identity, Modern, Speech};
use crate::server::{PATIENCE, closed_port};
use crate::{closed, get, job, measure, open};

pub(crate) const HTTP2: Version = Version::Http2 { streams: 1 };
pub(crate) const HTTP3: Version = Version::Http3 { streams: 1 };

/// Each protocol of the general carrier.
const SPOKEN: [(Version, bool); 4] = [
    (Version::Http1, true),
    (HTTP2, false),
    (HTTP2, true),
    (HTTP3, true),
];

pub(crate) fn speech(version: Version, is_encrypted: bool) -> Speech {
    let name = match version {
        Version::Http1 => "http/1.1",
        Version::Http2 { .. } => "h2",
        Version::Http3 { .. } => "h3",
    };
    Speech {
        is_http2: matches!(version, Version::Http2 { .. }),
        is_http3: version.is_http3(),
        tls: is_encrypted.then(|| vec![name]),
        streams_max: None,
        client: None,
    }
}

pub(crate) fn target(server: &Modern, version: Version, is_encrypted: bool) -> Target {
    let authority = server.authority.clone().into_bytes();
    Target {
        address: Address::Tcp(server.address),
        host: format!("server.test:{}", server.address.port()),
        protocol: Protocol {
            version,
            tls: is_encrypted.then_some(Trust::Authorities(authority)),
            ..Protocol::default()
        },
    }
}

/// Calls `check` with a server and a target for each protocol.
pub(crate) fn each(
    act: impl Fn(Got) -> Act + Clone + Send + 'static,
) -> impl Iterator<Item = (Modern, Target)> {
    SPOKEN.into_iter().map(move |(version, is_encrypted)| {
        let server = Modern::start(speech(version, is_encrypted), act.clone());
        let target = target(&server, version, is_encrypted);
        (server, target)
    })
}

fn failed(measurement: &Measurement) -> Failed {
    measurement.outcomes.failed
}

#[test]
fn exactly_as_many_requests_are_sent_as_asked_for() {
    for (threads, connections, requests) in [(1, 1, 1), (1, 7, 100), (2, 5, 60)] {
        for (server, target) in each(|_| Act::answer("hello")) {
            let mut job = job(&target, closed(connections, requests));
            job.threads = threads;
            let measurement = measure(&job);
            assert_eq!(measurement.outcomes.passed, requests, "{target:?}");
            assert_eq!(measurement.sent, requests);
            assert_eq!(server.requests(), requests);
            assert_eq!(server.connections(), u64::from(connections));
            assert_eq!(measurement.connect.len(), u64::from(connections));
            assert_eq!(measurement.bytes_in_bodies, 5 * requests);
            assert!(measurement.bytes_in > measurement.bytes_in_bodies);
            assert!(measurement.bytes_out > 0);
            assert!(measurement.latency == measurement.service);
            assert!(measurement.lateness.is_empty());
            server.wait_until_all_are_gone();
        }
    }
}

#[test]
fn without_keep_alive_every_request_has_a_connection_of_its_own() {
    for (server, target) in each(|_| Act::answer("hello")) {
        let mut job = job(&target, closed(2, 10));
        job.keep_alive = false;
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 10);
        assert_eq!(server.connections(), 10);
        assert_eq!(measurement.connect.len(), 10);
        // Connecting is part of the latency and not of the service time.
        assert!(measurement.latency.max_ns() > measurement.service.max_ns());
        server.wait_until_all_are_gone();
    }
}

#[test]
fn every_slot_of_a_plan_is_sent_when_it_is_due() {
    for (server, target) in each(|_| Act::answer("hello")) {
        let mut job = job(&target, open(500.0, Duration::from_millis(200)));
        job.threads = 2;
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 100, "{target:?}");
        assert_eq!(measurement.lateness.len(), 100);
        assert_eq!(server.requests(), 100);
        assert!(server.connections() <= 100);
        // The last slot is due after 198 ms. No slot leaves before it is due.
        let late = Duration::from_nanos(measurement.lateness.max_ns().unwrap());
        assert!(measurement.sending + late >= Duration::from_millis(198));
    }
}

#[test]
fn a_stall_is_in_the_latency_of_all_who_waited_and_in_the_service_time_of_one() {
    const STALL: Duration = Duration::from_millis(400);
    let act = |got: Got| match got.number {
        20 => Act::After(STALL, Bytes::from_static(b"hello")),
        _ => Act::answer("hello"),
    };
    for (_server, target) in each(act) {
        let mut job = job(&target, open(200.0, Duration::from_secs(1)));
        job.load.limit_connections(1);
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 200, "nothing is dropped");
        let beyond = |histogram: &stats::Histogram, limit: Duration| {
            let limit = u64::try_from(limit.as_nanos()).unwrap();
            let slower = histogram.recorded().filter(|(value, _)| *value >= limit);
            slower.map(|(_, count)| count).sum::<u64>()
        };
        // As over HTTP/1.1 without TLS (`open.rs`): lower bounds, which a slow machine only exceeds.
        assert!(beyond(&measurement.latency, STALL.mul_f64(0.99)) >= 1);
        assert!(beyond(&measurement.latency, Duration::from_millis(100)) >= 60);
        assert!(measurement.waited >= 79, "{} waited", measurement.waited);
        assert!(beyond(&measurement.service, STALL.mul_f64(0.99)) >= 1);
        assert!(beyond(&measurement.service, Duration::from_millis(100)) < 20);
        assert!(beyond(&measurement.lateness, Duration::from_millis(100)) >= 60);
    }
}

#[test]
fn slots_that_find_all_connections_busy_until_the_end_are_missed() {
    for (server, target) in each(|_| Act::Never) {
        let mut job = job(&target, open(100.0, Duration::from_millis(100)));
        job.load.limit_connections(1);
        job.timeout = Duration::from_millis(80);
        let measurement = measure(&job);
        let outcomes = measurement.outcomes;
        assert!(
            outcomes.failed.timeout + outcomes.failed.connect >= 1,
            "{outcomes:?}"
        );
        assert!(outcomes.missed >= 1, "{outcomes:?}");
        assert_eq!(outcomes.failed.total() + outcomes.missed, 10);
        server.wait_until_all_are_gone();
    }
}

#[test]
fn one_wrong_body_is_found() {
    let act = |got: Got| Act::answer(if got.number == 33 { "hellO" } else { "hello" });
    for (_server, target) in each(act) {
        let mut job = job(&target, closed(3, 100));
        job.requests[0].expect.body = BodyRule::known(b"hello", &[]);
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 99);
        assert_eq!(measurement.outcomes.mismatched.body, 1);
        let sample = &measurement.failures[0];
        assert!(
            sample.answer.ends_with("\r\n\r\nhellO"),
            "{}",
            sample.answer
        );
        let version = target.protocol.version.name();
        let first_line = format!("GET / {version}\r\n");
        assert!(
            sample.request.starts_with(&first_line),
            "{}",
            sample.request
        );
        assert!(
            sample.answer.starts_with(&format!("{version} 200")),
            "{}",
            sample.answer
        );
    }
}

#[test]
fn graphql_errors_are_found() {
    let act = |got: Got| match got.number % 2 {
        0 => Act::answer(r#"{"data":{"a":1}}"#),
        _ => Act::answer(r#"{"errors":[{"message":"no"}]}"#),
    };
    for (_server, target) in each(act) {
        let mut job = job(&target, closed(2, 20));
        job.requests[0].expect.graphql = true;
        let outcomes = measure(&job).outcomes;
        assert_eq!((outcomes.passed, outcomes.mismatched.graphql), (10, 10));
    }
}

#[test]
fn an_answer_that_does_not_come_is_a_timeout_and_leaves_no_socket() {
    for (server, target) in each(|_| Act::Begin(Bytes::from_static(b"hel"))) {
        let mut job = job(&target, closed(2, 4));
        job.timeout = Duration::from_millis(300);
        let measurement = measure(&job);
        let expected = Failed {
            timeout: 4,
            ..Failed::default()
        };
        assert_eq!(failed(&measurement), expected);
        let sample = &measurement.failures[0];
        assert_eq!(sample.reason, "no complete answer within 300ms");
        assert!(sample.answer.ends_with("hel"), "{}", sample.answer);
        // No request is sent on a connection after a failure on it.
        assert_eq!(server.connections(), 4);
        server.wait_until_all_are_gone();
        let failure = exchange(&target, &get("/"), Duration::from_millis(300)).unwrap_err();
        assert_eq!(failure.kind(), Some(FailureKind::Timeout));
    }
}

#[test]
fn a_stream_that_is_reset_is_a_reset_and_the_connection_goes_on() {
    let act = |got: Got| {
        if got.number.is_multiple_of(2) {
            Act::Reset
        } else {
            Act::answer("hello")
        }
    };
    for (version, is_encrypted) in [(HTTP2, false), (HTTP2, true), (HTTP3, true)] {
        let server = Modern::start(speech(version, is_encrypted), act);
        let measurement = measure(&job(&target(&server, version, is_encrypted), closed(1, 10)));
        assert_eq!(measurement.outcomes.passed, 5);
        assert_eq!(
            failed(&measurement),
            Failed {
                reset: 5,
                ..Failed::default()
            }
        );
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn a_connection_that_is_closed_instead_of_an_answer_fails_its_slot_and_is_not_retried() {
    let act = |got: Got| {
        if got.number % 2 == 1 {
            Act::Drop
        } else {
            Act::answer("hello")
        }
    };
    for (server, target) in each(act) {
        let measurement = measure(&job(&target, closed(1, 10)));
        assert_eq!(measurement.outcomes.passed, 5, "{measurement:?}");
        let failed = failed(&measurement);
        assert_eq!(failed.closed_idle, 5, "{measurement:?}");
        assert_eq!(server.requests(), 10);
    }
}

#[test]
fn a_target_that_goes_away_is_followed_to_a_new_connection() {
    let act = |got: Got| match got.number % 3 {
        2 => Act::AnswerAndLeave(Bytes::from_static(b"hello")),
        _ => Act::answer("hello"),
    };
    for (server, target) in each(act) {
        let measurement = measure(&job(&target, open(50.0, Duration::from_millis(240))));
        assert_eq!(measurement.outcomes.passed, 12, "{measurement:?}");
        assert!(server.connections() >= 4);
        server.wait_until_all_are_gone();
    }
}

#[test]
fn the_body_of_a_single_exchange_has_a_limit_that_is_named() {
    const LIMIT: usize = 64 * 1024 * 1024;
    let body = Bytes::from(vec![b'b'; LIMIT + 1]);
    let act = move |got: Got| match got.path.as_str() {
        "/fits" => Act::Answer(body.slice(1..)),
        _ => Act::Answer(body.clone()),
    };
    let plain = Modern::start(speech(Version::Http1, false), act.clone());
    let plain_target = target(&plain, Version::Http1, false);
    for (server, target) in each(act).chain([(plain, plain_target)]) {
        let fits = exchange(&target, &get("/fits"), PATIENCE).unwrap();
        assert_eq!(fits.body.len(), LIMIT);
        let refused = exchange(&target, &get("/"), PATIENCE).unwrap_err();
        let expected = "the body of the answer is larger than the 67108864 bytes allowed";
        assert_eq!(refused, Failure::TooLarge(expected.to_owned()));
        server.wait_until_all_are_gone();
    }
}

#[test]
fn a_refused_connection_is_counted_and_the_number_of_requests_is_kept() {
    for (version, is_encrypted) in SPOKEN {
        let mut target = closed_port();
        target.protocol = Protocol {
            version,
            tls: is_encrypted.then_some(Trust::SkipVerification),
            ..Protocol::default()
        };
        let measurement = measure(&job(&target, closed(2, 6)));
        assert_eq!(
            failed(&measurement),
            Failed {
                connect: 6,
                ..Failed::default()
            }
        );
        assert_eq!(measurement.sent, 0);
        let failure = exchange(&target, &get("/"), PATIENCE).unwrap_err();
        assert_eq!(failure.kind(), Some(FailureKind::Connect));
    }
}

#[test]
fn only_a_trusted_certificate_for_the_right_name_gives_a_connection() {
    let server = Modern::start(speech(Version::Http1, true), |_| Act::answer("hello"));
    let other = Modern::start(speech(Version::Http1, true), |_| Act::answer("hello"));
    let right = target(&server, Version::Http1, true);
    let trusting = |tls: Trust, host: &str| Target {
        host: host.to_owned(),
        protocol: Protocol {
            version: Version::Http1,
            tls: Some(tls),
            ..Protocol::default()
        },
        ..right.clone()
    };
    let own = || Trust::Authorities(server.authority.clone().into_bytes());
    let others = Trust::Authorities(other.authority.clone().into_bytes());
    for wrong in [
        trusting(others, "server.test"),
        trusting(own(), "elsewhere.test"),
    ] {
        let measurement = measure(&job(&wrong, closed(1, 2)));
        assert_eq!(
            failed(&measurement),
            Failed {
                connect: 2,
                ..Failed::default()
            }
        );
        let reason = &measurement.failures[0].reason;
        assert!(
            reason.starts_with("TLS: invalid peer certificate"),
            "{reason}"
        );
    }
    server.wait_until_all_are_gone();
    for right in [
        trusting(own(), "127.0.0.1"),
        trusting(Trust::SkipVerification, "elsewhere.test"),
    ] {
        assert_eq!(measure(&job(&right, closed(1, 2))).outcomes.passed, 2);
    }
}

#[test]
fn only_a_client_with_its_certificate_is_served_where_one_is_required() {
    let [own, other] = [Identity::new(), Identity::new()];
    for version in [Version::Http1, HTTP2, HTTP3] {
        let speech = Speech {
            client: Some(own.certificate.clone()),
            ..speech(version, true)
        };
        let server = Modern::start(speech, |_| Act::answer("hello"));
        let as_client = |identity: Option<(&Identity, &Identity)>| {
            let mut target = target(&server, version, true);
            target.protocol.identity = identity.map(|(certificate, key)| load::ClientIdentity {
                certificate: certificate.certificate.clone().into_bytes(),
                key: key.key.clone().into_bytes(),
            });
            target
        };
        let right = as_client(Some((&own, &own)));
        assert_eq!(measure(&job(&right, closed(2, 6))).outcomes.passed, 6);
        assert_eq!(exchange(&right, &get("/"), PATIENCE).unwrap().status, 200);
        for wrong in [None, Some((&other, &other))] {
            let outcomes = measure(&job(&as_client(wrong), closed(1, 2))).outcomes;
            assert_eq!((outcomes.passed, outcomes.failed.total()), (0, 2));
        }
        // A key of another certificate is no key, before the first connection.
        let unlike = job(&as_client(Some((&own, &other))), closed(1, 1));
        let error = run(&unlike, &Live::default(), &AtomicBool::new(false)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("a certificate of the client and its key"),
            "{error}"
        );
    }
}

#[test]
fn a_protocol_that_the_target_does_not_speak_is_not_negotiated_down() {
    let without_alpn = Speech {
        tls: Some(Vec::new()),
        ..Speech::default()
    };
    for speech in [without_alpn, speech(Version::Http1, true)] {
        let server = Modern::start(speech, |_| Act::answer("hello"));
        let measurement = measure(&job(&target(&server, HTTP2, true), closed(1, 1)));
        assert_eq!(failed(&measurement).connect, 1, "{measurement:?}");
    }
    let server = Modern::start(Speech::default(), |_| Act::answer("hello"));
    let outcomes = measure(&job(&target(&server, HTTP2, false), closed(1, 1))).outcomes;
    assert_eq!(outcomes.passed, 0);
    assert_eq!(outcomes.failed.total(), 1);
}

#[test]
fn as_many_requests_are_under_way_on_a_connection_as_there_are_streams() {
    let act = |_: Got| Act::After(Duration::from_millis(20), Bytes::from_static(b"hello"));
    for (streams_max, expected) in [(None, 8), (Some(3), 3)] {
        for (version, is_encrypted) in [
            (Version::Http2 { streams: 8 }, false),
            (Version::Http3 { streams: 8 }, true),
        ] {
            let speech = Speech {
                streams_max,
                ..speech(version, is_encrypted)
            };
            let server = Modern::start(speech, act);
            let target = target(&server, version, is_encrypted);
            let measurement = measure(&job(&target, closed(1, 80)));
            assert_eq!(measurement.outcomes.passed, 80, "{measurement:?}");
            assert_eq!(server.connections(), 1);
            assert_eq!(server.tally.under_way_max.load(Ordering::SeqCst), expected);
        }
    }
}

#[test]
fn an_open_loop_fills_the_streams_of_a_connection_before_it_opens_another() {
    let act = |_: Got| Act::After(Duration::from_millis(100), Bytes::from_static(b"hello"));
    for version in [
        Version::Http2 { streams: 100 },
        Version::Http3 { streams: 100 },
    ] {
        let server = Modern::start(speech(version, true), act);
        let measurement = measure(&job(
            &target(&server, version, true),
            open(200.0, Duration::from_millis(200)),
        ));
        assert_eq!(measurement.outcomes.passed, 40);
        assert_eq!(server.connections(), 1);
        assert_eq!(measurement.waited, 0);
    }
}

#[test]
fn big_bodies_travel_both_ways() {
    const BIG: usize = 20 * 1024 * 1024;
    let act = |got: Got| Act::Answer(got.body);
    for (_server, target) in each(act) {
        let mut job = job(&target, closed(1, 2));
        job.requests[0].method = "POST".to_owned();
        job.requests[0].body = (0..=250).cycle().take(BIG).collect();
        job.requests[0].expect.body = BodyRule::known(&job.requests[0].body, &[]);
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 2, "{:?}", measurement.outcomes);
        assert_eq!(measurement.bytes_in_bodies, 2 * BIG as u64);
        assert!(measurement.bytes_out > 2 * BIG as u64);
    }
}

#[test]
fn more_than_the_bounds_allow_is_too_large() {
    for (_server, target) in each(|_| Act::answer("hello")) {
        let mut job = job(&target, closed(1, 3));
        job.bound.body_bytes = 4;
        let measurement = measure(&job);
        assert_eq!(failed(&measurement).too_large, 3);
        let reason = "the body of the answer is larger than the 4 bytes allowed";
        assert_eq!(measurement.failures[0].reason, reason);
    }
}

#[test]
fn rows_of_data_are_filled_in() {
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&paths);
    let act = move |got: Got| {
        seen.lock().unwrap().push(got.path);
        Act::answer("hello")
    };
    for (_server, target) in each(act) {
        paths.lock().unwrap().clear();
        let mut job = job(&target, closed(1, 3));
        job.requests[0].path = "/{{id}}/{{index}}".to_owned();
        job.data = Some(Data {
            columns: vec!["id".to_owned()],
            rows: vec![vec!["a".to_owned()], vec!["b".to_owned()]],
            ranges: Vec::new(),
            order: RowOrder::Rotation,
            seed: 1,
        });
        assert_eq!(measure(&job).outcomes.passed, 3);
        let mut paths = paths.lock().unwrap().clone();
        paths.dedup();
        assert_eq!(paths, ["/a/0", "/b/1", "/a/2"]);
    }
}

#[test]
fn a_single_exchange_speaks_what_the_load_speaks() {
    for (server, target) in each(|_| Act::answer("hello")) {
        let answer = exchange(&target, &get("/"), PATIENCE).unwrap();
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (200, &b"hello"[..])
        );
        server.wait_until_all_are_gone();
    }
    for (_server, target) in each(|_| Act::Drop) {
        let failure = exchange(&target, &get("/"), PATIENCE).unwrap_err();
        // The result depends on whether the server has read the request.
        let hung_up = matches!(failure, Failure::Closed { .. } | Failure::Reset { .. });
        assert!(hung_up, "{failure:?}");
    }
}

#[test]
fn a_stopped_load_ends_at_once_and_closes_its_connections() {
    for (server, target) in each(|_| Act::Never) {
        let job = job(&target, closed(2, 4));
        let stop = AtomicBool::new(true);
        let measurement = run(&job, &Live::new(), &stop).unwrap();
        assert!(measurement.interrupted);
        server.wait_until_all_are_gone();
    }
}

#[test]
fn what_cannot_be_spoken_is_refused_before_the_first_connection() {
    let mut plain = job(&closed_port(), closed(1, 1));
    let refusal = |job: &Job| run(job, &Live::new(), &AtomicBool::new(false)).unwrap_err();
    plain.target.protocol.version = Version::Http2 { streams: 0 };
    assert!(matches!(refusal(&plain), LoadError::Zero("stream")));
    plain.target.protocol.version = HTTP2;
    plain.target.host = "no such".to_owned();
    let error = refusal(&plain).to_string();
    assert!(error.contains("over HTTP/2: expected a host"), "{error}");
    plain.target.protocol.tls = Some(Trust::Authorities(b"nothing".to_vec()));
    assert!(matches!(refusal(&plain), LoadError::Tls(_)));
}
