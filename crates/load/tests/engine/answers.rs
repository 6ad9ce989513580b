//! Correct and wrong responses, in every form of HTTP/1.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use load::{BodyRule, FailureKind, Live, StatusRule, check, exchange, run};

use crate::server::{PATIENCE, Server};
use crate::{closed, get, job, measure, verify};

/// Returns a server with one response text for every request.
fn always(text: &'static str) -> Server {
    Server::tcp(move |mut client| {
        while client.request().is_some() {
            client.send(text);
        }
    })
}

#[test]
fn answers_of_every_form_pass() {
    for text in [
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhe\n3;x=y\nllo\n0\nTrailer: x\n\n",
        "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 5\n\nhello",
    ] {
        let server = always(text);
        let mut job = job(&server.target, closed(2, 10));
        job.requests[0].expect.body = BodyRule::Equals(Arc::from(b"hello".as_slice()));
        assert_eq!(measure(&job).outcomes.passed, 10, "{text}");
        assert_eq!(server.connections(), 2, "{text}");
    }
}

#[test]
fn answers_without_a_body_pass() {
    for (method, text) in [
        ("GET", "HTTP/1.1 204 No Content\n\n"),
        ("GET", "HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n"),
        ("HEAD", "HTTP/1.1 200 OK\nContent-Length: 5\n\n"),
    ] {
        let server = always(text);
        let mut job = job(&server.target, closed(1, 5));
        job.requests[0].method = method.to_owned();
        job.requests[0].expect.status = StatusRule::Any;
        assert_eq!(measure(&job).outcomes.passed, 5, "{text}");
        assert_eq!(server.connections(), 1, "{text}");
    }
}

#[test]
fn a_body_that_ends_with_the_connection_passes() {
    let server = Server::tcp(|mut client| {
        client.request();
        client.send("HTTP/1.1 200 OK\n\nhel");
        client.send("lo");
    });
    let mut job = job(&server.target, closed(2, 10));
    job.requests[0].expect.body = BodyRule::Equals(Arc::from(b"hello".as_slice()));
    assert_eq!(measure(&job).outcomes.passed, 10);
}

#[test]
fn an_answer_that_comes_byte_by_byte_passes() {
    let server = Server::tcp(|mut client| {
        while client.request().is_some() {
            for byte in "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".bytes() {
                client.send_bytes(&[byte]);
            }
        }
    });
    let mut job = job(&server.target, closed(2, 10));
    job.requests[0].expect.body = BodyRule::Equals(Arc::from(b"hello".as_slice()));
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 10);
    assert!(measurement.first_byte.mean_ns() < measurement.service.mean_ns());
}

#[test]
fn a_large_request_and_a_large_answer_arrive_whole() {
    const BYTES: usize = 8 * 1024 * 1024;
    let server = Server::tcp(|mut client| {
        while let Some((_, request)) = client.request() {
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let answer: String = body.chars().rev().collect();
            client.answer(&answer);
        }
    });
    let body: String = ('a'..='z').cycle().take(BYTES).collect();
    let reversed: String = body.chars().rev().collect();
    let mut job = job(&server.target, closed(2, 3));
    job.requests[0].method = "POST".to_owned();
    job.requests[0].body = body.into_bytes();
    job.requests[0].expect.body = BodyRule::Equals(Arc::from(reversed.into_bytes()));
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 3);
    assert!(measurement.bytes_out > 3 * BYTES as u64);
}

#[test]
fn an_answer_before_the_whole_request_was_read_counts() {
    let server = Server::tcp(|mut client| {
        client.head_only();
        client.send("HTTP/1.1 413 Content Too Large\nContent-Length: 0\n\n");
        // The connection is left open and the body unread.
        client.head_only();
        client.wait_for_end();
    });
    let mut job = job(&server.target, closed(1, 3));
    job.requests[0].method = "POST".to_owned();
    job.requests[0].body = vec![b'x'; 32 * 1024 * 1024];
    job.requests[0].expect.status = StatusRule::Exactly(413);
    assert_eq!(measure(&job).outcomes.passed, 3);
}

#[test]
fn each_wrong_body_among_many_is_found_and_the_first_ones_are_kept() {
    let server = Server::tcp(|mut client| {
        while let Some((number, _)) = client.request() {
            client.answer(if number % 97 == 5 { "hellO" } else { "hello" });
        }
    });
    let mut job = job(&server.target, closed(4, 1000));
    job.threads = 2;
    job.requests[0].expect.body = BodyRule::Equals(Arc::from(b"hello".as_slice()));
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.mismatched.body, 11);
    assert_eq!(measurement.outcomes.passed, 989);
    assert_eq!(measurement.failures.len(), 3);
    let sample = &measurement.failures[0];
    assert_eq!(sample.kind, FailureKind::Body);
    assert_eq!(
        sample.reason,
        "expected the known body of 5 bytes, found 5 bytes that differ at byte 4"
    );
    assert_eq!(
        sample.request,
        "GET / HTTP/1.1\r\nHost: server.test\r\n\r\n"
    );
    assert_eq!(
        sample.answer,
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellO"
    );
    assert!(measurement.failures.is_sorted_by_key(|sample| sample.at));
}

#[test]
fn graphql_errors_are_found_and_their_name_in_a_string_is_none() {
    let right = "HTTP/1.1 200 OK\nContent-Length: 29\n\n{\"data\":{\"a\":\"\\\"errors\\\":[\"}}";
    let wrong = "HTTP/1.1 200 OK\nContent-Length: 29\n\n{\"data\":null,\"errors\":[{},{}]}";
    let right: &'static str = right
        .replace("29", &right.split_once("\n\n").unwrap().1.len().to_string())
        .leak();
    let wrong: &'static str = wrong
        .replace("29", &wrong.split_once("\n\n").unwrap().1.len().to_string())
        .leak();
    let server = Server::tcp(move |mut client| {
        while let Some((number, _)) = client.request() {
            client.send(if number % 10 == 9 { wrong } else { right });
        }
    });
    let mut job = job(&server.target, closed(3, 50));
    job.requests[0].expect.graphql = true;
    let outcomes = measure(&job).outcomes;
    assert_eq!(outcomes.mismatched.graphql, 5);
    assert_eq!(outcomes.passed, 45);
}

#[test]
fn a_wrong_status_and_a_wrong_header_are_found() {
    let server = always("HTTP/1.1 500 Oops\nContent-Length: 0\n\n");
    let outcomes = measure(&job(&server.target, closed(1, 5))).outcomes;
    assert_eq!(outcomes.mismatched.status, 5);
    let server = always("HTTP/1.1 200 OK\nX-Source: go\nContent-Length: 0\n\n");
    let mut job = job(&server.target, closed(1, 5));
    job.requests[0].expect.headers = vec![("x-source".to_owned(), "rust".to_owned())];
    assert_eq!(measure(&job).outcomes.mismatched.header, 5);
}

#[test]
fn a_single_exchange_is_read_and_judged_by_the_same_rules() {
    let server = always("HTTP/1.1 200 OK\nX: y\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n");
    let mut request = get("/");
    let answer = exchange(&server.target, &request, PATIENCE).unwrap();
    assert_eq!((answer.status, answer.header("x")), (200, Some("y")));
    assert_eq!(answer.body, b"hello");
    request.expect.body = BodyRule::Equals(Arc::from(answer.body.as_slice()));
    assert_eq!(check(&request.expect, &answer), Ok(()));
    request.expect.status = StatusRule::Exactly(404);
    assert_eq!(
        check(&request.expect, &answer).map_err(|mismatch| mismatch.kind()),
        Err(FailureKind::Status)
    );
}

#[test]
fn what_differs_by_nature_is_ignored_however_the_answer_is_cut() {
    let volatile = Server::tcp(|mut client| {
        for count in 0.. {
            if client.request().is_none() {
                return;
            }
            let value = if count == 7 { 2 } else { 1 };
            let body = format!(r#"{{"data":{value},"extensions":{{"ms":{count}}}}}"#);
            client.send(&format!(
                "HTTP/1.1 200 OK\nContent-Length: {}\n\n",
                body.len()
            ));
            for part in body.as_bytes().chunks(11) {
                client.send(&String::from_utf8_lossy(part));
            }
        }
    });
    let mut job = job(&volatile.target, closed(1, 20));
    let ignore = ["/extensions/ms".to_owned()];
    let right = br#"{"data":1,"extensions":{"ms":0}}"#;
    job.requests[0].expect.graphql = true;
    job.requests[0].expect.body = BodyRule::known(right, &ignore);
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 19);
    assert_eq!(measurement.outcomes.mismatched.body, 1);
    assert_eq!(measurement.bytes_in_bodies, 10 * 32 + 10 * 33);
    let reason = &measurement.failures[0].reason;
    assert_eq!(reason, "expected `1` at `/data` of the body, found `2`");
}

/// Returns a response 200 with an encoded body.
fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns the content in zlib, in different bytes at each level.
fn deflated(content: &[u8], level: u64) -> Vec<u8> {
    let level = flate2::Compression::new(u32::try_from(level).unwrap());
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
    std::io::Write::write_all(&mut encoder, content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn equal_encoded_bytes_are_decoded_once_for_each_thread() {
    for coding in ["gzip", "deflate", "br", "zstd", "gzip, br"] {
        let body = load::encoded(coding, &b"hello ".repeat(100)).unwrap();
        let answer = coded(coding, &body);
        let server = Server::tcp(move |mut client| {
            while client.request().is_some() {
                client.send_bytes(&answer);
            }
        });
        let mut job = job(&server.target, closed(4, 200));
        job.threads = 2;
        job.requests[0].expect.body = BodyRule::Equals(Arc::from(b"hello ".repeat(100)));
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 200, "{coding}");
        let seen = measurement.coded;
        assert_eq!(seen.total(), 200, "{coding}: {seen:?}");
        assert!((1..=2).contains(&seen.decoded), "{coding}: {seen:?}");
        assert_eq!(seen.same_bytes, 200 - seen.decoded, "{coding}: {seen:?}");
        assert_eq!(measurement.bytes_in_bodies, 200 * body.len() as u64);
    }
}

#[test]
fn encoded_bytes_that_differ_are_sampled_after_the_load() {
    let content = b"hello ".repeat(100);
    for wrong_at in [None, Some(30)] {
        let known = content.clone();
        let count = AtomicU64::new(0);
        let server = Server::tcp(move |mut client| {
            while client.request().is_some() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let mut own = known.clone();
                if Some(number) == wrong_at {
                    own[300] ^= 1;
                }
                client.send_bytes(&coded("deflate", &deflated(&own, number % 10)));
            }
        });
        let mut job = job(&server.target, closed(1, 60));
        job.requests[0].expect.body = BodyRule::Equals(Arc::from(content.as_slice()));
        job.keep_slots = Some(60);
        // Not `measure`, because live counts do not include faults that are found after the load.
        let measurement = run(&job, &Live::new(), &AtomicBool::new(false)).unwrap();
        verify(&measurement);
        let seen = measurement.coded;
        assert_eq!(seen.decoded, 1, "the first: {seen:?}");
        assert!(seen.same_bytes < 30, "{seen:?}");
        assert_eq!(seen.sampled, seen.differing, "room for all: {seen:?}");
        let wrong = u64::from(wrong_at.is_some());
        assert_eq!(measurement.outcomes.mismatched.body, wrong);
        assert_eq!(measurement.outcomes.passed, 60 - wrong);
        let failed: Vec<u32> = measurement
            .slots
            .iter()
            .filter(|slot| !slot.passed())
            .map(|slot| slot.index)
            .collect();
        assert_eq!(failed, wrong_at.map_or(vec![], |_| vec![30]));
        assert_eq!(measurement.failures.len() as u64, wrong);
        for sample in &measurement.failures {
            insta::assert_snapshot!(sample.reason, @"expected the known body of 600 bytes, found 600 bytes that differ at byte 300 (decoded from `Content-Encoding: deflate`)");
        }
    }
}

#[test]
fn several_statuses_are_right_and_have_a_latency_each() {
    let count = AtomicU64::new(0);
    let server = Server::tcp(move |mut client| {
        while client.request().is_some() {
            match count.fetch_add(1, Ordering::SeqCst) % 4 {
                0 => client.send("HTTP/1.1 429 Too Many\nContent-Length: 4\n\nwait"),
                _ => client.send("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
            }
        }
    });
    let mut job = job(&server.target, closed(1, 40));
    job.requests[0].expect.body = BodyRule::Equals(Arc::from(b"hello".as_slice()));
    assert_eq!(measure(&job).outcomes.mismatched.status, 10);
    job.requests[0].expect.status = StatusRule::read("200,429").unwrap();
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 40);
    let counts = measurement.latency_by_status.iter();
    let counts: Vec<(u16, u64)> = counts.map(|(code, it)| (*code, it.len())).collect();
    assert_eq!(counts, [(200, 30), (429, 10)]);
}
