//! The record of one piece of work.

use std::borrow::Cow;

use crate::context::{SpanId, TraceId};

/// Longest text of an attribute or a status, in bytes. Clients choose paths, names and headers, and must not
/// control the memory of waiting spans.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;

/// The side of a request on which the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside the gateway.
    Internal,
    /// The handling of a client's request.
    Server,
    /// A request to another server.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// True or false.
    Switch(bool),
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Integer(number) => number.fmt(formatter),
            Self::Number(number) => number.fmt(formatter),
            Self::Switch(is_on) => is_on.fmt(formatter),
        }
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u16> for Value {
    fn from(number: u16) -> Self {
        Self::Integer(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

/// A finished piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    /// True if the parent span is in another program.
    pub(crate) parent_is_remote: bool,
    /// The vendor data of the trace (`tracestate`).
    pub(crate) state: Option<http::HeaderValue>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    /// Start in nanoseconds since 1970.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) attributes: Vec<(Cow<'static, str>, Value)>,
    pub(crate) dropped_attributes: u32,
    /// The reason of a failure.
    pub(crate) failure: Option<Cow<'static, str>>,
}

/// The beginning of a text, up to the limit.
#[must_use]
pub fn kept(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_two_characters() {
        assert_eq!(kept("a"), "a");
        let long = format!("a{}", "ü".repeat(TEXT_BYTES_MAX));
        assert_eq!(kept(&long).len(), TEXT_BYTES_MAX - 1);
        assert!(long.starts_with(kept(&long)));
    }
}
