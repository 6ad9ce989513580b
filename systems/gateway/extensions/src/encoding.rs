//! Compressed bodies: of requests when `traffic_shaping` says so, of answers when
//! a rule lets the client's `accept-encoding` through.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use gateway_config::Compression;
use http::header::{self, HeaderMap, HeaderValue};

/// Bytes that a body may expand to where nothing less is configured: as many as may be received.
pub(crate) const EXPANDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of text that are compressed or expanded before other requests may go on: a millisecond of work
/// or two.
const TURN_BYTES: usize = 256 * 1024;
/// Brotli's quality and window: fast, as a request waits for it.
const BROTLI: (u32, u32) = (4, 20);

/// The name in `content-encoding`.
pub(crate) fn name(compression: Compression) -> HeaderValue {
    HeaderValue::from_static(match compression {
        Compression::Gzip => "gzip",
        Compression::Deflate => "deflate",
        Compression::Br => "br",
    })
}

/// Removes the headers that describe a message as it came: the body that stages see is decoded and
/// whole.
pub(crate) fn end_message_headers(headers: &mut HeaderMap) {
    gateway_hop::remove_hop_by_hop(headers);
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
}

/// The body, compressed. What HTTP calls deflate is zlib (RFC 9110, 8.4.1.2).
pub(crate) fn compress(compression: Compression, body: &[u8]) -> Bytes {
    const IN_MEMORY: &str = "writing to memory cannot fail";
    let level = flate2::Compression::fast();
    // Text shrinks to half at least in most cases, so the buffer seldom grows.
    let mut out = Vec::with_capacity(body.len() / 2);
    match compression {
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(out, level);
            encoder.write_all(body).expect(IN_MEMORY);
            out = encoder.finish().expect(IN_MEMORY);
        }
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(out, level);
            encoder.write_all(body).expect(IN_MEMORY);
            out = encoder.finish().expect(IN_MEMORY);
        }
        Compression::Br => {
            let mut encoder = brotli::CompressorWriter::new(&mut out, 4096, BROTLI.0, BROTLI.1);
            encoder.write_all(body).expect(IN_MEMORY);
        }
    }
    out.into()
}

/// Lets the other requests of this thread go on.
pub(crate) async fn give_way() {
    tokio::task::yield_now().await;
}

/// The body without its coding, or what is wrong with it; also when it expands to more than
/// `bytes_max` (at most [`EXPANDED_BYTES_MAX`]), beyond which nothing is expanded. `give_way` is called
/// after each [`TURN_BYTES`] of what it expands to.
pub(crate) async fn expand(
    coding: &[u8],
    body: &Bytes,
    bytes_max: Option<usize>,
    give_way: impl AsyncFn(),
) -> Result<Bytes, String> {
    let bytes_max = bytes_max.map_or(EXPANDED_BYTES_MAX, |max| max.min(EXPANDED_BYTES_MAX));
    let coding = coding.trim_ascii().to_ascii_lowercase();
    match coding.as_slice() {
        // Its length was looked at when it was received.
        b"identity" | b"" => Ok(body.clone()),
        b"gzip" | b"x-gzip" => read(GzDecoder::new(&**body), bytes_max, give_way).await,
        b"deflate" => read(ZlibDecoder::new(&**body), bytes_max, give_way).await,
        b"br" => {
            let decoder = brotli::Decompressor::new(&**body, 4096);
            read(decoder, bytes_max, give_way).await
        }
        other => Err(format!(
            "subgraph response has the unsupported content-encoding `{}`",
            String::from_utf8_lossy(other)
        )),
    }
}

async fn read(
    mut decoder: impl Read,
    bytes_max: usize,
    give_way: impl AsyncFn(),
) -> Result<Bytes, String> {
    let mut out = Vec::new();
    loop {
        // One byte more than allowed is read, so that "exactly the limit" differs from "beyond it".
        let turn = TURN_BYTES.min(bytes_max - out.len() + 1);
        let read = decoder
            .by_ref()
            .take(turn as u64)
            .read_to_end(&mut out)
            .map_err(|error| format!("subgraph response cannot be decompressed: {error}"))?;
        if out.len() > bytes_max {
            return Err(format!(
                "subgraph response expands to more than {bytes_max} bytes"
            ));
        }
        if read < turn {
            return Ok(out.into());
        }
        give_way().await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn at_once<T>(work: impl Future<Output = T>) -> T {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("nothing here waits"),
        }
    }

    /// The body expanded, and how often others went first.
    fn expand_in_turns(
        coding: &[u8],
        body: &Bytes,
        bytes_max: Option<usize>,
    ) -> (Result<Bytes, String>, usize) {
        let pauses = Cell::new(0);
        let give_way = async || pauses.set(pauses.get() + 1);
        let expanded = at_once(expand(coding, body, bytes_max, give_way));
        (expanded, pauses.get())
    }

    fn expand_whole(
        coding: &[u8],
        body: &Bytes,
        bytes_max: Option<usize>,
    ) -> Result<Bytes, String> {
        expand_in_turns(coding, body, bytes_max).0
    }

    #[test]
    fn a_large_body_is_expanded_in_turns() {
        for compression in ALL {
            let coding = name(compression);
            let of = |length: usize| {
                let small = compress(compression, &vec![b' '; length]);
                let (expanded, pauses) = expand_in_turns(coding.as_bytes(), &small, None);
                assert_eq!(expanded.unwrap().len(), length);
                pauses
            };
            assert_eq!(of(TURN_BYTES - 1), 0);
            assert_eq!(of(10 * TURN_BYTES + 1), 10);
        }
    }

    const ALL: [Compression; 3] = [Compression::Gzip, Compression::Deflate, Compression::Br];

    #[test]
    fn what_is_compressed_expands_to_itself() {
        for compression in ALL {
            for text in ["", "{}", &"data ".repeat(10_000)] {
                let small = compress(compression, text.as_bytes());
                let coding = name(compression);
                assert_eq!(expand_whole(coding.as_bytes(), &small, None).unwrap(), text);
            }
        }
    }

    #[test]
    fn bodies_that_expand_without_end_or_not_at_all_are_refused() {
        let zeros = vec![0; EXPANDED_BYTES_MAX + 1];
        for compression in ALL {
            let coding = name(compression);
            let error = expand_whole(coding.as_bytes(), &Bytes::from_static(b"nonsense"), None)
                .unwrap_err();
            assert!(error.contains("cannot be decompressed"), "{error}");
        }
        let bomb = compress(Compression::Gzip, &zeros);
        assert!(bomb.len() < 1_000_000);
        // No configuration lifts the bound.
        for bytes_max in [None, Some(usize::MAX)] {
            let error = expand_whole(b"gzip", &bomb, bytes_max).unwrap_err();
            assert!(error.contains("expands to more than 67108864"), "{error}");
        }
        let error = expand_whole(b"zstd", &Bytes::new(), None).unwrap_err();
        assert!(error.contains("`zstd`"), "{error}");
    }

    #[test]
    fn a_body_expands_to_as_much_as_is_allowed_and_no_further() {
        /// Counts what is asked of it.
        struct Counting<'a>(usize, &'a Cell<usize>);
        impl Read for Counting<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let count = buffer.len().min(self.0);
                self.1.set(self.1.get() + count);
                self.0 -= count;
                Ok(count)
            }
        }
        let body = "data ".repeat(1_000);
        for compression in ALL {
            let coding = name(compression);
            let small = compress(compression, body.as_bytes());
            let of = |max| expand_whole(coding.as_bytes(), &small, Some(max));
            assert_eq!(of(body.len()).unwrap(), body);
            let error = of(body.len() - 1).unwrap_err();
            assert_eq!(error, "subgraph response expands to more than 4999 bytes");
        }
        let made = Cell::new(0);
        let expanded = read(Counting(10_000_000, &made), 1_000, async || {});
        at_once(expanded).unwrap_err();
        assert_eq!(made.get(), 1_001);
    }
}
