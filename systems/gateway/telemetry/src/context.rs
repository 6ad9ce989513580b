//! The trace context of the W3C: `traceparent` and `tracestate`, read and written.
//!
//! What a client sends is believed only if it is exactly of the form (W3C Trace Context, 3.2 and
//! 3.3); anything else counts as not sent, and the request begins a trace of its own.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The header that names the trace and the span that a request belongs to.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with what vendors know of a trace.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Bytes of a `traceparent` of version 0: `00-` 32 digits `-` 16 digits `-` 2 digits.
const LENGTH: usize = 55;
/// Longest `tracestate` that is passed on: what the W3C says must be.
const STATE_BYTES_MAX: usize = 512;
/// Most members of one.
const STATE_MEMBERS_MAX: usize = 32;
/// The bit of the flags that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// The id of a trace; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span within its trace; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// What a client says of the trace that its request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace: TraceId,
    /// The client's own span.
    pub span: SpanId,
    /// Whether the client records the trace.
    pub is_sampled: bool,
    /// What vendors know of it, checked.
    pub state: Option<HeaderValue>,
}

impl Parent {
    /// What the headers of a request say; nothing when they do not say it in the right form.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?;
        // Which of two would be meant?
        if values.next().is_some() {
            return None;
        }
        let mut parent = parse(value.as_bytes())?;
        parent.state = state(headers);
        Some(parent)
    }
}

/// Reads a `traceparent`.
fn parse(text: &[u8]) -> Option<Parent> {
    let (head, rest) = text.split_at_checked(LENGTH)?;
    let version = byte(&head[..2])?;
    // Version 255 is forbidden. Later versions may be longer, and begin with what is known.
    let is_whole = match version {
        0 => rest.is_empty(),
        255 => false,
        _ => rest.first().is_none_or(|byte| *byte == b'-'),
    };
    if !is_whole || head[2] != b'-' || head[35] != b'-' || head[52] != b'-' {
        return None;
    }
    let trace: [u8; 16] = bytes(&head[3..35])?;
    let span: [u8; 8] = bytes(&head[36..52])?;
    let flags = byte(&head[53..])?;
    if trace == [0; 16] || span == [0; 8] {
        return None;
    }
    Some(Parent {
        trace: TraceId(trace),
        span: SpanId(span),
        is_sampled: flags & SAMPLED != 0,
        state: None,
    })
}

fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = self::byte(pair)?;
    }
    Some(bytes)
}

/// Two hexadecimal digits in lower case; others are not of the form.
fn byte(pair: &[u8]) -> Option<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(digit(pair[0])? << 4 | digit(pair[1])?)
}

/// The `tracestate` of a request, its lines joined. One that is too long or not of the form is left
/// out; the trace goes on without it.
fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(TRACESTATE).iter();
    let first = lines.next()?;
    let joined = match lines.next() {
        None => first.clone(),
        Some(second) => {
            let mut all = first.as_bytes().to_vec();
            for line in std::iter::once(second).chain(lines) {
                all.push(b',');
                all.extend_from_slice(line.as_bytes());
                if all.len() > STATE_BYTES_MAX {
                    return None;
                }
            }
            HeaderValue::from_bytes(&all).ok()?
        }
    };
    is_state(joined.as_bytes()).then_some(joined)
}

fn is_state(text: &[u8]) -> bool {
    let members = text.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    // Empty members are allowed, so that lines can be joined.
    let mut members = members.filter(|member| !member.is_empty());
    text.len() <= STATE_BYTES_MAX
        && !text.trim_ascii().is_empty()
        && members.clone().count() <= STATE_MEMBERS_MAX
        && members.all(is_member)
}

fn is_member(member: &[u8]) -> bool {
    let Some(equals) = member.iter().position(|byte| *byte == b'=') else {
        return false;
    };
    let (key, value) = (&member[..equals], &member[equals + 1..]);
    let is_key =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(byte);
    let is_value = |byte: &u8| matches!(byte, 0x20..=0x7e) && !b",=".contains(byte);
    (1..=256).contains(&key.len())
        && key.iter().all(is_key)
        && (1..=256).contains(&value.len())
        && value.iter().all(is_value)
}

/// A `traceparent` of version 0.
pub(crate) fn traceparent(trace: TraceId, span: SpanId, is_sampled: bool) -> HeaderValue {
    let mut text = [b'-'; LENGTH];
    write_hex(&[0], &mut text[..2]);
    write_hex(&trace.0, &mut text[3..35]);
    write_hex(&span.0, &mut text[36..52]);
    write_hex(&[u8::from(is_sampled)], &mut text[53..]);
    HeaderValue::from_bytes(&text).expect("digits and hyphens are a header value")
}

/// Bytes as hexadecimal digits in lower case.
pub(crate) fn write_hex(bytes: &[u8], to: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(to.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = [0; 32];
        write_hex(&self.0, &mut text);
        formatter.write_str(std::str::from_utf8(&text).expect("digits are text"))
    }
}

#[cfg(test)]
mod tests;
