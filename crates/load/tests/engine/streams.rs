//! Streamed responses: events, gaps, ends and wrong events.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{Behavior, NullStream, Pace, Seen, serve};
use load::{
    Address, EventCheck, EventsMeasurement, Framing, Measurement, Protocol, StreamEnd, StreamRule,
    Target, exchange,
};

use crate::general;
use crate::modern::Act;
use crate::server::{PATIENCE, Server};
use crate::{closed, get, job, measure, open};

const GAP: Duration = Duration::from_millis(2);

/// Five events of a null server, 2 ms apart.
fn five() -> NullStream {
    NullStream {
        is_server_sent: true,
        events: 5,
        first: Duration::from_millis(3),
        gap: GAP,
        marker: Some("[DONE]".to_owned()),
        stays_open: false,
    }
}

fn rule() -> StreamRule {
    StreamRule {
        framing: Framing::ServerSent,
        end: Some(StreamEnd::Data(b"[DONE]".to_vec())),
        events: Some(5),
        each: EventCheck::Json,
        sent_at: Some("/at".to_owned()),
    }
}

/// Runs `work` with the target of a null server. Returns the result and the counts of the server.
fn with_null<T>(behavior: &Behavior, work: impl FnOnce(&Target) -> T) -> (T, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target {
        address: Address::Tcp(listener.local_addr().unwrap()),
        host: "null.test".to_owned(),
        protocol: Protocol::default(),
    };
    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(listener, behavior, &stop).unwrap());
        let result = work(&target);
        stop.store(true, Ordering::Relaxed);
        (result, server.join().unwrap())
    })
}

fn behavior(stream: NullStream) -> Behavior {
    Behavior {
        stream: Some(stream),
        ..Behavior::default()
    }
}

fn events(measurement: &Measurement) -> &EventsMeasurement {
    measurement
        .events
        .as_ref()
        .expect("a request expects a stream")
}

#[test]
fn events_gaps_and_first_events_of_all_streams_are_recorded() {
    let (measurement, seen) = with_null(&behavior(five()), |target| {
        let mut job = job(target, closed(2, 10));
        job.requests[0].expect.stream = Some(rule());
        job.keep_slots = Some(10);
        measure(&job)
    });
    assert_eq!(
        measurement.outcomes.passed, 10,
        "{:?}",
        measurement.failures
    );
    assert_eq!(seen.connections, 2, "connections are kept");
    let found = events(&measurement);
    assert_eq!(
        (found.streams, found.events, found.events_of_streams),
        (10, 50, 50)
    );
    // No event leaves early. A late event may shorten the next gap, so only sums have a bound.
    assert_eq!(found.gaps.times.len(), 40);
    assert_eq!(found.first.len(), 10);
    assert!(found.first.min_ns().unwrap() >= 3_000_000);
    let spread_ns = 4 * u64::try_from(GAP.as_nanos()).unwrap();
    let whole = measurement.latency.min_ns().unwrap();
    assert!(whole >= 3_000_000 + spread_ns, "{whole}");
    let positions: Vec<u64> = found.positions.iter().map(|it| it.position).collect();
    assert_eq!(positions, [1, 2, 3, 5]);
    assert!(found.positions.iter().all(|it| it.events == 10));
    // The publisher and the generator have the same clock.
    assert_eq!(found.delivery.times.len(), 50);
    assert!(found.delivery.times.max_ns().unwrap() < 1_000_000_000);
    // The head leaves 3 ms before the first event.
    for slot in &measurement.slots {
        let first_event_ns = slot.first_event_ns.expect("an event").get();
        assert!(slot.first_byte_ns <= first_event_ns && first_event_ns < slot.done_ns);
    }
    assert!(measurement.first_byte_from_due.max_ns() <= measurement.latency.max_ns());
}

#[test]
fn a_stream_of_a_plan_counts_from_its_due_time() {
    let (measurement, _) = with_null(&behavior(five()), |target| {
        let mut job = job(target, open(50.0, Duration::from_millis(200)));
        job.requests[0].expect.stream = Some(rule());
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 10);
    assert_eq!(events(&measurement).streams, 10);
    assert_eq!(events(&measurement).first.len(), measurement.latency.len());
}

#[test]
fn a_counted_stream_ends_although_the_response_continues() {
    let endless = NullStream {
        events: 1_000_000,
        marker: None,
        ..five()
    };
    let (measurement, seen) = with_null(&behavior(endless), |target| {
        let mut job = job(target, closed(1, 4));
        job.requests[0].expect.stream = Some(StreamRule {
            end: Some(StreamEnd::Count(3)),
            events: Some(3),
            ..rule()
        });
        // The proof reads one stream, and must end, too.
        let answer = exchange(target, &job.requests[0], PATIENCE).unwrap();
        assert!(answer.body.starts_with(b"data: {\"n\":1,"));
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 4, "{:?}", measurement.failures);
    assert_eq!(events(&measurement).events, 12);
    // The rest of a stream belongs to no request, so each stream has a connection of its own.
    assert!(seen.connections >= 5, "{seen:?}");
    // The stream ends with its third event and not with the end of the wait for the response.
    assert!(measurement.latency.min_ns().unwrap() >= 7_000_000);
    let silent = NullStream {
        stays_open: true,
        ..five()
    };
    let (measurement, _) = with_null(&behavior(silent), |target| {
        let mut job = job(target, closed(1, 3));
        job.requests[0].expect.stream = Some(rule());
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 3, "{:?}", measurement.failures);
}

#[test]
fn wrong_and_missing_events_are_mismatches() {
    let wrong = Behavior {
        wrong_every: Some(2),
        ..behavior(five())
    };
    let (measurement, _) = with_null(&wrong, |target| {
        let mut job = job(target, closed(1, 4));
        job.requests[0].expect.stream = Some(rule());
        measure(&job)
    });
    assert_eq!(measurement.outcomes.passed, 2);
    assert_eq!(measurement.outcomes.mismatched.event, 2);
    let reason = &measurement.failures[0].reason;
    assert_eq!(
        reason,
        "expected a JSON value in event 1 of the stream, found `{`"
    );
    let (measurement, _) = with_null(&behavior(five()), |target| {
        let mut job = job(target, closed(1, 2));
        job.requests[0].expect.stream = Some(StreamRule {
            events: Some(6),
            ..rule()
        });
        measure(&job)
    });
    assert_eq!(measurement.outcomes.mismatched.event, 2);
    assert_eq!(
        measurement.failures[0].reason,
        "expected 6 events, found 5 events"
    );
}

#[test]
fn a_stream_without_its_end_has_failed() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nb\ndata: 1\n\n\n");
    });
    let mut job = job(&server.target, closed(1, 2));
    job.requests[0].expect.stream = Some(StreamRule {
        each: EventCheck::Any,
        sent_at: None,
        ..rule()
    });
    let measurement = measure(&job);
    assert_eq!(
        measurement.outcomes.failed.closed, 2,
        "{:?}",
        measurement.failures
    );
    // The events that arrived are known.
    assert_eq!(
        (events(&measurement).events, events(&measurement).streams),
        (2, 0)
    );
}

#[test]
fn a_late_response_time_is_that_of_the_last_event() {
    let slow = Behavior {
        pace: Pace::Delay(Duration::from_millis(5)),
        ..behavior(five())
    };
    let (measurement, _) = with_null(&slow, |target| {
        let mut job = job(target, closed(1, 3));
        job.requests[0].expect.stream = Some(rule());
        measure(&job)
    });
    assert!(measurement.first_byte_from_due.min_ns().unwrap() >= 5_000_000);
    assert!(measurement.latency.min_ns().unwrap() >= 16_000_000);
}

#[test]
fn streams_over_tls_and_http2_are_split_like_others() {
    const BODY: &str = "data: {\"n\":1}\n\ndata: {\"n\":2}\n\ndata: [DONE]\n\n";
    for (server, target) in general::each(|_| Act::answer(BODY)) {
        let mut job = job(&target, closed(2, 10));
        job.requests[0].expect.stream = Some(StreamRule {
            events: Some(2),
            sent_at: None,
            ..rule()
        });
        exchange(&target, &get("/"), PATIENCE).unwrap();
        let measurement = measure(&job);
        assert_eq!(
            measurement.outcomes.passed, 10,
            "{target:?} {:?}",
            measurement.failures
        );
        assert_eq!(
            (events(&measurement).streams, events(&measurement).events),
            (10, 20)
        );
        server.wait_until_all_are_gone();
    }
}

#[test]
fn a_stream_that_never_ends_over_http2_ends_by_its_count() {
    const BODY: &str = "data: 1\n\ndata: 2\n\n";
    for (server, target) in general::each(|_| Act::Begin(BODY.into())) {
        let mut job = job(&target, closed(1, 3));
        job.requests[0].expect.stream = Some(StreamRule {
            end: Some(StreamEnd::Count(2)),
            events: None,
            sent_at: None,
            ..rule()
        });
        let measurement = measure(&job);
        assert_eq!(
            measurement.outcomes.passed, 3,
            "{target:?} {:?}",
            measurement.failures
        );
        server.wait_until_all_are_gone();
    }
}
