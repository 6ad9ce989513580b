//! One HTTP/1.1 exchange on one connection.
//!
//! The request leaves in one write. The head and the body of the response are slices of the read buffer.

use std::io;
use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::call::Call;
use crate::connection::Stream;
use crate::endpoint::UpstreamEndpoint;
use crate::error::SendError;
use crate::reply::{HEADERS_MAX, Head, Place, RawHead, Reply};

/// Maximum bytes of a response head.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Room reserved before each read. Most subgraph responses fit.
const READ_BYTES: usize = 8 * 1024;
/// Bodies up to this size are copied after their head. Then one write and one packet carry both. The copy
/// costs less than a system call.
const COPY_BYTES_MAX: usize = 32 * 1024;

/// A response, and true if the connection can be reused.
pub(crate) struct Exchanged {
    pub(crate) reply: Reply,
    pub(crate) keep: bool,
}

/// A failed exchange, with facts that a retry depends on.
pub(crate) struct Broken {
    pub(crate) error: SendError,
    /// True if no byte of a response arrived. A reused connection was then closed.
    pub(crate) before_answer: bool,
    /// True if no byte of the request was sent.
    pub(crate) before_request: bool,
}

/// Sends `call` and reads the whole response, with at most `limit_bytes` of body.
pub(crate) async fn exchange(
    stream: &mut Stream,
    endpoint: &UpstreamEndpoint,
    call: &Call<'_>,
    limit_bytes: usize,
) -> Result<Exchanged, Broken> {
    let (sent, sent_bytes) = send(stream, endpoint, call).await;
    let mut reader = Reader {
        stream,
        buffer: BytesMut::new(),
        limit_bytes,
    };
    // A server can respond (413, 401) and close the connection before it has read the whole body. Its
    // response matters more than the broken write.
    let received = reader.answer(call.method == http::Method::HEAD).await;
    match (received, sent) {
        (Ok(mut exchanged), sent) => {
            // A request that was not written completely leaves the connection in an unknown state.
            exchanged.keep &= sent.is_ok();
            Ok(exchanged)
        }
        (Err(error), sent) => Err(Broken {
            before_answer: reader.buffer.is_empty() && matches!(error, SendError::Closed { .. }),
            before_request: sent_bytes == 0,
            // The write failed first. Its error is more useful than the end of the stream after it.
            error: sent
                .err()
                .map_or(error, |source| SendError::Closed { source }),
        }),
    }
}

async fn send(
    stream: &mut Stream,
    endpoint: &UpstreamEndpoint,
    call: &Call<'_>,
) -> (io::Result<()>, usize) {
    let copied = call.body.len() <= COPY_BYTES_MAX;
    let mut bytes = render_head(endpoint, call, if copied { call.body.len() } else { 0 });
    if copied {
        bytes.extend_from_slice(&call.body);
    }
    let (mut result, mut sent) = write_all(stream, &bytes).await;
    if result.is_ok() && !copied {
        let (body_result, body_sent) = write_all(stream, &call.body).await;
        result = body_result;
        sent += body_sent;
    }
    if result.is_ok() {
        result = stream.flush().await;
    }
    (result, sent)
}

// Not tokio's `write_all`, which does not return the number of written bytes. A retry depends on it.
async fn write_all(stream: &mut Stream, mut bytes: &[u8]) -> (io::Result<()>, usize) {
    let all = bytes.len();
    while !bytes.is_empty() {
        match stream.write(bytes).await {
            Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), all - bytes.len()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) => return (Err(error), all - bytes.len()),
        }
    }
    (Ok(()), all)
}

fn render_head(endpoint: &UpstreamEndpoint, call: &Call<'_>, room: usize) -> Vec<u8> {
    // 256 bytes for the request line and fixed headers, 48 for a usual header line.
    let mut bytes = Vec::with_capacity(room + 256 + call.headers.len() * 48);
    bytes.extend_from_slice(call.method.as_str().as_bytes());
    bytes.extend_from_slice(endpoint.request_line().as_bytes());
    for (name, value) in call.headers {
        if !is_ours(name) {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes.extend_from_slice(call.rendered_headers);
    // A GET without a body has no length. A POST without a body must have length 0, because some servers
    // otherwise wait or refuse.
    if !(call.body.is_empty() && call.method == http::Method::GET) {
        bytes.extend_from_slice(b"content-length: ");
        append_number(&mut bytes, call.body.len());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// True for headers about the connection and the framing. This client sets them itself.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    gateway_hop::is_of_sender(name.as_str())
}

fn append_number(bytes: &mut Vec<u8>, mut number: usize) {
    // 20 digits are enough for any 64-bit number. Written by hand, because `format!` allocates.
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789"[number % 10];
        number /= 10;
        if number == 0 {
            break;
        }
    }
    bytes.extend_from_slice(&digits[at..]);
}

struct Reader<'a> {
    stream: &'a mut Stream,
    buffer: BytesMut,
    limit_bytes: usize,
}

/// The facts in a response head about the rest of the response.
struct Framing {
    status: StatusCode,
    head_bytes: usize,
    content_type: Option<Place>,
    content_encoding: Option<Place>,
    body: Body,
    keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Length(usize),
    Chunked,
    UntilClose,
}

impl Reader<'_> {
    async fn answer(&mut self, is_head: bool) -> Result<Exchanged, SendError> {
        let mut framing = self.final_head().await?;
        // These have no body, independent of their headers (RFC 9112, section 6.3).
        if is_head || matches!(framing.status.as_u16(), 204 | 304) {
            framing.body = Body::Length(0);
        }
        // Split off first, so that the buffer then starts with the body.
        let bytes = self.buffer.split_to(framing.head_bytes).freeze();
        let body = match framing.body {
            Body::Length(length) => self.sized(length).await?,
            Body::Chunked => self.chunked().await?,
            Body::UntilClose => self.until_close().await?,
        };
        let reply = Reply {
            status: framing.status,
            body,
            head: Head::Raw(RawHead {
                bytes,
                content_type: framing.content_type,
                content_encoding: framing.content_encoding,
            }),
            trailers: None,
        };
        // Bytes after the end of the response. The next request must not take them for its own response.
        let keep = framing.keep && self.buffer.is_empty();
        Ok(Exchanged { reply, keep })
    }

    /// Reads heads until one is not provisional (100, 103).
    async fn final_head(&mut self) -> Result<Framing, SendError> {
        loop {
            if self.buffer.is_empty() {
                self.more().await?;
            }
            // Parsed from the start again after each read, because a head nearly always arrives at once.
            let Some(framing) = parse_head(&self.buffer)? else {
                if self.buffer.len() > HEAD_BYTES_MAX {
                    return Err(malformed("its head is longer than 64 KiB"));
                }
                self.more().await?;
                continue;
            };
            match framing.status.as_u16() {
                101 => return Err(malformed("it switches protocols, which was not requested")),
                100..=199 => drop(self.buffer.split_to(framing.head_bytes)),
                _ => return Ok(framing),
            }
        }
    }

    async fn sized(&mut self, length: usize) -> Result<Bytes, SendError> {
        if length > self.limit_bytes {
            return Err(self.too_large());
        }
        while self.buffer.len() < length {
            let missing = length - self.buffer.len();
            // Only one allocation if possible. But the announced length alone does not reserve memory: the
            // room grows with the received data.
            self.buffer
                .reserve(missing.min(READ_BYTES.max(self.buffer.len())));
            self.read().await?;
        }
        Ok(self.buffer.split_to(length).freeze())
    }

    async fn until_close(&mut self) -> Result<Bytes, SendError> {
        loop {
            // Checked before each read. So the buffer exceeds the limit by at most one read.
            if self.buffer.len() > self.limit_bytes {
                return Err(self.too_large());
            }
            self.buffer.reserve(READ_BYTES);
            if self
                .stream
                .read_buf(&mut self.buffer)
                .await
                .map_err(closed)?
                == 0
            {
                return Ok(self.buffer.split().freeze());
            }
        }
    }

    async fn chunked(&mut self) -> Result<Bytes, SendError> {
        let mut body = BytesMut::new();
        // Chunks are joined, because callers read one slice.
        loop {
            let size = self.chunk_size().await?;
            if size == 0 {
                self.trailers().await?;
                return Ok(body.freeze());
            }
            let size = usize::try_from(size).map_err(|_| self.too_large())?;
            if size > self.limit_bytes || body.len() + size > self.limit_bytes {
                return Err(self.too_large());
            }
            // Two more bytes for the line end after a chunk.
            while self.buffer.len() < size + 2 {
                self.more().await?;
            }
            // Copied out of the buffer, because chunk headers separate the parts.
            body.extend_from_slice(&self.buffer[..size]);
            if &self.buffer[size..size + 2] != b"\r\n" {
                return Err(malformed("a chunk is longer than it says"));
            }
            drop(self.buffer.split_to(size + 2));
        }
    }

    async fn chunk_size(&mut self) -> Result<u64, SendError> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete((used, size))) => {
                    drop(self.buffer.split_to(used));
                    return Ok(size);
                }
                // A size line of 4 KiB is an attack or an error. The digits need 16 bytes.
                Ok(httparse::Status::Partial) if self.buffer.len() < 4096 => self.more().await?,
                _ => return Err(malformed("a chunk has no valid size")),
            }
        }
    }

    /// Reads trailers to find their end, and drops them.
    async fn trailers(&mut self) -> Result<(), SendError> {
        loop {
            if self.buffer.starts_with(b"\r\n") {
                drop(self.buffer.split_to(2));
                return Ok(());
            }
            // Trailers end at an empty line. Without trailers there is only the empty line, which is checked
            // above.
            let end = self
                .buffer
                .windows(4)
                .position(|bytes| bytes == b"\r\n\r\n");
            if let Some(end) = end {
                drop(self.buffer.split_to(end + 4));
                return Ok(());
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(malformed("its trailers are longer than 64 KiB"));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), SendError> {
        self.buffer.reserve(READ_BYTES);
        self.read().await
    }

    async fn read(&mut self) -> Result<(), SendError> {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err(closed(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(closed(error)),
        }
    }

    fn too_large(&self) -> SendError {
        SendError::TooLarge {
            limit_bytes: self.limit_bytes,
        }
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<Framing>, SendError> {
    // On the stack, so that headers that no stage reads need no allocation. Uninitialized, because a response
    // has a few headers, and initializing the rest would write fifty cache lines.
    let mut slots = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut response, bytes, &mut slots);
    let head_bytes = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(malformed(&error.to_string())),
    };
    let code = response.code.expect("a complete head has a status");
    let status = StatusCode::from_u16(code).map_err(|_| malformed("its status is out of range"))?;
    let is_http11 = response.version == Some(1);
    let mut framing = Framing {
        status,
        head_bytes,
        content_type: None,
        content_encoding: None,
        body: Body::UntilClose,
        keep: false,
    };
    let mut length = None;
    // HTTP/1.1 keeps connections by default, HTTP/1.0 closes them. All `Connection` lines count together, and
    // `close` wins.
    let (mut closes, mut keeps) = (false, is_http11);
    for header in response.headers.iter() {
        let name = header.name;
        // The length comes first. It excludes nearly every header with one comparison.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                closes |= has_token(header.value, "close");
                keeps |= has_token(header.value, "keep-alive");
            }
            12 if name.eq_ignore_ascii_case("content-type") => {
                framing.content_type = Some(place(header.value, bytes));
            }
            16 if name.eq_ignore_ascii_case("content-encoding") => {
                framing.content_encoding = Some(place(header.value, bytes));
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                let this = parse_length(header.value)?;
                // With two different lengths, two readers can find different ends of the response.
                if length.is_some_and(|length| length != this) {
                    return Err(malformed("it has two lengths"));
                }
                length = Some(this);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if !has_token(header.value, "chunked") {
                    return Err(malformed("its transfer-encoding is unknown"));
                }
                framing.body = Body::Chunked;
            }
            _ => {}
        }
    }
    framing.keep = keeps && !closes;
    match (framing.body, length) {
        // Request smuggling uses two framings at once. The response is read, but the connection is not
        // reused.
        (Body::Chunked, Some(_)) => framing.keep = false,
        (Body::Chunked, None) => {}
        (_, Some(length)) => framing.body = Body::Length(length),
        // Without framing, the body ends with the connection, unless the status has no body.
        (_, None) => framing.keep &= matches!(code, 204 | 304),
    }
    Ok(Some(framing))
}

/// Position of `part` in `bytes`.
fn place(part: &[u8], bytes: &[u8]) -> Place {
    // `httparse` returns parts of its input buffer. So the difference of the addresses is the position,
    // without `unsafe`.
    let from = part.as_ptr() as usize - bytes.as_ptr() as usize;
    Place::from(from..from + part.len())
}

fn parse_length(value: &[u8]) -> Result<usize, SendError> {
    std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| malformed("its content-length is not a number"))
}

fn has_token(value: &[u8], token: &str) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

fn malformed(reason: &str) -> SendError {
    SendError::Malformed {
        reason: reason.to_owned(),
    }
}

fn closed(source: io::Error) -> SendError {
    SendError::Closed { source }
}

/// Headers without the headers of [`is_ours`], for protocols that forbid them.
pub(crate) fn forwardable(
    headers: &HeaderMap,
) -> impl Iterator<Item = (&HeaderName, &http::HeaderValue)> {
    headers.iter().filter(|(name, _)| !is_ours(name))
}
