//! The chunked transfer coding (RFC 9112, section 7.1), one stretch at a time.
//!
//! Line ends must be CRLF. With a lone LF or CR, two readers of the same bytes may disagree about their
//! meaning.

use super::error::ParseError;

/// The position within the coding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunked {
    place: Place,
    /// Bytes of the current line, or of all trailers. The limit stops a server that sends them without end.
    line_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    SizeLineFeed { size: u64 },
    Data { left: u64 },
    DataReturn,
    DataLineFeed,
    TrailerStart,
    Trailer,
    TrailerLineFeed,
    EndLineFeed,
}

/// A stretch of the coding, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Framing(usize),
    Data(usize),
    End(usize),
}

impl Chunked {
    pub(super) fn new() -> Chunked {
        Chunked {
            place: Place::Size { size: 0, digits: 0 },
            line_bytes: 0,
        }
    }

    /// Takes the next stretch. `bytes` is not empty.
    pub(super) fn next(&mut self, bytes: &[u8], line_max: usize) -> Result<Piece, ParseError> {
        if let Place::Data { left } = self.place {
            let take = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            let left = left - take as u64;
            self.place = if left == 0 {
                Place::DataReturn
            } else {
                Place::Data { left }
            };
            return Ok(Piece::Data(take));
        }
        for (index, byte) in bytes.iter().enumerate() {
            // Not in `step`, because this byte of framing completes the response.
            if let Place::EndLineFeed = self.place {
                expect(*byte, b'\n')?;
                return Ok(Piece::End(index + 1));
            }
            self.step(*byte)?;
            self.line_bytes += 1;
            // Otherwise a server that never ends a line would keep the connection until the timeout.
            if self.line_bytes > line_max {
                return Err(ParseError::TooLarge {
                    part: "chunk line or trailer",
                    limit: line_max as u64,
                    unit: "bytes",
                });
            }
            // Data is handed out in whole stretches, not byte by byte.
            if let Place::Data { .. } = self.place {
                return Ok(Piece::Framing(index + 1));
            }
        }
        Ok(Piece::Framing(bytes.len()))
    }

    /// Takes one byte of framing.
    fn step(&mut self, byte: u8) -> Result<(), ParseError> {
        self.place = match self.place {
            Place::Size { size, digits } => size_digit(byte, size, digits)?,
            Place::Extension { size } => match byte {
                b'\r' => Place::SizeLineFeed { size },
                b'\n' => return Err(ParseError::Malformed("a chunk size line without CR")),
                _ => Place::Extension { size },
            },
            Place::SizeLineFeed { size } => {
                expect(byte, b'\n')?;
                self.line_bytes = 0;
                match size {
                    // The chunk of size 0 ends the data. Trailers or an empty line follow.
                    0 => Place::TrailerStart,
                    left => Place::Data { left },
                }
            }
            Place::DataReturn => {
                expect(byte, b'\r')?;
                Place::DataLineFeed
            }
            Place::DataLineFeed => {
                expect(byte, b'\n')?;
                self.line_bytes = 0;
                Place::Size { size: 0, digits: 0 }
            }
            Place::TrailerStart | Place::Trailer => match (byte, self.place) {
                (b'\r', Place::TrailerStart) => Place::EndLineFeed,
                (b'\r', _) => Place::TrailerLineFeed,
                (b'\n', _) => return Err(ParseError::Malformed("a trailer without CR")),
                _ => Place::Trailer,
            },
            Place::TrailerLineFeed => {
                expect(byte, b'\n')?;
                Place::TrailerStart
            }
            // `next` handles these itself.
            Place::Data { .. } | Place::EndLineFeed => self.place,
        };
        Ok(())
    }
}

fn size_digit(byte: u8, size: u64, digits: u8) -> Result<Place, ParseError> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        // Without digits the size would be 0, which ends the body.
        _ if digits == 0 => return Err(ParseError::Malformed("a chunk without its size")),
        b';' | b' ' | b'\t' => return Ok(Place::Extension { size }),
        b'\r' => return Ok(Place::SizeLineFeed { size }),
        _ => return Err(ParseError::Malformed("a malformed chunk size")),
    };
    // Sixteen digits are 64 bits.
    if digits == 16 {
        return Err(ParseError::Malformed("a chunk size beyond 64 bits"));
    }
    Ok(Place::Size {
        size: size << 4 | u64::from(digit),
        digits: digits + 1,
    })
}

fn expect(byte: u8, expected: u8) -> Result<(), ParseError> {
    if byte == expected {
        Ok(())
    } else {
        Err(ParseError::Malformed("chunk framing in the wrong place"))
    }
}
