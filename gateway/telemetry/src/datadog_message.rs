//! Converts spans to MessagePack for version 0.4 of the interface of Datadog's agent.
//!
//! A message is a list of traces, and a trace is a list of spans.

use std::collections::BTreeMap;

use bytes::Bytes;
use opentelemetry_proto::tonic::resource::v1::Resource;
use rmp::encode::{
    ByteBuf, write_array_len, write_f64, write_map_len, write_sint, write_str, write_uint,
};

use crate::context::TraceId;
use crate::resource::text_of;
use crate::span::{Span, SpanKind, Value};

/// A message, with its number of traces for a header.
pub(crate) struct Message {
    pub(crate) traces: usize,
    pub(crate) body: Bytes,
}

/// One message with these spans.
pub(crate) fn message(resource: &Resource, spans: &[Span]) -> Message {
    let mut traces: BTreeMap<[u8; 16], Vec<&Span>> = BTreeMap::new();
    for span in spans {
        traces.entry(span.trace.0).or_default().push(span);
    }
    let mut out = ByteBuf::new();
    list(&mut out, traces.len());
    for spans in traces.values() {
        list(&mut out, spans.len());
        for span in spans {
            write(&mut out, resource, span);
        }
    }
    Message {
        traces: traces.len(),
        body: out.into_vec().into(),
    }
}

/// Number of members of a span in [`write`].
const MEMBERS: usize = 12;

fn write(out: &mut ByteBuf, resource: &Resource, span: &Span) {
    let service = text_of(resource, "service.name").unwrap_or("gateway");
    let (operation, kind, word) = match span.kind {
        SpanKind::Server => ("http.server.request", "web", "server"),
        SpanKind::Client => ("http.client.request", "http", "client"),
        SpanKind::Internal => ("internal", "custom", "internal"),
    };
    map(out, MEMBERS);
    member(out, "service", service);
    member(out, "name", operation);
    member(out, "resource", &span.name);
    member(out, "type", kind);
    let [_, _, _, _, _, _, _, _, lower @ ..] = span.trace.0;
    number(out, "trace_id", u64::from_be_bytes(lower));
    number(out, "span_id", u64::from_be_bytes(span.id.0));
    let parent = span.parent.map(|id| u64::from_be_bytes(id.0));
    number(out, "parent_id", parent.unwrap_or_default());
    signed(out, "start", span.start_ns);
    signed(out, "duration", span.end_ns.saturating_sub(span.start_ns));
    signed(out, "error", u64::from(span.failure.is_some()));
    let (meta, metrics) = tags(resource, span, word);
    text(out, "meta");
    map(out, meta.len());
    for (name, value) in &meta {
        member(out, name, value);
    }
    text(out, "metrics");
    map(out, metrics.len());
    for (name, value) in metrics {
        text(out, name);
        infallible(write_f64(out, value));
    }
}

/// The tags with texts, and the tags with numbers.
fn tags<'a>(
    resource: &'a Resource,
    span: &'a Span,
    kind: &'static str,
) -> (BTreeMap<&'a str, String>, BTreeMap<&'a str, f64>) {
    let mut meta: BTreeMap<&str, String> = BTreeMap::new();
    let mut metrics: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, value) in &span.attributes {
        match value {
            // Datadog requires this name and a text for the status of a response.
            _ if name == "http.response.status_code" => {
                meta.insert("http.status_code", value.to_string());
            }
            Value::Integer(number) => {
                // Counts and ports are small enough for a float.
                metrics.insert(name, *number as f64);
            }
            Value::Number(number) => {
                metrics.insert(name, *number);
            }
            Value::Text(_) | Value::Switch(_) => {
                meta.insert(name, value.to_string());
            }
        }
    }
    meta.insert("span.kind", kind.to_owned());
    for (tag, attribute) in [
        ("env", "deployment.environment"),
        ("env", "deployment.environment.name"),
        ("version", "service.version"),
    ] {
        if let Some(value) = text_of(resource, attribute) {
            meta.insert(tag, value.to_owned());
        }
    }
    if let Some(why) = &span.failure {
        meta.insert("error.message", why.clone().into_owned());
    }
    meta.insert("_dd.p.tid", upper(span.trace));
    // The gateway sends only selected traces, so the agent keeps them.
    metrics.insert("_sampling_priority_v1", 1.0);
    if span.parent.is_none() || span.parent_is_remote {
        metrics.insert("_dd.top_level", 1.0);
    }
    (meta, metrics)
}

/// The upper 64 bits of a trace id in hexadecimal digits. The agent reads only the lower bits as a number.
fn upper(trace: TraceId) -> String {
    let mut digits = trace.to_string();
    digits.truncate(16);
    digits
}

fn member(out: &mut ByteBuf, name: &str, value: &str) {
    text(out, name);
    text(out, value);
}

fn number(out: &mut ByteBuf, name: &str, value: u64) {
    text(out, name);
    infallible(write_uint(out, value));
}

fn signed(out: &mut ByteBuf, name: &str, value: u64) {
    text(out, name);
    // Times overflow after 292 years.
    infallible(write_sint(out, i64::try_from(value).unwrap_or(i64::MAX)));
}

fn text(out: &mut ByteBuf, text: &str) {
    infallible(write_str(out, text));
}

fn map(out: &mut ByteBuf, members: usize) {
    infallible(write_map_len(out, length(members)));
}

fn list(out: &mut ByteBuf, items: usize) {
    infallible(write_array_len(out, length(items)));
}

fn length(count: usize) -> u32 {
    u32::try_from(count).expect("a message has fewer than 2^32 spans and attributes")
}

fn infallible<T, E>(written: Result<T, E>) {
    assert!(written.is_ok(), "writing to memory cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::SpanId;
    use crate::resource::{attribute, text as value};

    #[test]
    fn spans_are_grouped_by_trace_and_have_the_members_of_the_agent() {
        let span = |trace: u8, parent: Option<u8>| Span {
            trace: TraceId([trace; 16]),
            id: SpanId([2; 8]),
            parent: parent.map(|byte| SpanId([byte; 8])),
            parent_is_remote: false,
            state: None,
            name: "POST /".into(),
            kind: SpanKind::Server,
            start_ns: 1_000,
            end_ns: 3_000,
            attributes: vec![("http.response.status_code".into(), Value::Integer(200))],
            dropped_attributes: 0,
            failure: None,
        };
        let resource = Resource {
            attributes: vec![attribute("service.name", value("front"))],
            ..Resource::default()
        };
        let message = message(&resource, &[span(1, None), span(2, None), span(1, Some(9))]);
        assert_eq!(message.traces, 2);
        let body = &message.body[..];
        // A list of two traces, the first with two spans of twelve members each.
        assert_eq!(&body[..3], [0x92, 0x92, 0x8c]);
        let has = |bytes: &[u8]| body.windows(bytes.len()).any(|window| window == bytes);
        for member in [
            &b"\xa7service\xa5front"[..],
            b"\xa4name\xb3http.server.request",
            b"\xa8resource\xa6POST /",
            b"\xa8trace_id\xcf\x01\x01\x01\x01\x01\x01\x01\x01",
            b"\xa7span_id\xcf\x02\x02\x02\x02\x02\x02\x02\x02",
            b"\xa9parent_id\xcf\x09\x09\x09\x09\x09\x09\x09\x09",
            b"\xa5start\xcd\x03\xe8",
            b"\xa8duration\xcd\x07\xd0",
            b"\xa5error\x00",
            b"\xb0http.status_code\xa3200",
            b"\xa9_dd.p.tid\xb00101010101010101",
        ] {
            assert!(has(member), "{:?}", String::from_utf8_lossy(member));
        }
    }
}
