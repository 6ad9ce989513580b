//! Reads and writes the W3C trace context: `traceparent` and `tracestate`.
//!
//! A client's headers count only in exactly the specified form (W3C Trace Context, 3.2 and 3.3). Other
//! headers are ignored, and the request begins a new trace.

use data_encoding::HEXLOWER;
use gateway_config::TraceIdFormat;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The header with the trace and the parent span of a request.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header with vendor data about a trace.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Bytes of a `traceparent` of version 0: `00-` 32 digits `-` 16 digits `-` 2 digits.
const LENGTH: usize = 55;
/// Longest `tracestate` that is forwarded, in bytes: the minimum that the W3C requires.
const STATE_BYTES_MAX: usize = 512;
/// Maximum number of members in a `tracestate`.
const STATE_MEMBERS_MAX: usize = 32;
/// The flag of a recorded trace.
const SAMPLED: u8 = 1;

/// The id of a trace, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span within its trace, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// The trace context of a client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The client's trace id.
    pub trace: TraceId,
    /// The id of the client's span. `None` if the format has only the id of the trace.
    pub span: Option<SpanId>,
    /// True if the client records the trace. `None` if it leaves the decision open.
    pub is_sampled: Option<bool>,
    /// The validated vendor data of `tracestate`.
    pub state: Option<HeaderValue>,
}

impl Parent {
    /// Reads the trace context of request headers. `None` if there is no valid `traceparent`.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let value = values.next()?;
        // Two values are ambiguous.
        if values.next().is_some() {
            return None;
        }
        let mut parent = parse(value.as_bytes())?;
        parent.state = state(headers);
        Some(parent)
    }
}

/// Reads a `traceparent`, without the state.
fn parse(text: &[u8]) -> Option<Parent> {
    let (head, rest) = text.split_at_checked(LENGTH)?;
    let version = byte(&head[..2])?;
    // Version 255 is forbidden. Later versions may be longer, but begin like version 0.
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
        span: Some(SpanId(span)),
        is_sampled: Some(flags & SAMPLED != 0),
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

/// Reads two hexadecimal digits in lower case. Upper case is invalid.
fn byte(pair: &[u8]) -> Option<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(digit(pair[0])? << 4 | digit(pair[1])?)
}

/// The `tracestate` of a request, with its lines joined. If it is too long or invalid, it is dropped and the
/// trace continues without it.
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
    // Empty members are valid, because lines are joined by commas.
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

/// Writes a `traceparent` of version 0.
pub(crate) fn traceparent(trace: TraceId, span: SpanId, is_sampled: bool) -> HeaderValue {
    let mut text = [b'-'; LENGTH];
    HEXLOWER.encode_mut(&[0], &mut text[..2]);
    HEXLOWER.encode_mut(&trace.0, &mut text[3..35]);
    HEXLOWER.encode_mut(&span.0, &mut text[36..52]);
    HEXLOWER.encode_mut(&[u8::from(is_sampled)], &mut text[53..]);
    HeaderValue::from_bytes(&text).expect("digits and hyphens are a header value")
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = [0; 32];
        HEXLOWER.encode_mut(&self.0, &mut text);
        formatter.write_str(std::str::from_utf8(&text).expect("digits are text"))
    }
}

impl std::fmt::Display for SpanId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = [0; 16];
        HEXLOWER.encode_mut(&self.0, &mut text);
        formatter.write_str(std::str::from_utf8(&text).expect("digits are text"))
    }
}

impl TraceId {
    /// The id in a format.
    pub(crate) fn shown(self, format: TraceIdFormat) -> String {
        let number = u128::from_be_bytes(self.0);
        match format {
            TraceIdFormat::Hexadecimal | TraceIdFormat::OpenTelemetry => self.to_string(),
            TraceIdFormat::Decimal => number.to_string(),
            TraceIdFormat::Datadog => (number & u128::from(u64::MAX)).to_string(),
            TraceIdFormat::Uuid => {
                let digits = self.to_string();
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|place| &digits[place]);
                parts.join("-")
            }
        }
    }
}

#[cfg(test)]
mod tests;
