//! Finds the end of a response body from its head (RFC 9112, section 6.3).

use httparse::Header;

use super::ParseError;

/// The rule for the end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    None,
    Length(u64),
    Chunked,
    UntilClose,
}

/// The lengths in the headers of a response.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    content: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    /// The fault of the headers, which only matters if there is a body.
    fault: Option<ParseError>,
    /// The idle timeout of the server in seconds, if it reports one.
    pub(super) idle_s: Option<u32>,
}

impl Lengths {
    pub(super) fn read(headers: &[Header<'_>]) -> Lengths {
        let mut lengths = Lengths::default();
        for header in headers {
            // The length of the name excludes nearly all headers at the cost of one comparison.
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    lengths.read_connection(header.value);
                }
                10 if header.name.eq_ignore_ascii_case("keep-alive") => {
                    lengths.read_keep_alive(header.value);
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let read = lengths.read_content_length(header.value);
                    lengths.fault = lengths.fault.or(read.err());
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    let read = lengths.read_transfer_encoding(header.value);
                    lengths.fault = lengths.fault.or(read.err());
                }
                _ => {}
            }
        }
        lengths
    }

    /// True if another request may follow on the connection, by the headers. HTTP/1.1 keeps it by default,
    /// HTTP/1.0 closes it by default (RFC 9112, section 9.3).
    pub(super) fn keeps_connection(&self, is_http_1_1: bool) -> bool {
        // Two readers may choose different lengths, which allows response smuggling. The next request needs
        // another connection (RFC 9112, section 6.1).
        let is_ambiguous = self.chunked && self.content.is_some();
        !self.close && !is_ambiguous && (is_http_1_1 || self.keep_alive)
    }

    /// Reads `Keep-Alive`. `max=0` announces the end of the connection, and `timeout` is the idle time.
    fn read_keep_alive(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',') {
            let mut sides = option.splitn(2, |byte| *byte == b'=');
            let name = sides.next().unwrap_or_default().trim_ascii();
            let number = sides.next().unwrap_or_default().trim_ascii();
            // A text that is no number, or a number beyond 32 bits, is ignored.
            let number = std::str::from_utf8(number)
                .ok()
                .and_then(|it| it.parse().ok());
            if name.eq_ignore_ascii_case(b"max") {
                self.close |= number == Some(0);
            } else if name.eq_ignore_ascii_case(b"timeout") {
                self.close |= number == Some(0);
                self.idle_s = number;
            }
        }
    }

    /// Returns the end of the body. `bodiless` is true for the response to a HEAD.
    pub(super) fn framing(
        &self,
        status: u16,
        is_http_1_1: bool,
        bodiless: bool,
    ) -> Result<Framing, ParseError> {
        // Before the lengths, because here they describe a body that is absent.
        if bodiless || status == 204 || status == 304 {
            return Ok(Framing::None);
        }
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.chunked && !is_http_1_1 {
            return Err(ParseError::Malformed("`Transfer-Encoding` in HTTP/1.0"));
        }
        // It takes precedence over `Content-Length` (RFC 9112, section 6.3).
        if self.chunked {
            return Ok(Framing::Chunked);
        }
        Ok(self.content.map_or(Framing::UntilClose, Framing::Length))
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Reads `Content-Length`. A repeated length is accepted if it is equal (RFC 9110, section 8.6).
    fn read_content_length(&mut self, value: &[u8]) -> Result<(), ParseError> {
        for item in value.split(|byte| *byte == b',') {
            let item = item.trim_ascii();
            if item.is_empty() {
                return Err(ParseError::Malformed("an empty `Content-Length`"));
            }
            let mut length: u64 = 0;
            for byte in item {
                if !byte.is_ascii_digit() {
                    return Err(ParseError::Malformed(
                        "a `Content-Length` that is not a number",
                    ));
                }
                length = length
                    .checked_mul(10)
                    .and_then(|length| length.checked_add(u64::from(byte - b'0')))
                    .ok_or(ParseError::Malformed("a `Content-Length` beyond 64 bits"))?;
            }
            if self.content.is_some_and(|other| other != length) {
                return Err(ParseError::Malformed(
                    "two `Content-Length` that contradict each other",
                ));
            }
            self.content = Some(length);
        }
        Ok(())
    }

    /// Reads `Transfer-Encoding`. We never offer another transfer coding (`TE`), so a server must not use
    /// one.
    fn read_transfer_encoding(&mut self, value: &[u8]) -> Result<(), ParseError> {
        if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(ParseError::Malformed(
                "a `Transfer-Encoding` other than `chunked`",
            ));
        }
        self.chunked = true;
        Ok(())
    }
}
