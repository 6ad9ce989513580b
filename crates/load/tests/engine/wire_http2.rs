//! Unusual behavior of servers on HTTP/2 and TLS connections, frame by frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use load::{Address, Failed, Failure, Protocol, Target, Trust, Version, exchange};

use crate::modern::{Act, Identity, Modern, Speech};
use crate::server::{Client, PATIENCE, Server};
use crate::{closed, get, job, measure, open};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const REFUSED_STREAM: u32 = 7;

/// `:status: 200` as an index in the static table of HPACK.
const STATUS_200: u8 = 0x88;

/// The server's side of an HTTP/2 connection.
struct Frames(Client);

impl Frames {
    /// Reads the preface of the client, and sends its own.
    fn new(mut client: Client) -> Option<Frames> {
        client.bytes(24)?;
        let mut frames = Frames(client);
        frames.send(SETTINGS, 0, 0, &[]);
        Some(frames)
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.0.send_bytes(&[&head, payload].concat());
    }

    /// Returns the stream of the next request.
    fn request(&mut self) -> Option<u32> {
        loop {
            let head = self.0.bytes(9)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            self.0.bytes(usize::try_from(length).unwrap())?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match head[3] {
                HEADERS => return Some(stream),
                SETTINGS if head[4] == 0 => self.send(SETTINGS, 1, 0, &[]),
                _ => {}
            }
        }
    }

    fn answer(&mut self, stream: u32) {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &[STATUS_200]);
    }

    fn refuse(&mut self, stream: u32) {
        self.send(RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes());
    }

    fn go_away(&mut self, last: u32) {
        self.send(GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat());
    }

    /// Sends a response with this head, in addition to its status, and this body.
    fn answer_with(&mut self, stream: u32, head: &[u8], body: &[u8]) {
        let head = [&[STATUS_200], head].concat();
        self.send(HEADERS, END_HEADERS, stream, &head);
        self.send(DATA, END_STREAM, stream, body);
    }
}

/// Returns a header that is in no table.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Returns a server that runs `speak` on each connection.
fn server(speak: impl Fn(Frames) + Send + Sync + 'static) -> Server {
    Server::tcp(move |client| {
        if let Some(frames) = Frames::new(client) {
            speak(frames);
        }
    })
}

fn over_http2(server: &Server, streams: u32) -> Target {
    Target {
        protocol: Protocol {
            version: Version::Http2 { streams },
            tls: None,
            ..Protocol::default()
        },
        ..server.target.clone()
    }
}

#[test]
fn streams_above_the_last_one_of_a_goaway_are_sent_again() {
    // Like nginx after its `keepalive_requests`.
    let ignored = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ignored);
    let server = server(move |mut frames| {
        let mut last = 0;
        for _ in 0..5 {
            let Some(stream) = frames.request() else {
                return;
            };
            last = stream;
            frames.answer(stream);
        }
        // Other requests may be on their way. The server awaits one, so that there is one.
        if frames.request().is_some() {
            count.fetch_add(1, Ordering::SeqCst);
        }
        frames.go_away(last);
        frames.0.wait_for_end();
    });
    let measurement = measure(&job(&over_http2(&server, 4), closed(2, 100)));
    assert_eq!(measurement.outcomes.passed, 100, "{measurement:?}");
    assert_eq!(measurement.sent, 100, "a request counts as sent once");
    assert!(measurement.sent_again >= ignored.load(Ordering::SeqCst));
    assert!(measurement.sent_again > 0);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the server takes its time")]
fn a_refused_stream_is_sent_again_and_its_latency_counts_from_its_first_send() {
    const WAIT: Duration = Duration::from_millis(120);
    let refused = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&refused);
    let server = server(move |mut frames| {
        let mut number = 0;
        while let Some(stream) = frames.request() {
            number += 1;
            if number % 3 == 0 {
                std::thread::sleep(WAIT);
                count.fetch_add(1, Ordering::SeqCst);
                frames.refuse(stream);
            } else {
                frames.answer(stream);
            }
        }
    });
    let measurement = measure(&job(&over_http2(&server, 1), closed(1, 8)));
    assert_eq!(measurement.outcomes.passed, 8, "{measurement:?}");
    assert_eq!(measurement.sent_again, refused.load(Ordering::SeqCst));
    assert_eq!(measurement.sent_again, 3);
    assert_eq!(server.connections(), 1, "the others go on");
    let wait_ns = u64::try_from(WAIT.as_nanos()).unwrap();
    let slow = measurement.latency.recorded();
    let slow = slow.filter(|(value, _)| *value >= wait_ns / 100 * 99);
    assert_eq!(slow.map(|(_, count)| count).sum::<u64>(), 3);
}

#[test]
fn a_request_that_is_refused_again_and_again_fails_and_says_so() {
    let server = server(|mut frames| {
        while let Some(stream) = frames.request() {
            frames.refuse(stream);
        }
    });
    let measurement = measure(&job(&over_http2(&server, 1), closed(1, 2)));
    let expected = Failed {
        reset: 2,
        ..Failed::default()
    };
    assert_eq!(measurement.outcomes.failed, expected);
    assert_eq!(measurement.sent_again, 20);
    assert_eq!(
        measurement.failures[0].reason,
        "the request was sent 11 times, but the server did not process it: the server reset the \
         stream (REFUSED_STREAM)"
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the server takes its time")]
fn a_request_that_is_refused_for_too_long_is_a_timeout() {
    let server = server(|mut frames| {
        while let Some(stream) = frames.request() {
            std::thread::sleep(Duration::from_millis(60));
            frames.refuse(stream);
        }
    });
    let mut job = job(&over_http2(&server, 1), closed(1, 1));
    job.timeout = Duration::from_millis(200);
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.failed.timeout, 1, "{measurement:?}");
}

#[test]
fn an_endless_answer_ends_with_its_timeout_and_holds_up_no_other_connection() {
    let number = AtomicU64::new(0);
    let server = server(move |mut frames| {
        let is_endless = number.fetch_add(1, Ordering::SeqCst) == 0;
        while let Some(stream) = frames.request() {
            if is_endless {
                frames.send(HEADERS, END_HEADERS, stream, &[STATUS_200]);
                // Data frames of 16 KiB each.
                let head = [&[0, 0x40, 0, DATA, 0][..], &stream.to_be_bytes()].concat();
                frames.0.flood(&[&head, &[b'a'; 0x4000][..]].concat());
                return;
            }
            frames.answer(stream);
        }
    });
    let mut job = job(
        &over_http2(&server, 1),
        open(20.0, Duration::from_millis(500)),
    );
    job.timeout = Duration::from_secs(1);
    job.bound.body_bytes = u64::MAX;
    let outcomes = measure(&job).outcomes;
    assert_eq!(outcomes.passed, 9, "{outcomes:?}");
    assert_eq!(outcomes.failed.timeout, 1, "{outcomes:?}");
}

/// Returns the reason of the failure of a request that this server disturbs.
fn reason(timeout: Duration, speak: impl Fn(Frames, u32) + Send + Sync + 'static) -> String {
    let server = server(move |mut frames| {
        if let Some(stream) = frames.request() {
            speak(frames, stream);
        }
    });
    let mut job = job(&over_http2(&server, 1), closed(1, 1));
    job.timeout = timeout;
    let mut measurement = measure(&job);
    measurement.failures.remove(0).reason
}

#[test]
fn what_breaks_the_rules_of_http_2_is_said_in_words() {
    let of_head = |head: Vec<u8>, body: &'static [u8]| {
        reason(PATIENCE, move |mut frames, stream| {
            frames.answer_with(stream, &head, body);
            frames.0.wait_for_end();
        })
    };
    let length = "the length of the body differs from the 5 bytes of its `content-length`";
    assert_eq!(of_head(literal("content-length", "5"), b"hell"), length);
    assert_eq!(of_head(literal("content-length", "5"), b"hello!"), length);
    let head = "the head of the answer is malformed: `:status` is missing or repeated, a name is \
                not in lower case, or HTTP/2 forbids a header (such as `connection`) \
                (PROTOCOL_ERROR)";
    assert_eq!(of_head(vec![STATUS_200], b""), head);
    assert_eq!(of_head(literal("connection", "close"), b""), head);
    let push = reason(PATIENCE, |mut frames, stream| {
        let promised = [&2_u32.to_be_bytes()[..], &[0x82, 0x86, 0x84]].concat();
        frames.send(PUSH_PROMISE, END_HEADERS, stream, &promised);
        frames.0.wait_for_end();
    });
    assert!(push.contains("a forbidden push"), "{push}");
}

#[test]
fn a_server_that_speaks_http_1_is_recognized() {
    let server = Server::tcp(|mut client| {
        client.send("HTTP/1.1 400 Bad Request\nContent-Length: 0\n\n");
        client.wait_for_end();
    });
    let measurement = measure(&job(&over_http2(&server, 1), closed(1, 1)));
    let reason = &measurement.failures[0].reason;
    assert!(reason.contains("HTTP/1.1 server"), "{reason}");
    assert!(reason.contains("without `--http2`"), "{reason}");
    let failure = exchange(&over_http2(&server, 1), &get("/"), PATIENCE).unwrap_err();
    assert!(failure.to_string().contains("HTTP/1.1 server"), "{failure}");
}

#[test]
fn a_server_that_lets_no_request_in_is_named() {
    let no_stream = [0, 3, 0, 0, 0, 0];
    let grants_none = Server::tcp(move |mut client| {
        client.bytes(24);
        let mut frames = Frames(client);
        frames.send(SETTINGS, 0, 0, &no_stream);
        frames.0.wait_for_end();
    });
    let is_silent = Server::tcp(|mut client| client.wait_for_end());
    for server in [grants_none, is_silent] {
        let mut job = job(&over_http2(&server, 1), closed(1, 1));
        job.timeout = Duration::from_millis(200);
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.failed.timeout, 1);
        let reason = &measurement.failures[0].reason;
        assert!(
            reason.contains("the server allows no HTTP/2 stream"),
            "{reason}"
        );
        assert_eq!(measurement.sent, 0);
    }
}

#[test]
fn a_server_that_goes_away_at_once_is_named() {
    let server = Server::tcp(|mut client| {
        client.bytes(24);
        let mut frames = Frames(client);
        frames.send(SETTINGS, 0, 0, &[]);
        frames.go_away(0);
        frames.0.close_write();
        frames.0.wait_for_end();
    });
    let measurement = measure(&job(&over_http2(&server, 1), closed(1, 1)));
    assert_eq!(measurement.outcomes.failed.total(), 1);
    let reason = &measurement.failures[0].reason;
    assert!(reason.contains("GOAWAY, NO_ERROR"), "{reason}");
}

#[test]
fn a_kept_connection_that_ends_under_a_request_is_told_from_others() {
    let server = server(|mut frames| {
        if let Some(stream) = frames.request() {
            frames.answer(stream);
        }
        frames.request();
    });
    let measurement = measure(&job(&over_http2(&server, 1), closed(1, 6)));
    assert_eq!(measurement.outcomes.passed, 3, "{measurement:?}");
    let expected = Failed {
        closed_idle: 3,
        ..Failed::default()
    };
    assert_eq!(measurement.outcomes.failed, expected);
}

/// Returns a certificate as from `openssl req -x509`: a certificate of an authority, for `server.test`.
fn of_an_authority(name: &str) -> Identity {
    let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    Identity {
        certificate: parameters.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

fn over_tls(identity: &Identity, trusted: &str) -> Result<u16, Failure> {
    let speech = Speech {
        tls: Some(vec!["http/1.1"]),
        ..Speech::default()
    };
    let server = Modern::listen("127.0.0.1:0", identity.clone(), speech, |_| {
        Act::answer("hello")
    });
    let target = Target {
        address: Address::Tcp(server.address),
        host: "server.test".to_owned(),
        protocol: Protocol {
            version: Version::Http1,
            tls: Some(Trust::Authorities(trusted.as_bytes().to_vec())),
            ..Protocol::default()
        },
    };
    exchange(&target, &get("/"), PATIENCE).map(|answer| answer.status)
}

#[test]
fn a_self_signed_certificate_is_accepted_where_it_is_the_trusted_one() {
    let identity = of_an_authority("server.test");
    assert_eq!(over_tls(&identity, &identity.certificate), Ok(200));
    // Another certificate is not trusted, although it looks equal.
    let other = of_an_authority("server.test");
    let refused = over_tls(&identity, &other.certificate).unwrap_err();
    assert!(refused.to_string().contains("TLS: "), "{refused}");
    // The certificate must still be for the host.
    let elsewhere = of_an_authority("elsewhere.test");
    let refused = over_tls(&elsewhere, &elsewhere.certificate).unwrap_err();
    assert!(refused.to_string().contains("TLS: "), "{refused}");
}
