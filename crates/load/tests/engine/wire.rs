//! Unusual behavior of servers on HTTP/1.1 connections, as reported by users of other generators.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::{
    BodyRule, Capture, CaptureFrom, Failed, FailureKind, Live, Step, Target, Version, exchange, run,
};

use crate::general::{speech, target};
use crate::modern::{Act, Modern};
use crate::server::{Client, PATIENCE, Server};
use crate::{closed, get, job, measure, open};

/// Returns a server with normal responses, except for `/flood`, which returns endless chunks, as fast as the
/// socket accepts them.
///
/// The system widens the window of a connection only while its bytes are read quickly. The large chunks
/// therefore come first. Megabytes of the small chunks are then waiting.
fn flood(piece: &'static [u8]) -> Server {
    Server::tcp(move |mut client| {
        while let Some((_, request)) = client.request() {
            if request.starts_with("GET /flood ") {
                begin_flood(&mut client);
                client.flood(piece);
                return;
            }
            client.answer("hello");
        }
    })
}

/// Sends the head of an endless response, and its large chunks.
fn begin_flood(client: &mut Client) {
    client.send("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n");
    let large = [b"100000\r\n", &[b'b'; 0x10_0000][..], b"\r\n"].concat();
    for _ in 0..100 {
        client.send_bytes(&large);
    }
}

const TINY: &[u8] = b"1\r\na\r\n";

#[test]
fn an_endless_answer_that_comes_faster_than_it_is_read_ends_with_its_timeout() {
    let server = flood(TINY);
    let mut job = job(&server.target, closed(2, 4));
    job.requests = vec![get("/flood")];
    job.timeout = Duration::from_millis(300);
    let measurement = measure(&job);
    let expected = Failed {
        timeout: 4,
        ..Failed::default()
    };
    assert_eq!(measurement.outcomes.failed, expected);
}

#[test]
fn other_requests_go_on_beside_an_endless_answer() {
    let server = flood(TINY);
    let mut job = job(&server.target, open(20.0, Duration::from_secs(1)));
    job.requests = vec![get("/flood"), get("/")];
    job.requests[1].weight = 19;
    job.timeout = Duration::from_millis(1500);
    let outcomes = measure(&job).outcomes;
    assert_eq!(outcomes.passed, 19, "{outcomes:?}");
    assert_eq!(outcomes.failed.timeout, 1);
}

#[test]
fn an_endless_answer_does_not_keep_a_load_from_being_stopped() {
    let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
    let server = Server::tcp(move |mut client| {
        client.request();
        begin_flood(&mut client);
        begun.send(()).unwrap();
        client.flood(TINY);
    });
    let job = job(&server.target, closed(1, 1));
    let stop = AtomicBool::new(false);
    let measurement = std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            // Megabytes of the small chunks follow at once.
            has_begun.recv().unwrap();
            stop.store(true, Ordering::SeqCst);
        });
        run(&job, &Live::new(), stop).unwrap()
    });
    assert!(measurement.interrupted);
    assert_eq!(measurement.outcomes.total(), 0);
}

#[test]
fn a_large_body_that_takes_several_turns_is_read_to_its_end() {
    let body = Arc::new("x".repeat(40_000_000));
    let sent = Arc::clone(&body);
    let server = Server::tcp(move |mut client| {
        while client.request().is_some() {
            client.answer(&sent);
        }
    });
    let measurement = measure(&job(&server.target, closed(3, 6)));
    assert_eq!(measurement.outcomes.passed, 6, "{measurement:?}");
    assert_eq!(measurement.bytes_in_bodies, 6 * body.len() as u64);
    assert_eq!(server.connections(), 3);
}

#[test]
fn a_reset_of_a_kept_connection_before_the_answer_is_told_from_a_reset_within() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.answer("hello");
        client.request();
        client.reset();
    });
    let measurement = measure(&job(&server.target, closed(1, 10)));
    assert_eq!(measurement.outcomes.passed, 5);
    let expected = Failed {
        closed_idle: 5,
        ..Failed::default()
    };
    assert_eq!(measurement.outcomes.failed, expected);
    let sample = &measurement.failures[0];
    assert_eq!(sample.kind, FailureKind::ClosedIdle);
    let words = "the server closed the kept connection before it answered";
    assert!(sample.reason.starts_with(words), "{}", sample.reason);
}

#[test]
fn a_connection_that_is_announced_to_end_carries_no_further_request() {
    for announced in ["Keep-Alive: timeout=5, max=0", "Connection: close"] {
        let server = Server::tcp(move |mut client| {
            client.request();
            client.answer("hello");
            client.request();
            client.send(&format!(
                "HTTP/1.1 200 OK\nContent-Length: 0\n{announced}\n\n"
            ));
            client.close_write();
            client.wait_for_end();
        });
        let measurement = measure(&job(&server.target, closed(2, 40)));
        assert_eq!(measurement.outcomes.passed, 40, "{measurement:?}");
        assert_eq!(server.requests(), 40);
    }
}

#[test]
fn a_connection_that_was_idle_for_as_long_as_the_server_keeps_it_is_replaced() {
    let server = |keep_alive: &'static str| {
        Server::tcp(move |mut client| {
            while client.request().is_some() {
                let head = format!("HTTP/1.1 200 OK\nContent-Length: 0\n{keep_alive}\n");
                client.send(&head);
            }
        })
    };
    for (keep_alive, connections) in [("", 1), ("Keep-Alive: timeout=1\n", 2)] {
        let server = server(keep_alive);
        let mut job = job(&server.target, open(1.0, Duration::from_secs(2)));
        job.load.limit_connections(1);
        assert_eq!(measure(&job).outcomes.passed, 2);
        assert_eq!(server.connections(), connections, "{keep_alive}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the server takes its time")]
fn a_line_end_behind_a_body_is_no_answer_and_spoils_no_connection() {
    let server = Server::tcp(|mut client| {
        while client.request().is_some() {
            client.send("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello\n");
        }
    });
    let measurement = measure(&job(&server.target, closed(1, 10)));
    assert_eq!(measurement.outcomes.passed, 10, "{measurement:?}");
    assert_eq!(measurement.unsolicited, 0);
    assert_eq!(server.connections(), 1);
    exchange(&server.target, &get("/"), PATIENCE).unwrap();
    // The server does this while the connection is idle.
    let server = Server::tcp(|mut client| {
        while client.request().is_some() {
            client.answer("hello");
            std::thread::sleep(Duration::from_millis(20));
            client.send("\n");
        }
    });
    let mut job = job(&server.target, open(10.0, Duration::from_millis(500)));
    job.load.limit_connections(1);
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 5, "{measurement:?}");
    assert_eq!(measurement.unsolicited, 0);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_transfer_coding_beside_a_length_is_followed_on_a_connection_for_one_answer() {
    let server = Server::tcp(|mut client| {
        while client.request().is_some() {
            client.send(
                "HTTP/1.1 200 OK\nContent-Length: 99\nTransfer-Encoding: chunked\n\n2\nhi\n0\n\n",
            );
        }
    });
    let measurement = measure(&job(&server.target, closed(1, 5)));
    assert_eq!(measurement.outcomes.passed, 5, "{measurement:?}");
    assert_eq!(measurement.bytes_in_bodies, 10);
    assert_eq!(server.connections(), 5);
}

#[test]
fn an_answer_may_have_folded_values_and_hundreds_of_headers() {
    let server = Server::tcp(|mut client| {
        while client.request().is_some() {
            let many = "X-Many: 1\n".repeat(200);
            client.send(&format!(
                "HTTP/1.1 200 OK\n{many}X-Folded: one\n two\nContent-Length: 0\n\n"
            ));
        }
    });
    let mut job = job(&server.target, closed(1, 5));
    // The end of the line has two bytes, and two spaces replace it.
    job.requests[0].expect.headers = vec![("x-folded".to_owned(), "one   two".to_owned())];
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 5, "{measurement:?}");
}

#[test]
fn several_lines_of_a_header_are_expected_as_one_list() {
    let server = Server::tcp(|mut client| {
        while client.request().is_some() {
            client.send(
                "HTTP/1.1 200 OK\nVary: a\nSet-Cookie: a=1\nvary: b\nSet-Cookie: b=2\n\
                 Content-Length: 0\n\n",
            );
        }
    });
    for (name, value, is_right) in [
        ("Vary", "a, b", true),
        ("Vary", "a", false),
        ("Vary", "b", false),
        // A cookie cannot be part of a list.
        ("Set-Cookie", "a=1", true),
        ("Set-Cookie", "b=2", true),
        ("Set-Cookie", "c=3", false),
    ] {
        let mut job = job(&server.target, closed(1, 2));
        job.requests[0].expect.headers = vec![(name.to_owned(), value.to_owned())];
        let outcomes = measure(&job).outcomes;
        let expected = if is_right { (2, 0) } else { (0, 2) };
        let found = (outcomes.passed, outcomes.mismatched.header);
        assert_eq!(found, expected, "{name}: {value}");
    }
}

/// Calls `check` with a server with an endless body, over each carrier.
fn with_endless_body(check: impl Fn(&Target)) {
    let server = flood(b"2\r\nbb\r\n");
    check(&server.target);
    let body = bytes::Bytes::from(vec![b'b'; 20_000_000]);
    for (version, is_encrypted) in [
        (Version::Http1, true),
        (Version::Http2 { streams: 1 }, false),
    ] {
        let body = body.clone();
        let server = Modern::start(speech(version, is_encrypted), move |_| {
            Act::Answer(body.clone())
        });
        check(&target(&server, version, is_encrypted));
    }
}

const TOO_LARGE: &str = "the body of the answer has more than 16777216 bytes. It is too large to capture \
                         from or to compare in parts";

#[test]
fn a_body_that_is_too_large_to_capture_from_ends_its_request() {
    with_endless_body(|target| {
        let mut job = job(target, closed(2, 4));
        job.requests = vec![get("/flood")];
        let capture = Capture {
            name: "token".to_owned(),
            from: CaptureFrom::Body,
            pattern: Some("c".to_owned()),
        };
        job.steps = vec![Step {
            name: "only".to_owned(),
            pause: Duration::ZERO,
            captures: vec![capture],
        }];
        let measurement = measure(&job);
        let expected = Failed {
            too_large: 4,
            ..Failed::default()
        };
        assert_eq!(measurement.outcomes.failed, expected, "{measurement:?}");
        assert_eq!(measurement.failures[0].reason, TOO_LARGE);
    });
}

#[test]
fn a_body_that_is_too_large_to_be_compared_in_parts_ends_its_request() {
    with_endless_body(|target| {
        let mut job = job(target, closed(2, 4));
        job.requests = vec![get("/flood")];
        job.requests[0].expect.body = BodyRule::Alike {
            body: Arc::from(&br#"{"a":1,"b":2}"#[..]),
            ignore: vec!["/a".to_owned()],
        };
        let measurement = measure(&job);
        let expected = Failed {
            too_large: 4,
            ..Failed::default()
        };
        assert_eq!(measurement.outcomes.failed, expected, "{measurement:?}");
        assert_eq!(measurement.failures[0].reason, TOO_LARGE);
    });
}
