//! The closed loop.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{Address, Data, Live, LoadError, Request, RowOrder, Target, exchange, run};
use model::{Load, Stop};

use crate::server::{Client, PATIENCE, Server, socket_path};
use crate::{closed, get, job, measure, verify};

fn polite(mut client: Client) {
    while client.request().is_some() {
        client.answer("hello");
    }
}

#[test]
fn exactly_as_many_requests_are_sent_as_asked_for_over_any_number_of_threads() {
    for (threads, connections, requests) in
        [(1, 1, 1), (1, 7, 100), (3, 8, 100), (4, 2, 9), (2, 50, 10)]
    {
        let server = Server::tcp(polite);
        let mut job = job(&server.target, closed(connections, requests));
        job.threads = threads;
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, requests);
        assert_eq!(measurement.sent, requests);
        assert_eq!(server.requests(), requests);
        assert_eq!(
            server.connections(),
            u64::from(connections),
            "connections are kept"
        );
        assert_eq!(measurement.connect.len(), u64::from(connections));
        assert_eq!(measurement.generator.threads, threads.min(connections));
        server.seen.wait_until_open(|open| open == 0);
    }
}

#[test]
fn the_generators_time_covers_its_cpu_time_and_its_waits_in_the_shortest_load() {
    let server = Server::tcp(polite);
    for threads in [1, 2] {
        let mut job = job(&server.target, closed(threads, 5));
        job.threads = threads;
        let generator = measure(&job).generator;
        let counted = generator.counted.expect("this engine counts it");
        // The clocks of threads and of the machine may differ by a few microseconds.
        let used = generator.cpu + generator.waited_for_cpu.unwrap_or_default();
        assert!(
            used <= counted + Duration::from_micros(100),
            "{generator:?}"
        );
    }
}

#[test]
fn every_byte_is_counted() {
    let server = Server::tcp(polite);
    let measurement = measure(&job(&server.target, closed(2, 10)));
    assert_eq!(
        measurement.bytes_out,
        10 * "GET / HTTP/1.1\r\nHost: server.test\r\n\r\n".len() as u64
    );
    assert_eq!(
        measurement.bytes_in,
        10 * "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".len() as u64
    );
    assert_eq!(measurement.statuses.class(2), 10);
}

#[test]
fn a_closed_loop_without_reconnects_has_service_time_for_latency_and_nothing_to_be_late_for() {
    let server = Server::tcp(polite);
    let measurement = measure(&job(&server.target, closed(3, 50)));
    assert!(measurement.latency == measurement.service);
    assert!(measurement.lateness.is_empty());
}

#[test]
fn a_duration_ends_the_sending_and_what_is_under_way_is_awaited() {
    let server = Server::tcp(polite);
    let load = Load::Closed {
        connections: 4,
        stop: Stop {
            requests: None,
            duration: Some(Duration::from_millis(50)),
        },
    };
    let measurement = measure(&job(&server.target, load));
    assert!(measurement.outcomes.passed > 0);
    assert_eq!(measurement.outcomes.passed, server.requests());
    assert_eq!(measurement.sent, measurement.outcomes.passed);
}

#[test]
fn without_keep_alive_every_request_has_a_connection_of_its_own_and_says_so() {
    let server = Server::tcp(|mut client| {
        let (_, request) = client.request().unwrap();
        assert!(request.contains("\r\nConnection: close\r\n"), "{request}");
        client.answer("hello");
        assert!(
            client.request().is_none(),
            "a second request on the connection"
        );
    });
    let mut job = job(&server.target, closed(3, 20));
    job.keep_alive = false;
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 20);
    assert_eq!(server.connections(), 20);
    assert_eq!(measurement.connect.len(), 20);
    assert!(measurement.latency.mean_ns() > measurement.service.mean_ns());
    server.seen.wait_until_open(|open| open == 0);
}

#[test]
fn a_server_that_announces_the_end_of_each_connection_costs_no_failures() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nConnection: close\nContent-Length: 2\n\nok");
    });
    let measurement = measure(&job(&server.target, closed(2, 30)));
    assert_eq!(measurement.outcomes.passed, 30);
    assert_eq!(server.requests(), 30);
}

#[test]
fn a_server_that_closes_together_with_its_answer_costs_no_failures() {
    let server = Server::tcp(|mut client| {
        if client.request().is_some() {
            client.answer_and_close("hello");
        }
    });
    let measurement = measure(&job(&server.target, closed(2, 30)));
    assert_eq!(measurement.outcomes.passed, 30);
    assert_eq!(server.requests(), 30);
}

#[test]
fn requests_rotate_by_weight_whatever_the_number_of_threads() {
    for threads in [1, 3] {
        let server = Server::tcp(|mut client| {
            while let Some((_, request)) = client.request() {
                let path = request.split(' ').nth(1).unwrap();
                let status = if path == "/heavy" { 200 } else { 201 };
                client.send(&format!("HTTP/1.1 {status} OK\nContent-Length: 0\n\n"));
            }
        });
        let mut job = job(&server.target, closed(6, 100));
        job.threads = threads;
        job.requests = vec![get("/heavy"), get("/light")];
        job.requests[0].weight = 3;
        let measurement = measure(&job);
        assert_eq!(measurement.statuses.by_code[&200], 75);
        assert_eq!(measurement.statuses.by_code[&201], 25);
    }
}

#[test]
fn a_unix_socket_is_a_target_too() {
    // The path of a socket has at most 107 bytes. The path of TMPDIR may be longer.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let server = Server::unix(&socket_path(&folder), polite);
    let measurement = measure(&job(&server.target, closed(50, 500)));
    assert_eq!(measurement.outcomes.passed, 500);
    assert_eq!(
        server.connections(),
        50,
        "a full queue of the listener is waited for"
    );
    let answer = exchange(&server.target, &get("/"), PATIENCE).unwrap();
    assert_eq!(answer.body, b"hello");
}

#[test]
fn the_stop_flag_ends_a_load_at_once_although_requests_are_under_way() {
    let server = Server::tcp(|mut client| client.wait_for_end());
    let job = job(&server.target, closed(2, 10));
    let stop = Arc::new(AtomicBool::new(false));
    let (done, end) = std::sync::mpsc::channel();
    let flag = Arc::clone(&stop);
    let load = std::thread::spawn(move || {
        let measurement = run(&job, &Live::new(), &flag).unwrap();
        done.send(measurement).unwrap();
    });
    server.seen.wait_until_open(|open| open == 2);
    stop.store(true, Ordering::SeqCst);
    // The requests under way would end by their own timeout only after `PATIENCE`.
    let measurement = end.recv_timeout(PATIENCE / 2).unwrap();
    load.join().unwrap();
    assert!(measurement.interrupted);
    verify(&measurement);
    assert_eq!(
        measurement.outcomes.total(),
        0,
        "what was under way has no outcome"
    );
    server.seen.wait_until_open(|open| open == 0);
}

#[test]
fn a_job_that_cannot_run_is_refused_with_the_reason() {
    let target = Target {
        address: Address::Tcp("127.0.0.1:1".parse().unwrap()),
        host: "x".to_owned(),
        protocol: load::Protocol::default(),
    };
    let refused = |change: &dyn Fn(&mut load::Job)| {
        let mut job = job(&target, closed(1, 1));
        change(&mut job);
        run(&job, &Live::new(), &AtomicBool::new(false))
            .map(|_| ())
            .map_err(|error: LoadError| error.to_string())
            .unwrap_err()
    };
    insta::assert_snapshot!(refused(&|job| job.requests.clear()), @"expected at least one request, found none");
    insta::assert_snapshot!(refused(&|job| job.threads = 0), @"expected at least one generator thread, found 0");
    insta::assert_snapshot!(refused(&|job| job.load = closed(0, 1)), @"expected at least one connection, found 0");
    insta::assert_snapshot!(refused(&|job| job.requests[0].path = "x".to_owned()), @"request 1 (`GET x`): expected a path that starts with `/` and has no spaces or control characters, found `x`. Encode such characters, for example as %20");
    insta::assert_snapshot!(refused(&|job| job.load = Load::Closed { connections: 1, stop: Stop { requests: None, duration: None } }), @"expected a number of requests or a duration for the end of the load, found neither");
    insta::assert_snapshot!(refused(&|job| job.cpus = Some(vec![5000])), @"cannot pin a generator thread to CPU 5000: Invalid argument (os error 22)");
    let too_many = refused(&|job| job.load = closed(4_000_000_000, 1));
    assert!(
        too_many.starts_with("4000000000 connections need 4000000064 open files"),
        "{too_many}"
    );
}

#[test]
fn every_slot_sends_its_own_row_with_the_length_of_its_body() {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let heard = Arc::clone(&seen);
    let server = Server::tcp(move |mut client| {
        while let Some((_, request)) = client.request() {
            heard.lock().unwrap().insert(request);
            client.send("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
        }
    });
    let mut job = job(&server.target, closed(3, 30));
    job.threads = 2;
    job.requests[0] = Request {
        method: "PUT".to_owned(),
        path: "/{{name}}?n={{index}}".to_owned(),
        body: b"<{{name}}>".to_vec(),
        ..get("/")
    };
    let row = |name: &str| vec![name.to_owned()];
    job.data = Some(Data {
        columns: row("name"),
        rows: vec![row("a"), row("b b"), row("ccc")],
        ranges: Vec::new(),
        order: RowOrder::Rotation,
        seed: 1,
    });
    assert_eq!(measure(&job).outcomes.passed, 30);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 30);
    let words = "PUT /b%20b?n=28 HTTP/1.1";
    let found = seen.iter().find(|request| request.starts_with(words));
    assert!(found.unwrap().contains("Content-Length: 5"), "{seen:#?}");
}
