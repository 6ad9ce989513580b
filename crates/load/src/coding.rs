//! Removes the content codings of a body (RFC 9110, section 8.4), within a bound on its size.
//!
//! An encoded body is input from outside. It may be damaged or cut, and a few bytes may expand to gigabytes.
//! It is therefore decoded piece by piece, up to a limit of the caller.

use std::io::{self, Read, Write};

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::bufread::MultiGzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

#[cfg(test)]
mod tests;

/// More codings than this on one body are an attack, or a mistake.
const CODINGS_MAX: usize = 4;

/// Bytes that are decoded at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The largest window of zstd in HTTP (RFC 9659): 8 MiB, as a power of two.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A supported content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The reason why the content of a body is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// An unsupported coding.
    #[error(
        "the body has the content coding `{0}`, which cannot be decoded. Supported codings are gzip, deflate, br and zstd"
    )]
    Unknown(String),
    /// Too many codings on one body.
    #[error("the body has {0} content codings. At most 4 can be decoded")]
    Many(usize),
    /// The body ends within its coding.
    #[error(
        "the body is truncated: its {bytes} bytes of `Content-Encoding: {coding}` end before the content does"
    )]
    Truncated {
        /// The value of the header.
        coding: String,
        /// Length of the encoded body in bytes.
        bytes: usize,
    },
    /// The body does not match its coding.
    #[error("the body is damaged: its {bytes} bytes are not `Content-Encoding: {coding}` ({why})")]
    Damaged {
        /// The value of the header.
        coding: String,
        /// Length of the encoded body in bytes.
        bytes: usize,
        /// The error of the decoder.
        why: String,
    },
    /// The content is larger than allowed.
    #[error(
        "the body is too large: its {bytes} bytes of `Content-Encoding: {coding}` decode to more than {most} bytes"
    )]
    TooLarge {
        /// The value of the header.
        coding: String,
        /// Length of the encoded body in bytes.
        bytes: usize,
        /// The limit for the decoded body in bytes.
        most: usize,
    },
}

/// Returns the value of `Content-Encoding`: lines joined, lower case, without `identity`. `None` if no coding
/// remains.
pub(crate) fn joined<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let codings: Vec<String> = values
        .flat_map(|value| names(&String::from_utf8_lossy(value)))
        .collect();
    (!codings.is_empty()).then(|| codings.join(", "))
}

/// Returns the codings in a value of `Content-Encoding`, in lower case and without `identity`.
fn names(codings: &str) -> Vec<String> {
    codings
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect()
}

/// Returns the content of a body with the `Content-Encoding` `coding`, at most `most` bytes.
///
/// # Errors
/// If a coding is unknown, the body is damaged or cut, or its content is larger.
pub fn decoded(coding: &str, body: &[u8], most: usize) -> Result<Vec<u8>, CodingError> {
    let codings = read(coding)?;
    // The response to a HEAD, or a 304. The header describes a body that is absent.
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let mut content = body.to_vec();
    // They are listed in the order of encoding.
    for one in codings.into_iter().rev() {
        content = one.undo(&content, most).map_err(|fault| match fault {
            Fault::Truncated => CodingError::Truncated {
                coding: coding.to_owned(),
                bytes: body.len(),
            },
            Fault::Damaged(why) => CodingError::Damaged {
                coding: coding.to_owned(),
                bytes: body.len(),
                why,
            },
            Fault::TooLarge => CodingError::TooLarge {
                coding: coding.to_owned(),
                bytes: body.len(),
                most,
            },
        })?;
    }
    Ok(content)
}

fn read(codings: &str) -> Result<Vec<Coding>, CodingError> {
    let read: Vec<Coding> = names(codings)
        .into_iter()
        .map(|name| match name.as_str() {
            // RFC 9110, section 8.4.1.3: the old name is the same coding.
            "gzip" | "x-gzip" => Ok(Coding::Gzip),
            "deflate" => Ok(Coding::Deflate),
            "br" => Ok(Coding::Brotli),
            "zstd" => Ok(Coding::Zstd),
            _ => Err(CodingError::Unknown(name.escape_default().to_string())),
        })
        .collect::<Result<_, _>>()?;
    match read.len() {
        0..=CODINGS_MAX => Ok(read),
        many => Err(CodingError::Many(many)),
    }
}

/// The possible faults of one coding.
enum Fault {
    Truncated,
    Damaged(String),
    TooLarge,
}

impl Fault {
    fn of(error: &io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::Truncated,
            _ => Fault::Damaged(error.to_string()),
        }
    }
}

impl Coding {
    fn undo(self, body: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
        match self {
            // All members, because a body may consist of several members (RFC 1952, section 2.2).
            Coding::Gzip => drain(MultiGzDecoder::new(body), most),
            Coding::Deflate => inflate(body, most),
            Coding::Brotli => unbrotli(body, most),
            Coding::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(body).map_err(|it| Fault::of(&it))?;
                decoder
                    .window_log_max(ZSTD_WINDOW_LOG)
                    .map_err(|it| Fault::of(&it))?;
                drain(decoder, most)
            }
        }
    }
}

/// Reads to the end, or to the first byte beyond the limit.
fn drain(mut decoder: impl Read, most: usize) -> Result<Vec<u8>, Fault> {
    let mut content = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => return Ok(content),
            Ok(bytes) if content.len() + bytes > most => return Err(Fault::TooLarge),
            Ok(bytes) => content.extend_from_slice(&piece[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::of(&error)),
        }
    }
}

/// Decodes `deflate`, which is zlib by the standard, but raw deflate from some servers. Clients read both.
fn inflate(body: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
    let is_zlib = match body {
        [first, second, ..] => {
            first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
        }
        _ => false,
    };
    let found = inflate_as(is_zlib, body, most);
    match found {
        // Raw deflate may begin like a zlib header by chance.
        Err(Fault::Damaged(_)) if is_zlib => inflate_as(false, body, most).or(found),
        found => found,
    }
}

/// Decodes without a reader of flate2, because the reader accepts a cut stream as complete.
fn inflate_as(is_zlib: bool, body: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
    let mut state = Decompress::new(is_zlib);
    let mut content = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let (used, made) = (state.total_in(), state.total_out());
        let rest = usize::try_from(used).map_or(&[][..], |used| &body[used..]);
        let status = state
            .decompress(rest, &mut piece, FlushDecompress::None)
            .map_err(|error| Fault::Damaged(error.to_string()))?;
        let bytes = usize::try_from(state.total_out() - made).unwrap_or(usize::MAX);
        if content.len().saturating_add(bytes) > most {
            return Err(Fault::TooLarge);
        }
        content.extend_from_slice(&piece[..bytes]);
        match status {
            Status::StreamEnd => {
                let left = body.len() as u64 - state.total_in();
                return whole(content, left);
            }
            _ if bytes == 0 && state.total_in() == used => return Err(Fault::Truncated),
            _ => {}
        }
    }
}

/// Decodes without a reader of brotli, because the reader does not separate a cut stream from a damaged
/// stream.
fn unbrotli(body: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
    let alloc = StandardAlloc::default;
    let mut state = BrotliState::new(alloc(), alloc(), alloc());
    let mut content = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    let (mut left, mut at, mut total) = (body.len(), 0, 0);
    loop {
        let (mut room, mut made) = (piece.len(), 0);
        let result = BrotliDecompressStream(
            &mut left, &mut at, body, &mut room, &mut made, &mut piece, &mut total, &mut state,
        );
        if content.len() + made > most {
            return Err(Fault::TooLarge);
        }
        content.extend_from_slice(&piece[..made]);
        match result {
            BrotliResult::ResultSuccess => return whole(content, left as u64),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return Err(Fault::Truncated),
            BrotliResult::ResultFailure => {
                return Err(Fault::Damaged("not a Brotli stream".to_owned()));
            }
        }
    }
}

/// Returns a body without bytes after its end. Further bytes are a fault.
fn whole(content: Vec<u8>, left: u64) -> Result<Vec<u8>, Fault> {
    match left {
        0 => Ok(content),
        left => Err(Fault::Damaged(format!(
            "{left} bytes follow the end of the content"
        ))),
    }
}

/// Returns the last bytes of a gzip body with this content: its checksum and its length (RFC 1952, section
/// 2.3.1).
pub(crate) fn gzip_trailer(content: &[u8]) -> [u8; 8] {
    let mut sum = Crc::new();
    sum.update(content);
    let mut trailer = [0; 8];
    trailer[..4].copy_from_slice(&sum.sum().to_le_bytes());
    trailer[4..].copy_from_slice(&sum.amount().to_le_bytes());
    trailer
}

/// Encodes a body in these codings, for test servers.
///
/// # Errors
/// If a coding is unknown.
pub fn encoded(coding: &str, content: &[u8]) -> Result<Vec<u8>, CodingError> {
    let mut body = content.to_vec();
    for one in read(coding)? {
        body = one.put_on(&body);
    }
    Ok(body)
}

/// Returns the content in gzip.
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    Coding::Gzip.put_on(content)
}

impl Coding {
    fn put_on(self, content: &[u8]) -> Vec<u8> {
        let level = flate2::Compression::default();
        let made = match self {
            Coding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(content).and_then(|()| encoder.finish())
            }
            Coding::Deflate => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(content).and_then(|()| encoder.finish())
            }
            Coding::Brotli => {
                let mut body = Vec::new();
                let mut encoder = brotli::CompressorWriter::new(&mut body, 4096, 4, 22);
                let written = encoder.write_all(content);
                // The encoder writes its end when it is dropped.
                drop(encoder);
                written.map(|()| body)
            }
            Coding::Zstd => zstd::stream::encode_all(content, 3),
        };
        made.expect("memory takes all that is written to it")
    }
}
