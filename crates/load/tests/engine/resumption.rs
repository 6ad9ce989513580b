//! Handshakes with tickets of earlier connections, and requests before the end of a handshake (0-RTT).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{Behavior, NullEarlyData, Pace, serve_http3};
use load::{Failed, Handshakes, Job, Live, Measurement, Resumption, Target, Version, run};

use crate::general::{HTTP2, speech, target};
use crate::modern::{Act, Modern};
use crate::null_http3::{ready, with_early};
use crate::{closed, job, measure, open};

const ACCEPTS: Option<NullEarlyData> = Some(NullEarlyData {
    rejected_every: None,
});

/// A load with a new connection for each request.
fn alone(target: &Target, resumption: Resumption, requests: u64) -> Job {
    let mut target = target.clone();
    target.protocol.resumption = resumption;
    if let Version::Http3 { streams } = &mut target.protocol.version {
        *streams = 1;
    }
    let mut job = job(&target, closed(1, requests));
    job.keep_alive = false;
    job
}

fn handshakes(measurement: &Measurement) -> Handshakes {
    measurement.handshakes.expect("a load over TLS")
}

#[test]
fn without_a_choice_every_handshake_is_full() {
    let (measurement, seen) = with_early(&Behavior::default(), ACCEPTS, |target| {
        measure(&alone(target, Resumption::Off, 10))
    });
    assert_eq!(measurement.outcomes.passed, 10, "{measurement:?}");
    let all_full = Handshakes {
        full: 10,
        ..Handshakes::default()
    };
    assert_eq!(handshakes(&measurement), all_full);
    assert_eq!((seen.requests, seen.early), (10, 0));
}

#[test]
fn the_connections_of_a_client_are_resumed_without_early_data() {
    let (measurement, seen) = with_early(&Behavior::default(), ACCEPTS, |target| {
        measure(&alone(target, Resumption::On, 20))
    });
    assert_eq!(measurement.outcomes.passed, 20, "{measurement:?}");
    let resumed = Handshakes {
        full: 1,
        resumed: 19,
        ..Handshakes::default()
    };
    assert_eq!(handshakes(&measurement), resumed);
    assert_eq!((seen.requests, seen.early), (20, 0));
}

#[test]
fn each_connection_is_a_client_with_tickets_of_its_own() {
    let (measurement, _) = with_early(&Behavior::default(), None, |target| {
        let mut job = alone(target, Resumption::On, 24);
        job.load = closed(3, 24);
        job.threads = 2;
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 24, "{measurement:?}");
    let found = handshakes(&measurement);
    assert_eq!((found.full, found.resumed), (3, 21), "{found:?}");
}

#[test]
fn an_accepted_request_arrives_before_the_end_of_the_handshake() {
    let behavior = Behavior {
        pace: Pace::Delay(Duration::from_millis(20)),
        ..Behavior::default()
    };
    let (measurement, seen) = with_early(&behavior, ACCEPTS, |target| {
        measure(&alone(target, Resumption::EarlyData, 20))
    });
    assert_eq!(measurement.outcomes.passed, 20, "{measurement:?}");
    assert_eq!(measurement.sent_again, 0);
    let found = handshakes(&measurement);
    assert_eq!(found.full + found.resumed, 20, "{found:?}");
    // A connection may begin before the tickets of its predecessor have arrived.
    assert!(found.resumed >= 15, "{found:?}");
    assert_eq!(found.early_accepted, found.resumed);
    assert_eq!(found.early_rejected, 0);
    // The server received them before it had the client's last message of the handshake.
    assert_eq!((seen.requests, seen.early), (20, found.early_accepted));
    // A connection is ready at once, and the handshake is in the latency.
    let connect = measurement.connect;
    assert_eq!(connect.len(), 20);
    let fastest_ns = measurement.latency.min_ns().unwrap();
    assert!(fastest_ns >= 19_800_000, "{fastest_ns}");
}

#[test]
fn a_rejected_request_is_sent_again_and_counts_from_its_due() {
    let early = Some(NullEarlyData {
        rejected_every: Some(2),
    });
    // Most tickets arrive before the response.
    let behavior = Behavior {
        pace: Pace::Delay(Duration::from_millis(10)),
        ..Behavior::default()
    };
    let (measurement, seen) = with_early(&behavior, early, |target| {
        measure(&alone(target, Resumption::EarlyData, 30))
    });
    assert_eq!(measurement.outcomes.passed, 30, "{measurement:?}");
    assert_eq!(measurement.outcomes.failed, Failed::default());
    let found = handshakes(&measurement);
    assert_eq!(found.full + found.resumed, 30, "{found:?}");
    // Connections 2, 4, … 30 are rejected, and 3, 5, … 29 accepted. A connection may begin before the tickets of its
    // predecessor have arrived.
    assert_eq!(found.early_accepted + found.early_rejected, found.resumed);
    assert!(found.early_accepted >= 8, "{found:?}");
    assert!(found.early_rejected >= 8, "{found:?}");
    assert_eq!(measurement.sent_again, found.early_rejected);
    // The server saw each request once, because it never read the rejected packets.
    assert_eq!((seen.requests, seen.early), (30, found.early_accepted));
    assert_eq!((measurement.sent, measurement.latency.len()), (30, 30));
}

#[test]
fn a_rejected_connection_carries_its_further_requests() {
    let early = Some(NullEarlyData {
        rejected_every: Some(2),
    });
    let behavior = Behavior {
        close_after: Some(5),
        ..Behavior::default()
    };
    let (measurement, seen) = with_early(&behavior, early, |target| {
        let mut job = alone(target, Resumption::EarlyData, 40);
        job.target.protocol.version = Version::Http3 { streams: 3 };
        job.keep_alive = true;
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 40, "{measurement:?}");
    assert_eq!(seen.requests, 40);
    let found = handshakes(&measurement);
    assert!(found.early_rejected >= 2, "{found:?}");
    assert!(found.full + found.resumed >= 8, "{found:?}");
}

#[test]
fn a_request_that_may_not_come_twice_waits_for_the_handshake() {
    let (measurement, seen) = with_early(&Behavior::default(), ACCEPTS, |target| {
        let mut job = alone(target, Resumption::EarlyData, 20);
        job.requests[0].method = "POST".to_owned();
        job.requests[0].body = b"once".to_vec();
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 20, "{measurement:?}");
    assert_eq!((seen.requests, seen.early), (20, 0));
    assert_eq!(measurement.sent_again, 0);
    let found = handshakes(&measurement);
    assert_eq!(found.full + found.resumed, 20, "{found:?}");
    assert!(found.early_accepted >= 15, "{found:?}");
}

#[test]
fn a_server_that_is_gone_fails_the_connection_although_there_is_a_ticket() {
    let (socket, certificate, target) = ready();
    let stop = AtomicBool::new(false);
    let measurement = thread::scope(|scope| {
        scope.spawn(|| {
            serve_http3(socket, &certificate, &Behavior::default(), ACCEPTS, &stop).unwrap()
        });
        scope.spawn(|| {
            thread::park_timeout(Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
        });
        let mut job = alone(&target, Resumption::EarlyData, 1);
        job.load = open(50.0, Duration::from_secs(1));
        job.timeout = Duration::from_secs(2);
        measure(&job)
    });
    let failed = measurement.outcomes.failed;
    assert!(measurement.outcomes.passed >= 10, "{measurement:?}");
    assert!(failed.connect >= 10, "{measurement:?}");
    // Some had a ticket, so that they were ready before the server refused them.
    let found = handshakes(&measurement);
    assert!(
        measurement.connect.len() > found.full + found.resumed,
        "{found:?}"
    );
    // At the stop of the server, some connections were open, and their requests had arrived.
    assert!(
        failed.connect > failed.closed + failed.reset + failed.timeout,
        "{failed:?}"
    );
}

#[test]
fn connections_over_tcp_are_resumed_but_have_no_early_data() {
    for version in [Version::Http1, HTTP2] {
        let server = Modern::start(speech(version, true), |_| Act::answer("hello"));
        let target = target(&server, version, true);
        let measurement = measure(&alone(&target, Resumption::On, 10));
        assert_eq!(measurement.outcomes.passed, 10, "{measurement:?}");
        let found = handshakes(&measurement);
        assert_eq!((found.full, found.resumed), (1, 9), "{version:?}");
        let early = alone(&target, Resumption::EarlyData, 1);
        let refused = run(&early, &Live::default(), &AtomicBool::new(false));
        let words = refused.unwrap_err().to_string();
        let expected = format!("0-RTT needs HTTP/3, found {}", version.name());
        assert!(words.contains(&expected), "{words}");
    }
    let server = Modern::start(speech(HTTP2, false), |_| Act::answer("hello"));
    let measurement = measure(&job(&target(&server, HTTP2, false), closed(1, 2)));
    assert_eq!(measurement.handshakes, None);
}
