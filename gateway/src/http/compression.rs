//! Compression of responses, for clients that accept it.
//!
//! Bodies are complete before they are compressed. Small bodies stay plain, because the header of a
//! compressed stream would cost more than it saves. Large bodies are compressed in turns, and other requests
//! of the worker run in between. 40 MB take one second.

use std::io::{self, Write as _};

use bytes::Bytes;
use graphql_http::parse_weight;
use http::HeaderMap;
use http::header::{self, HeaderValue};
use tokio::sync::Semaphore;

use crate::http::reply::Reply;

/// Minimum size of a compressed body, in bytes.
const BODY_MIN: usize = 1024;

/// Bytes to compress before other requests may run: one or two milliseconds of work.
const TURN_BYTES: usize = 64 * 1024;

/// Maximum number of large bodies that one worker compresses at a time. Brotli needs about 10 MB for each.
pub(crate) const PLACES: usize = 8;

/// The supported codings, preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Zstd,
    Brotli,
    Gzip,
    Deflate,
}

const CODINGS: [(&str, Coding); 5] = [
    ("zstd", Coding::Zstd),
    ("br", Coding::Brotli),
    ("gzip", Coding::Gzip),
    ("x-gzip", Coding::Gzip),
    ("deflate", Coding::Deflate),
];

/// Compresses the body of a response if the client accepts it and the body is long enough.
///
/// A body that is longer than one turn needs one of `places`. `give_way` lets the other requests of this
/// thread run. It is called after each [`TURN_BYTES`] except the last.
pub(crate) async fn compress(
    accept: Option<&HeaderValue>,
    reply: &mut Reply,
    places: &Semaphore,
    give_way: impl AsyncFn(),
) {
    let Some(accept) = accept.and_then(|value| value.to_str().ok()) else {
        return;
    };
    if reply.body.len() < BODY_MIN || reply.headers.contains_key(header::CONTENT_ENCODING) {
        return;
    }
    // Before the choice, because a plain body depends on the client's header, too.
    add_to_vary(&mut reply.headers);
    let Some(coding) = choose(accept) else {
        return;
    };
    let compressed = if reply.body.len() <= TURN_BYTES {
        coding.encode(&reply.body)
    } else {
        // Boxed: few responses are this long, and all others must not reserve memory for it.
        Box::pin(async {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            coding.encode_in_turns(&reply.body, give_way).await
        })
        .await
    };
    match compressed {
        Ok(body) => {
            reply.body = Bytes::from(body);
            let name = HeaderValue::from_static(coding.name());
            reply.headers.insert(header::CONTENT_ENCODING, name);
        }
        // The plain body is still correct, but writing to memory should not fail.
        Err(error) => log::error!("an answer could not be compressed: {error}"),
    }
}

fn add_to_vary(headers: &mut HeaderMap) {
    let value = match headers.get(header::VARY) {
        Some(vary) if vary.as_bytes() != b"origin" => return,
        _ => HeaderValue::from_static("origin, accept-encoding"),
    };
    headers.insert(header::VARY, value);
}

/// The coding with the highest weight. If weights are equal, the order of [`CODINGS`] decides.
fn choose(accept: &str) -> Option<Coding> {
    let mut best: Option<(u16, usize)> = None;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts
            .find_map(|it| it.strip_prefix("q="))
            // No weight means 1. An invalid weight counts as 0, so that it cannot select a coding.
            .map_or(Some(1000), parse_weight)
            .unwrap_or(0);
        let place = match name.as_str() {
            // Gzip: every client with compression supports it.
            "*" => Some(2),
            name => CODINGS.iter().position(|(known, _)| *known == name),
        };
        if let Some(place) = place
            && weight > 0
            && best.is_none_or(|(had, at)| weight > had || (weight == had && place < at))
        {
            best = Some((weight, place));
        }
    }
    best.map(|(_, place)| CODINGS[place].1)
}

impl Coding {
    const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    fn encode(self, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = Encoder::new(self, body.len())?;
        encoder.write(body)?;
        encoder.finish()
    }

    async fn encode_in_turns(self, body: &[u8], give_way: impl AsyncFn()) -> io::Result<Vec<u8>> {
        let mut encoder = Encoder::new(self, body.len())?;
        for (turn, piece) in body.chunks(TURN_BYTES).enumerate() {
            if turn > 0 {
                give_way().await;
            }
            encoder.write(piece)?;
        }
        encoder.finish()
    }
}

/// An encoder with its output.
enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Deflate(flate2::write::ZlibEncoder<Vec<u8>>),
}

impl Encoder {
    /// Creates an encoder for a body of `length` bytes.
    fn new(coding: Coding, length: usize) -> io::Result<Self> {
        let out = Vec::with_capacity(length / 2);
        let fast = flate2::Compression::new(4);
        Ok(match coding {
            Coding::Zstd => {
                // zstd's own default level.
                let mut encoder = zstd::stream::write::Encoder::new(out, 3)?;
                // So a client can see how much memory it needs, and a short body gets a small window.
                encoder.set_pledged_src_size(Some(length as u64))?;
                Self::Zstd(encoder)
            }
            // Quality 4 with the default window: about gzip's time, and a tenth smaller.
            Coding::Brotli => {
                Self::Brotli(Box::new(brotli::CompressorWriter::new(out, 4096, 4, 22)))
            }
            Coding::Gzip => Self::Gzip(flate2::write::GzEncoder::new(out, fast)),
            Coding::Deflate => Self::Deflate(flate2::write::ZlibEncoder::new(out, fast)),
        })
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Zstd(encoder) => encoder.write_all(piece),
            Self::Brotli(encoder) => encoder.write_all(piece),
            Self::Gzip(encoder) => encoder.write_all(piece),
            Self::Deflate(encoder) => encoder.write_all(piece),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Zstd(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Deflate(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Read as _;
    use std::task::{Context, Waker};

    use futures_util::FutureExt as _;

    use super::*;

    fn reply(length: usize) -> Reply {
        Reply {
            body: Bytes::from("abcdefgh".repeat(length / 8)),
            ..Reply::default()
        }
    }

    fn compressed(accept: &'static str, length: usize) -> Reply {
        compressed_in_turns(accept, reply(length)).0
    }

    /// The response, and how often other requests could run.
    fn compressed_in_turns(accept: &'static str, mut reply: Reply) -> (Reply, usize) {
        let pauses = Cell::new(0);
        let accept = HeaderValue::from_static(accept);
        let places = Semaphore::new(1);
        let give_way = async || pauses.set(pauses.get() + 1);
        compress(Some(&accept), &mut reply, &places, give_way)
            .now_or_never()
            .unwrap();
        (reply, pauses.get())
    }

    fn expanded(name: &str, body: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        let read = match name {
            "zstd" => zstd::Decoder::new(body).unwrap().read_to_end(&mut plain),
            "br" => brotli::Decompressor::new(body, 4096).read_to_end(&mut plain),
            "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut plain),
            _ => flate2::read::ZlibDecoder::new(body).read_to_end(&mut plain),
        };
        read.unwrap();
        plain
    }

    #[test]
    fn each_coding_can_be_read_back() {
        for name in ["zstd", "br", "gzip", "deflate"] {
            let reply = compressed(name, 8192);
            assert_eq!(reply.headers[header::CONTENT_ENCODING], name);
            let plain = expanded(name, &reply.body);
            assert_eq!(plain, reply_body(8192), "{name}");
        }
    }

    #[test]
    fn large_bodies_are_compressed_in_turns() {
        // Numbers, so that all pieces differ.
        let body: String = (0..300_000).map(|number| format!("{number},")).collect();
        for name in ["zstd", "br", "gzip", "deflate"] {
            let reply = |length| Reply {
                body: Bytes::from(body[..length].to_owned()),
                ..Reply::default()
            };
            let (compressed, pauses) = compressed_in_turns(name, reply(body.len()));
            assert_eq!(pauses, body.len() / TURN_BYTES, "{name}");
            assert_eq!(compressed.headers[header::CONTENT_ENCODING], name);
            assert!(compressed.body.len() < body.len() / 2);
            assert!(
                expanded(name, &compressed.body) == body.as_bytes(),
                "{name}"
            );
            // Most responses need one turn.
            assert_eq!(compressed_in_turns(name, reply(TURN_BYTES)).1, 0);
        }
    }

    #[test]
    fn large_bodies_wait_for_a_place_and_small_ones_do_not() {
        let accept = HeaderValue::from_static("br");
        let places = Semaphore::new(1);
        let (mut first, mut second, mut small) = (reply(200_000), reply(200_000), reply(2_000));
        let mut context = Context::from_waker(Waker::noop());
        let pausing = async || std::future::pending().await;
        let mut begun = Box::pin(compress(Some(&accept), &mut first, &places, pausing));
        assert!(begun.as_mut().poll(&mut context).is_pending());
        let at_once = async || {};
        let mut waiting = Box::pin(compress(Some(&accept), &mut second, &places, at_once));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        let small_one = compress(Some(&accept), &mut small, &places, at_once);
        assert!(small_one.now_or_never().is_some());
        // The client of the first response disconnects.
        drop(begun);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        drop(waiting);
        assert_eq!(expanded("br", &second.body), reply_body(200_000));
    }

    fn reply_body(length: usize) -> Bytes {
        reply(length).body
    }

    #[test]
    fn the_client_chooses_and_we_choose_among_equals() {
        assert_eq!(choose("gzip, deflate, br, zstd"), Some(Coding::Zstd));
        assert_eq!(choose("gzip, br;q=0.9"), Some(Coding::Gzip));
        assert_eq!(choose("*"), Some(Coding::Gzip));
        assert_eq!(choose("identity"), None);
        assert_eq!(choose("gzip;q=0"), None);
    }

    #[test]
    fn small_bodies_stay_as_they_are() {
        let reply = compressed("gzip", 512);
        assert!(!reply.headers.contains_key(header::CONTENT_ENCODING));
        assert_eq!(reply.body, reply_body(512));
    }

    #[test]
    fn caches_are_told_that_the_answer_depends_on_the_coding() {
        assert_eq!(
            compressed("gzip", 2048).headers[header::VARY],
            "origin, accept-encoding"
        );
    }
}
