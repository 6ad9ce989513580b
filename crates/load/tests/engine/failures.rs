//! Servers that do not send a complete response.

use std::time::Duration;

use load::{Failed, Failure, FailureKind, exchange};

use crate::server::{PATIENCE, Server, closed_port};
use crate::{closed, get, job, measure};

#[test]
fn a_server_that_never_answers_is_a_timeout_and_leaves_no_socket() {
    let server = Server::tcp(|mut client| client.wait_for_end());
    let mut job = job(&server.target, closed(2, 4));
    job.timeout = Duration::from_millis(30);
    let measurement = measure(&job);
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            timeout: 4,
            ..Failed::default()
        }
    );
    assert_eq!(
        measurement.failures[0].reason,
        "no complete answer within 30ms"
    );
    server.seen.wait_until_open(|open| open == 0);
    let failure = exchange(&server.target, &get("/"), Duration::from_millis(30)).unwrap_err();
    assert_eq!(failure.kind(), Some(FailureKind::Timeout));
}

#[test]
fn an_answer_that_never_ends_is_a_timeout_and_its_begin_is_kept() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nContent-Length: 9\n\nhello");
        client.wait_for_end();
    });
    let mut job = job(&server.target, closed(1, 2));
    job.timeout = Duration::from_millis(300);
    let measurement = measure(&job);
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            timeout: 2,
            ..Failed::default()
        }
    );
    assert_eq!(
        measurement.failures[0].answer,
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"
    );
}

#[test]
fn a_refused_connection_is_counted_and_the_number_of_requests_is_kept() {
    let target = closed_port();
    let measurement = measure(&job(&target, closed(2, 6)));
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            connect: 6,
            ..Failed::default()
        }
    );
    assert_eq!(measurement.sent, 0);
    assert_eq!(measurement.failures.len(), 3);
    let failure = exchange(&target, &get("/"), PATIENCE).unwrap_err();
    assert_eq!(failure.kind(), Some(FailureKind::Connect));
}

#[test]
fn a_reset_within_the_answer_is_a_reset() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nContent-Length: 9\n\nhello");
        client.reset();
    });
    let outcomes = measure(&job(&server.target, closed(2, 6))).outcomes;
    assert_eq!(
        outcomes.failed,
        Failed {
            reset: 6,
            ..Failed::default()
        }
    );
}

#[test]
fn a_reset_instead_of_the_first_answer_is_a_reset() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.reset();
    });
    let outcomes = measure(&job(&server.target, closed(2, 6))).outcomes;
    assert_eq!(
        outcomes.failed,
        Failed {
            reset: 6,
            ..Failed::default()
        }
    );
}

#[test]
fn a_short_body_and_then_the_end_is_closed() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nContent-Length: 9\n\nhello");
    });
    let measurement = measure(&job(&server.target, closed(2, 6)));
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            closed: 6,
            ..Failed::default()
        }
    );
    assert_eq!(
        measurement.failures[0].reason,
        "the connection was closed during the answer"
    );
}

#[test]
fn a_used_connection_that_is_closed_instead_of_an_answer_fails_and_is_not_retried_in_silence() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.answer("hello");
        client.request();
    });
    let measurement = measure(&job(&server.target, closed(1, 10)));
    assert_eq!(measurement.outcomes.passed, 5);
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            closed_idle: 5,
            ..Failed::default()
        }
    );
    assert_eq!(
        measurement.failures[0].reason,
        "the server closed the kept connection before it answered"
    );
    assert_eq!(server.requests(), 10);
}

#[test]
fn more_body_than_promised_is_a_protocol_failure() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nContent-Length: 4\n\nhello");
        client.wait_for_end();
    });
    let measurement = measure(&job(&server.target, closed(2, 6)));
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            protocol: 6,
            ..Failed::default()
        }
    );
    assert_eq!(
        measurement.failures[0].reason,
        "expected the end of the answer, found 1 more bytes"
    );
    server.seen.wait_until_open(|open| open == 0);
}

#[test]
fn what_is_no_http_is_a_protocol_failure() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("SSH-2.0-OpenSSH_9.2\n");
        client.wait_for_end();
    });
    let outcomes = measure(&job(&server.target, closed(2, 6))).outcomes;
    assert_eq!(
        outcomes.failed,
        Failed {
            protocol: 6,
            ..Failed::default()
        }
    );
    let failure = exchange(&server.target, &get("/"), PATIENCE).unwrap_err();
    assert_eq!(failure.kind(), Some(FailureKind::Protocol));
}

#[test]
fn more_than_the_bounds_allow_is_too_large() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.answer("hello");
        client.wait_for_end();
    });
    let mut job = job(&server.target, closed(2, 6));
    job.bound.body_bytes = 4;
    let measurement = measure(&job);
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            too_large: 6,
            ..Failed::default()
        }
    );
    assert_eq!(
        measurement.failures[0].reason,
        "the body of the answer is larger than the 4 bytes allowed"
    );
}

#[test]
fn a_single_exchange_says_how_it_failed() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\nContent-Length: 9\n\nhello");
    });
    assert_eq!(
        exchange(&server.target, &get("/"), PATIENCE),
        Err(Failure::Closed { found_bytes: 43 })
    );
}
