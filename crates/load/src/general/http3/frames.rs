//! Frames of a stream of HTTP/3 (RFC 9114, section 7.1).
//!
//! The library keeps a frame in memory until it is whole, whatever its length. Frames are therefore separated
//! here, before the library, and a head beyond the limit is refused by its length.

use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use h3::error::Code;
use quinn::{ReadError, RecvStream, VarInt};

const DATA: u64 = 0x0;
const HEADERS: u64 = 0x1;
const CANCEL_PUSH: u64 = 0x3;
const SETTINGS: u64 = 0x4;
const PUSH_PROMISE: u64 = 0x5;
const GOAWAY: u64 = 0x7;
const MAX_PUSH_ID: u64 = 0xd;

/// Frames of HTTP/2 that HTTP/3 forbids (RFC 9114, section 7.2.8).
const FORBIDDEN: [u64; 4] = [0x2, 0x6, 0x8, 0x9];

/// The type of the control stream (RFC 9114, section 6.2.1).
const CONTROL: u64 = 0x0;

/// Bytes of a read.
const READ_MAX: usize = 64 * 1024;

/// Reads an integer of variable length (RFC 9000, section 16). `None` if bytes are missing.
fn integer(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let (own, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let start = u64::from(first & 0x3f);
    Some(
        own[1..]
            .iter()
            .fold(start, |value, byte| value << 8 | u64::from(*byte)),
    )
}

/// Adds an integer of variable length. Values of more than 62 bits do not exist.
pub(super) fn put_integer(value: u64, bytes: &mut BytesMut) {
    match value {
        0..0x40 => bytes.put_uint(value, 1),
        0x40..0x4000 => bytes.put_uint(value | 0x4000, 2),
        0x4000..0x4000_0000 => bytes.put_uint(value | 0x8000_0000, 4),
        _ => bytes.put_uint(value | 0xc000_0000_0000_0000, 8),
    }
}

/// Returns the beginning of a frame with a body of this length.
pub(super) fn data_head(length: u64) -> Bytes {
    let mut head = BytesMut::new();
    put_integer(DATA, &mut head);
    put_integer(length, &mut head);
    head.freeze()
}

/// The reason that a stream has no further frame.
#[derive(Debug)]
pub(super) enum FrameFault {
    Read(ReadError),
    /// A frame with a head is longer than the limit.
    TooLarge {
        limit: usize,
    },
    /// The server broke a rule of HTTP/3.
    Broken(Code, &'static str),
}

/// The next part of a response.
#[derive(Debug)]
pub(super) enum Part {
    /// A whole frame with a head or with trailers, in the form of the library.
    Head(Bytes),
    /// A piece of the body.
    Body(Bytes),
}

/// The progress in the frame that is being read.
#[derive(Debug)]
enum Place {
    Between,
    /// In a head, with the bytes until now and the missing number of bytes.
    Head(BytesMut, usize),
    Body(u64),
    /// In a frame without a meaning for us.
    Skipped(u64),
}

/// The frames of a stream with one response.
pub(super) struct Frames {
    stream: RecvStream,
    /// Received bytes after the place.
    rest: Bytes,
    /// The beginning of a frame until its type and length are whole.
    head: Vec<u8>,
    place: Place,
    head_max: usize,
    is_ended: bool,
}

impl Frames {
    pub(super) fn new(stream: RecvStream) -> Frames {
        Frames {
            stream,
            rest: Bytes::new(),
            head: Vec::new(),
            place: Place::Between,
            head_max: 0,
            is_ended: false,
        }
    }

    /// Refuses heads with more bytes than this.
    pub(super) fn limit_heads(&mut self, head_max: usize) {
        self.head_max = head_max;
    }

    /// Stops the server.
    pub(super) fn stop(&mut self) {
        if !self.is_ended {
            let code = VarInt::from_u64(Code::H3_REQUEST_CANCELLED.value());
            // A stream that has ended needs no stop.
            let _ = self.stream.stop(code.expect("a code has 62 bits"));
        }
    }

    /// Returns the next part. `None` at the end of the stream.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Part>, FrameFault>> {
        loop {
            if let Some(part) = self.next()? {
                return Poll::Ready(Ok(Some(part)));
            }
            if self.is_ended {
                return Poll::Ready(Ok(None));
            }
            let chunk = pin!(self.stream.read_chunk(READ_MAX, true));
            match ready!(std::future::Future::poll(chunk, context)).map_err(FrameFault::Read)? {
                Some(chunk) => self.rest = chunk.bytes,
                None => {
                    self.is_ended = true;
                    if !matches!(self.place, Place::Between) || !self.head.is_empty() {
                        let words = "the stream ended in a frame";
                        return Poll::Ready(Err(FrameFault::Broken(Code::H3_FRAME_ERROR, words)));
                    }
                }
            }
        }
    }

    /// Returns the next part of the received bytes. `None` if there are no more.
    fn next(&mut self) -> Result<Option<Part>, FrameFault> {
        while !self.rest.is_empty() {
            match &mut self.place {
                Place::Between => self.begin()?,
                Place::Skipped(left) => {
                    let skipped = clamped(*left, self.rest.len());
                    self.rest.advance(skipped);
                    *left -= skipped as u64;
                    if *left == 0 {
                        self.place = Place::Between;
                    }
                }
                Place::Body(left) => {
                    let piece = self.rest.split_to(clamped(*left, self.rest.len()));
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        self.place = Place::Between;
                    }
                    return Ok(Some(Part::Body(piece)));
                }
                Place::Head(frame, left) => {
                    let piece = self.rest.split_to(self.rest.len().min(*left));
                    frame.extend_from_slice(&piece);
                    *left -= piece.len();
                    if *left == 0 {
                        let frame = std::mem::take(frame).freeze();
                        self.place = Place::Between;
                        return Ok(Some(Part::Head(frame)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Reads type and length of the next frame, as far as they have arrived.
    fn begin(&mut self) -> Result<(), FrameFault> {
        self.head.push(self.rest.get_u8());
        let mut bytes = &self.head[..];
        let (Some(kind), Some(length)) = (integer(&mut bytes), integer(&mut bytes)) else {
            return Ok(());
        };
        self.head.clear();
        self.place = match kind {
            HEADERS => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > self.head_max {
                    let limit = self.head_max;
                    return Err(FrameFault::TooLarge { limit });
                }
                if length == 0 {
                    let words = "a head without a byte";
                    return Err(FrameFault::Broken(Code::QPACK_DECOMPRESSION_FAILED, words));
                }
                let mut frame = BytesMut::new();
                put_integer(HEADERS, &mut frame);
                put_integer(length as u64, &mut frame);
                Place::Head(frame, length)
            }
            CANCEL_PUSH | SETTINGS | GOAWAY | MAX_PUSH_ID => {
                let words = "a frame of the control stream in a response";
                return Err(FrameFault::Broken(Code::H3_FRAME_UNEXPECTED, words));
            }
            PUSH_PROMISE => {
                return Err(FrameFault::Broken(Code::H3_ID_ERROR, "a forbidden push"));
            }
            kind if FORBIDDEN.contains(&kind) => {
                let words = "a frame of HTTP/2";
                return Err(FrameFault::Broken(Code::H3_FRAME_UNEXPECTED, words));
            }
            // A frame without a byte has ended.
            _ if length == 0 => Place::Between,
            DATA => Place::Body(length),
            _ => Place::Skipped(length),
        };
        Ok(())
    }
}

/// Returns the smaller of both.
fn clamped(left: u64, bytes: usize) -> usize {
    usize::try_from(left).map_or(bytes, |left| left.min(bytes))
}

/// Finds the GOAWAY of a control stream in the bytes that the library reads.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The type of the stream. `None` until it has arrived.
    kind: Option<u64>,
    /// Bytes of an integer until it is whole.
    head: Vec<u8>,
    /// Type and length of the frame, and its bytes until now if they matter.
    frame: Option<(u64, u64)>,
}

impl Watch {
    /// Reads the next bytes. Returns the last stream in a GOAWAY.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<u64> {
        let mut found = None;
        for byte in bytes {
            if self.kind.is_some_and(|kind| kind != CONTROL) {
                return None;
            }
            found = self.step(*byte).or(found);
        }
        found
    }

    fn step(&mut self, byte: u8) -> Option<u64> {
        if let Some((kind, left)) = &mut self.frame {
            *left -= 1;
            if *kind == GOAWAY {
                self.head.push(byte);
            }
            if *left > 0 {
                return None;
            }
            self.frame = None;
            let id = integer(&mut &self.head[..]);
            self.head.clear();
            return id;
        }
        self.head.push(byte);
        let mut bytes = &self.head[..];
        if self.kind.is_none() {
            self.kind = integer(&mut bytes);
            if self.kind.is_some() {
                self.head.clear();
            }
            return None;
        }
        if let (Some(kind), Some(length)) = (integer(&mut bytes), integer(&mut bytes)) {
            self.head.clear();
            self.frame = (length > 0).then_some((kind, length));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_they_are_written() {
        // The examples of RFC 9000, appendix A.1, and the edges of each length.
        let mut example: &[u8] = &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(integer(&mut example), Some(151_288_809_941_952_652));
        assert_eq!(integer(&mut &[0x40, 0x25][..]), Some(37));
        for value in [
            0,
            63,
            64,
            16_383,
            16_384,
            (1 << 30) - 1,
            1 << 30,
            (1 << 62) - 1,
        ] {
            let mut bytes = BytesMut::new();
            put_integer(value, &mut bytes);
            let mut whole = &bytes[..];
            assert_eq!(integer(&mut whole), Some(value));
            assert!(whole.is_empty());
            assert_eq!(integer(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_goaway_is_found_in_any_division_of_the_bytes() {
        // Type, SETTINGS with two bytes, an empty unknown frame, and a GOAWAY with stream 8.
        let bytes = [0, 4, 2, 6, 1, 0x21, 0, 7, 1, 8];
        for cut in 0..bytes.len() {
            let mut watch = Watch::default();
            let first = watch.read(&bytes[..cut]);
            assert_eq!(first, None);
            assert_eq!(watch.read(&bytes[cut..]), Some(8), "{cut}");
        }
        // The same bytes on a stream of another type have no meaning.
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(Watch::default().read(&other), None);
    }
}
