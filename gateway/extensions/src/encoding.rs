//! Content codings of bodies: requests of clients, requests to subgraphs if `traffic_shaping` enables it, responses if a rule propagates the
//! client's `accept-encoding`.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use gateway_config::Compression;
use http::header::{self, HeaderMap, HeaderValue};

/// Maximum size of a decompressed body in bytes, without a smaller configured limit. It equals the limit of
/// received bodies.
pub(crate) const EXPANDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes to compress or decompress before other requests may run: one or two milliseconds of work.
const TURN_BYTES: usize = 256 * 1024;
/// Brotli's quality and window. They are fast, because a request waits for the result.
const BROTLI: (u32, u32) = (4, 20);

/// The value for `content-encoding`.
pub(crate) fn name(compression: Compression) -> HeaderValue {
    HeaderValue::from_static(match compression {
        Compression::Gzip => "gzip",
        Compression::Deflate => "deflate",
        Compression::Br => "br",
    })
}

/// Removes the headers that describe the received encoding, because stages see a decompressed and complete
/// body.
pub(crate) fn end_message_headers(headers: &mut HeaderMap) {
    gateway_hop::remove_hop_by_hop(headers);
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::CONTENT_ENCODING);
}

/// Compresses the body. HTTP's deflate is zlib (RFC 9110, 8.4.1.2). `give_way` is called after each
/// [`TURN_BYTES`] except the last.
pub(crate) async fn compress(
    compression: Compression,
    body: &[u8],
    give_way: impl AsyncFn(),
) -> Bytes {
    let level = flate2::Compression::fast();
    // Text usually shrinks to at most half, so the buffer seldom grows.
    let out = Vec::with_capacity(body.len() / 2);
    let out = match compression {
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(out, level);
            write(&mut encoder, body, give_way).await;
            encoder.finish().expect(IN_MEMORY)
        }
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(out, level);
            write(&mut encoder, body, give_way).await;
            encoder.finish().expect(IN_MEMORY)
        }
        Compression::Br => {
            let mut encoder = brotli::CompressorWriter::new(out, 4096, BROTLI.0, BROTLI.1);
            write(&mut encoder, body, give_way).await;
            encoder.into_inner()
        }
    };
    out.into()
}

const IN_MEMORY: &str = "writing to memory cannot fail";

async fn write(encoder: &mut impl Write, body: &[u8], give_way: impl AsyncFn()) {
    for (turn, piece) in body.chunks(TURN_BYTES).enumerate() {
        if turn > 0 {
            give_way().await;
        }
        encoder.write_all(piece).expect(IN_MEMORY);
    }
}

/// Lets the other requests of this thread run.
pub(crate) async fn give_way() {
    tokio::task::yield_now().await;
}

/// The reason why a body cannot be decompressed. The text continues a sentence about the body.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// The content coding, which is not supported.
    #[error("has the unsupported content-encoding `{0}`")]
    Unsupported(String),
    /// The body does not have its content coding.
    #[error("cannot be decompressed: {0}")]
    Invalid(std::io::Error),
    /// The body exceeds this number of bytes.
    #[error("expands to more than {0} bytes")]
    TooLarge(usize),
}

/// Decompresses the body. Fails if the coding is invalid or unsupported. Also fails, and stops, if the result
/// exceeds `bytes_max` (at most [`EXPANDED_BYTES_MAX`]). `give_way` is called after each [`TURN_BYTES`] of
/// the result.
pub async fn expand(
    coding: &[u8],
    body: &Bytes,
    bytes_max: Option<usize>,
    give_way: impl AsyncFn(),
) -> Result<Bytes, ExpandError> {
    let bytes_max = bytes_max.map_or(EXPANDED_BYTES_MAX, |max| max.min(EXPANDED_BYTES_MAX));
    let coding = coding.trim_ascii().to_ascii_lowercase();
    match coding.as_slice() {
        // Its length was checked when it was received.
        b"identity" | b"" => Ok(body.clone()),
        b"gzip" | b"x-gzip" => read(GzDecoder::new(&**body), bytes_max, give_way).await,
        b"deflate" => read(ZlibDecoder::new(&**body), bytes_max, give_way).await,
        b"br" => {
            let decoder = brotli::Decompressor::new(&**body, 4096);
            read(decoder, bytes_max, give_way).await
        }
        other => Err(ExpandError::Unsupported(
            String::from_utf8_lossy(other).into_owned(),
        )),
    }
}

async fn read(
    mut decoder: impl Read,
    bytes_max: usize,
    give_way: impl AsyncFn(),
) -> Result<Bytes, ExpandError> {
    let mut out = Vec::new();
    loop {
        // Reads one byte more than allowed, to detect a body above the limit.
        let turn = TURN_BYTES.min(bytes_max - out.len() + 1);
        let read = decoder
            .by_ref()
            .take(turn as u64)
            .read_to_end(&mut out)
            .map_err(ExpandError::Invalid)?;
        if out.len() > bytes_max {
            return Err(ExpandError::TooLarge(bytes_max));
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

    /// The decompressed body, and how often other requests could run.
    fn expand_in_turns(
        coding: &[u8],
        body: &Bytes,
        bytes_max: Option<usize>,
    ) -> (Result<Bytes, String>, usize) {
        let pauses = Cell::new(0);
        let give_way = async || pauses.set(pauses.get() + 1);
        let expanded = at_once(expand(coding, body, bytes_max, give_way));
        (expanded.map_err(|error| error.to_string()), pauses.get())
    }

    fn expand_whole(
        coding: &[u8],
        body: &Bytes,
        bytes_max: Option<usize>,
    ) -> Result<Bytes, String> {
        expand_in_turns(coding, body, bytes_max).0
    }

    fn compress_whole(compression: Compression, body: &[u8]) -> Bytes {
        at_once(compress(compression, body, async || {}))
    }

    #[test]
    fn a_large_body_is_compressed_in_turns() {
        let body: String = (0..300_000).map(|number| format!("{number},")).collect();
        for compression in ALL {
            let pauses = Cell::new(0);
            let give_way = async || pauses.set(pauses.get() + 1);
            let small = at_once(compress(compression, body.as_bytes(), give_way));
            assert_eq!(pauses.get(), body.len() / TURN_BYTES);
            let coding = name(compression);
            let expanded = expand_whole(coding.as_bytes(), &small, None).unwrap();
            assert!(expanded == body, "{compression:?}");
        }
    }

    #[test]
    fn a_large_body_is_expanded_in_turns() {
        for compression in ALL {
            let coding = name(compression);
            let of = |length: usize| {
                let small = compress_whole(compression, &vec![b' '; length]);
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
                let small = compress_whole(compression, text.as_bytes());
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
        let bomb = compress_whole(Compression::Gzip, &zeros);
        assert!(bomb.len() < 1_000_000);
        // No configuration can raise the limit.
        for bytes_max in [None, Some(usize::MAX)] {
            let error = expand_whole(b"gzip", &bomb, bytes_max).unwrap_err();
            assert!(error.contains("expands to more than 67108864"), "{error}");
        }
        let error = expand_whole(b"zstd", &Bytes::new(), None).unwrap_err();
        assert!(error.contains("`zstd`"), "{error}");
    }

    #[test]
    fn a_body_expands_to_as_much_as_is_allowed_and_no_further() {
        /// Counts the bytes that are read from it.
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
            let small = compress_whole(compression, body.as_bytes());
            let of = |max| expand_whole(coding.as_bytes(), &small, Some(max));
            assert_eq!(of(body.len()).unwrap(), body);
            let error = of(body.len() - 1).unwrap_err();
            assert_eq!(error, "expands to more than 4999 bytes");
        }
        let made = Cell::new(0);
        let expanded = read(Counting(10_000_000, &made), 1_000, async || {});
        at_once(expanded).unwrap_err();
        assert_eq!(made.get(), 1_001);
    }
}
