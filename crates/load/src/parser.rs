//! Reads HTTP/1 responses as they arrive, in pieces of any size.
//!
//! The parser owns no body. It hands every stretch of the body to a [`Sink`] while the bytes are in the read
//! buffer. A response that fits into one read is therefore neither copied nor allocated. Only a head that was
//! cut by the end of a read is kept until the rest arrives.
//!
//! The parser is strict if a response could be read as longer or shorter (contradicting lengths, chunk
//! framing). A load generator that guesses a length measures the guess.
//!
//! Absent on purpose: pipelining, content decoding, upgrades. The parser reads one response at a time, and
//! leaves the bytes after it to the caller.
//!
//! Framing follows RFC 9112, section 6.3.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use crate::job::Bounds;

mod chunked;
mod error;
mod framing;
mod lines;
#[cfg(test)]
mod tests;

use chunked::{Chunked, Piece};
pub use error::ParseError;
use framing::{Framing, Lengths};
use lines::{name_fault, unfolded};

/// Header lines that need no allocation. A response may have more.
const HEADERS_USUAL: usize = 128;

/// A connection is no longer used this long before the server's idle timeout ends.
const IDLE_MARGIN_NS: u64 = 1_000_000_000;

/// Bytes of the shortest header line, `a:` and a line feed.
const HEADER_BYTES_MIN: usize = 3;

/// Receives a response while it is parsed.
pub trait Sink {
    /// Receives status line and headers of the final response. Interim (1xx) responses are skipped.
    fn head(&mut self, head: &Head<'_>);
    /// Receives the next bytes of the body, without framing.
    fn body(&mut self, part: &[u8]);
    /// Receives the trailers of a response, which follow its body.
    #[inline]
    fn trailers(&mut self, _trailers: &Head<'_>) {}
    /// Returns the reason to refuse the rest of this response, which ends it.
    #[inline]
    fn refusal(&self) -> Option<ParseError> {
        None
    }
    /// True if the rest of this response is not wanted, and its connection must not be used again.
    #[inline]
    fn is_over(&self) -> bool {
        false
    }
    /// True if the wanted part of this response is complete, although the response may continue.
    #[inline]
    fn is_ended(&self) -> bool {
        false
    }
}

impl<S: Sink> Sink for &mut S {
    fn head(&mut self, head: &Head<'_>) {
        (**self).head(head);
    }

    fn body(&mut self, part: &[u8]) {
        (**self).body(part);
    }

    fn trailers(&mut self, trailers: &Head<'_>) {
        (**self).trailers(trailers);
    }

    fn refusal(&self) -> Option<ParseError> {
        (**self).refusal()
    }

    fn is_over(&self) -> bool {
        (**self).is_over()
    }

    fn is_ended(&self) -> bool {
        (**self).is_ended()
    }
}

/// Status and headers of a response.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The status, 200 to 999.
    pub status: u16,
    headers: &'a [Header<'a>],
}

impl<'a> Head<'a> {
    /// Returns a head that did not come from the parser.
    pub(crate) fn new(status: u16, headers: &'a [Header<'a>]) -> Head<'a> {
        Head { status, headers }
    }

    /// Iterates over the names as sent, and the values, in order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.headers
            .iter()
            .map(|header| (header.name, header.value))
    }

    /// Returns the value of all headers of this name, in any case. Lines of one name form one list (RFC 9110,
    /// section 5.3).
    #[must_use]
    pub fn combined(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let mut lines = self
            .headers()
            .filter(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value);
        let mut value = Cow::Borrowed(lines.next()?);
        for more in lines {
            let all = value.to_mut();
            all.extend_from_slice(b", ");
            all.extend_from_slice(more);
        }
        Some(value)
    }

    /// True if a header of this name, in any case, has this value.
    #[must_use]
    pub fn has(&self, name: &str, value: &[u8]) -> bool {
        self.headers()
            .any(|(candidate, found)| candidate.eq_ignore_ascii_case(name) && found == value)
    }

    /// Returns the value of the first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// The progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// All bytes were used, and more must come.
    More,
    /// The response is complete.
    Complete {
        /// Number of bytes used. The bytes after them do not belong to this response.
        used: usize,
        /// The connection may carry another request.
        reusable: bool,
    },
}

/// The meaning of the end of the connection for the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end of the connection was the end of the response.
    Complete,
    /// The response had not begun.
    Nothing,
    /// The response was cut off.
    Truncated,
}

/// The state of a response that is being read.
#[derive(Clone, Debug)]
pub struct Parser {
    bounds: Bounds,
    state: State,
    /// True if the request was a HEAD. The response then has no body, whatever its headers contain.
    bodiless: bool,
    reusable: bool,
    /// The idle timeout of the connection that the server reported.
    idle_s: Option<u32>,
    body_bytes: u64,
    /// The beginning of a head that was cut by the end of a read. Otherwise empty.
    head: Vec<u8>,
    /// True if `head` ends within the value of a header. More plain bytes of the value then need no parsing.
    is_in_value: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Parser {
    /// Returns a parser for the responses of one connection.
    #[must_use]
    pub fn new(bounds: Bounds) -> Parser {
        Parser {
            bounds,
            state: State::Head,
            bodiless: false,
            reusable: false,
            idle_s: None,
            body_bytes: 0,
            head: Vec::new(),
            is_in_value: false,
        }
    }

    /// Resets the parser for the next response. `bodiless` is true if the request was a HEAD.
    pub fn start(&mut self, bodiless: bool) {
        self.state = State::Head;
        self.bodiless = bodiless;
        self.body_bytes = 0;
        self.head.clear();
    }

    /// Takes the next bytes of the connection.
    ///
    /// # Errors
    /// If the bytes cannot be an acceptable response. The parser is then unusable until the next
    /// [`start`](Parser::start), and the connection cannot be used again.
    pub fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<Parsed, ParseError> {
        let mut used = 0;
        // An interim response (1xx) leaves the state at `Head`, and the final head may follow in the same
        // bytes.
        while let State::Head = self.state {
            match self.feed_head(&bytes[used..], sink)? {
                None => return Ok(Parsed::More),
                Some((length, complete)) => {
                    used += length;
                    if complete {
                        return Ok(self.complete(used));
                    }
                }
            }
        }
        let parsed = self.feed_body(bytes, used, sink)?;
        match sink.refusal() {
            // The rest of the response belongs to nobody, so its connection cannot be used again.
            None if sink.is_over() && parsed == Parsed::More => Ok(Parsed::Complete {
                used: bytes.len(),
                reusable: false,
            }),
            None => Ok(parsed),
            Some(refusal) => Err(refusal),
        }
    }

    /// The end of the time for another request on the connection, by the last head. `u64::MAX` if the head
    /// set no limit. The travel time of the request is subtracted.
    #[inline]
    pub(crate) fn idle_until_ns(&self, now_ns: u64) -> u64 {
        let Some(idle_s) = self.idle_s else {
            return u64::MAX;
        };
        let idle_ns = u64::from(idle_s) * 1_000_000_000;
        now_ns.saturating_add(idle_ns - IDLE_MARGIN_NS.min(idle_ns / 2))
    }

    /// Handles the end of the connection.
    #[must_use]
    pub fn end(&self) -> End {
        match self.state {
            State::UntilClose => End::Complete,
            State::Head if self.head.is_empty() => End::Nothing,
            _ => End::Truncated,
        }
    }

    fn complete(&self, used: usize) -> Parsed {
        Parsed::Complete {
            used,
            reusable: self.reusable,
        }
    }

    /// Returns the number of bytes that belonged to a head, and true if they completed the response. `None`
    /// if the head is incomplete.
    fn feed_head<S: Sink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Option<(usize, bool)>, ParseError> {
        // The first bytes up to the limit and one more decide the result. More bytes of the head in the same
        // read change no result.
        let most = self.bounds.head_bytes + 1;
        if self.head.is_empty() {
            let bytes = &bytes[..bytes.len().min(most)];
            let Some((length, framing)) = self.parse_head(bytes, sink)? else {
                self.head.extend_from_slice(bytes);
                self.is_in_value = ends_in_value(bytes);
                return Ok(None);
            };
            return Ok(Some((length, self.enter(framing))));
        }
        let before = self.head.len();
        let bytes = &bytes[..bytes.len().min(most.saturating_sub(before))];
        self.head.extend_from_slice(bytes);
        // A long value in tiny pieces would be parsed from the start of the head for every piece. Bytes that
        // a value may contain can neither complete the head nor be wrong.
        if self.is_in_value && self.head.len() < most && bytes.iter().all(|byte| is_plain(*byte)) {
            return Ok(None);
        }
        // Moved out because `parse_head` borrows the parser. Put back so that its memory is used again.
        let head = std::mem::take(&mut self.head);
        let parsed = self.parse_head(&head, sink);
        self.head = head;
        let Some((length, framing)) = parsed? else {
            self.is_in_value = ends_in_value(&self.head);
            return Ok(None);
        };
        assert!(
            length > before,
            "the head was incomplete before these bytes"
        );
        self.head.clear();
        Ok(Some((length - before, self.enter(framing))))
    }

    /// Sets the state after a head. Returns `true` if the response is complete with it.
    fn enter(&mut self, framing: Option<Framing>) -> bool {
        self.state = match framing {
            // An interim response. The final response follows.
            None => State::Head,
            Some(Framing::None | Framing::Length(0)) => return true,
            Some(Framing::Length(length)) => State::Length(length),
            Some(Framing::Chunked) => State::Chunked(Chunked::new()),
            Some(Framing::UntilClose) => State::UntilClose,
        };
        false
    }

    /// Returns the length of the head and the framing of the body (`None` after an interim response), or
    /// `None` while the head is incomplete.
    fn parse_head<S: Sink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<Option<(usize, Option<Framing>)>, ParseError> {
        // Not initialized: 128 headers would be cleared for every response, and most responses have few.
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_USUAL];
        self.parse_lines(bytes, &mut headers, sink)
    }

    fn parse_lines<'b, S: Sink>(
        &mut self,
        bytes: &'b [u8],
        headers: &mut [MaybeUninit<Header<'b>>],
        sink: &mut S,
    ) -> Result<Option<(usize, Option<Framing>)>, ParseError> {
        let mut response = Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(
            &mut response,
            bytes,
            headers,
        );
        let too_large = ParseError::TooLarge {
            part: "head",
            limit: self.bounds.head_bytes as u64,
            unit: "bytes",
        };
        let length = match parsed {
            Ok(Status::Complete(length)) if length > self.bounds.head_bytes => {
                return Err(too_large);
            }
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() > self.bounds.head_bytes => return Err(too_large),
            Ok(Status::Partial) => return Ok(None),
            // The limit is the largest number that these bytes can contain, so this happens once.
            Err(httparse::Error::TooManyHeaders) => {
                let most = bytes.len() / HEADER_BYTES_MIN + 1;
                let mut headers = vec![MaybeUninit::uninit(); most];
                return self.parse_lines(bytes, &mut headers, sink);
            }
            Err(httparse::Error::HeaderName) => match unfolded(bytes) {
                Some(bytes) => return self.parse_head(&bytes, sink),
                None => return Err(ParseError::Malformed(name_fault(bytes))),
            },
            Err(error) => return Err(malformed_head(error)),
        };
        let status = response.code.expect("a complete head has a status");
        let is_http_1_1 = response.version == Some(1);
        match status {
            0..100 => return Err(ParseError::Malformed("a status below 100")),
            101 => {
                return Err(ParseError::Malformed("a switch to another protocol"));
            }
            102..200 | 100 => return Ok(Some((length, None))),
            200.. => {}
        }
        let lengths = Lengths::read(response.headers);
        let framing = lengths.framing(status, is_http_1_1, self.bodiless)?;
        if let Framing::Length(length) = framing {
            self.claim(length)?;
        }
        // Only the end of the connection ends such a body, so there is no next request on it.
        self.idle_s = lengths.idle_s;
        self.reusable = framing != Framing::UntilClose && lengths.keeps_connection(is_http_1_1);
        sink.head(&Head::new(status, response.headers));
        Ok(Some((length, Some(framing))))
    }

    fn feed_body<S: Sink>(
        &mut self,
        bytes: &[u8],
        mut used: usize,
        sink: &mut S,
    ) -> Result<Parsed, ParseError> {
        match &mut self.state {
            State::Head => Ok(Parsed::More),
            State::Length(left) => {
                let available = &bytes[used..];
                // A length beyond the address space is more than any read holds.
                let take = usize::try_from(*left)
                    .map_or(available.len(), |left| left.min(available.len()));
                *left -= take as u64;
                let is_complete = *left == 0;
                if take > 0 {
                    sink.body(&available[..take]);
                }
                Ok(if is_complete {
                    self.complete(used + take)
                } else {
                    Parsed::More
                })
            }
            State::UntilClose => {
                let available = &bytes[used..];
                self.claim(available.len() as u64)?;
                if !available.is_empty() {
                    sink.body(available);
                }
                Ok(Parsed::More)
            }
            State::Chunked(chunked) => {
                // A copy, as `claim` borrows the parser. It is stored again when more must come.
                let mut chunked = *chunked;
                while used < bytes.len() {
                    let piece = chunked.next(&bytes[used..], self.bounds.head_bytes)?;
                    match piece {
                        Piece::Framing(length) => used += length,
                        Piece::Data(length) => {
                            self.claim(length as u64)?;
                            sink.body(&bytes[used..used + length]);
                            used += length;
                        }
                        Piece::End(length) => return Ok(self.complete(used + length)),
                    }
                }
                self.state = State::Chunked(chunked);
                Ok(Parsed::More)
            }
        }
    }

    /// Adds to the size of the body, within the bounds.
    fn claim(&mut self, more: u64) -> Result<(), ParseError> {
        // A `Content-Length` near 2^64 must be too large, and not wrap around to a small one.
        self.body_bytes = self.body_bytes.saturating_add(more);
        if self.body_bytes > self.bounds.body_bytes {
            return Err(ParseError::TooLarge {
                part: "body",
                limit: self.bounds.body_bytes,
                unit: "bytes",
            });
        }
        Ok(())
    }
}

/// A byte that cannot end or spoil the value of a header.
fn is_plain(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// True if the next byte of an incomplete, correct head belongs to a value. The reason of the status line may
/// contain the same bytes as a value, and counts as one.
fn ends_in_value(head: &[u8]) -> bool {
    let mut lines = head.rsplit(|byte| *byte == b'\n');
    let line = lines.next().expect("a split has at least one part");
    line.contains(&b':') && line.last() != Some(&b'\r')
}

fn malformed_head(error: httparse::Error) -> ParseError {
    ParseError::Malformed(match error {
        httparse::Error::HeaderName => "a malformed header name",
        httparse::Error::HeaderValue => "a malformed header value",
        httparse::Error::NewLine => "a malformed line end in its head",
        httparse::Error::Status => "a malformed status line",
        httparse::Error::Version => "bytes that do not begin with `HTTP/1.1` or `HTTP/1.0`",
        httparse::Error::TooManyHeaders => "more header lines than fit into its head",
        httparse::Error::Token => "a malformed token in its head",
    })
}
