//! Converts spans to JSON in version 2 of Zipkin's format.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use crate::span::{Span, SpanKind, Value};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    trace_id: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<String>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// Start in microseconds since 1970.
    timestamp: u64,
    /// In microseconds, never zero.
    duration: u64,
    local_endpoint: Endpoint<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_endpoint: Option<Endpoint<'a>>,
    tags: BTreeMap<&'a str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    service_name: &'a str,
}

/// One message with these spans.
pub(crate) fn message(service: &str, spans: &[Span]) -> Bytes {
    let spans: Vec<Message<'_>> = spans.iter().map(|it| of(service, it)).collect();
    let text = serde_json::to_vec(&spans);
    text.expect("JSON text written to memory cannot fail")
        .into()
}

fn of<'a>(service: &'a str, span: &'a Span) -> Message<'a> {
    let tags = span.attributes.iter();
    let mut tags: BTreeMap<&str, String> = tags
        .map(|(name, value)| (&**name, value.to_string()))
        .collect();
    if let Some(why) = &span.failure {
        // OpenTelemetry's convention. Zipkin shows a span with the tag `error` in red.
        tags.insert("otel.status_code", "ERROR".to_owned());
        tags.insert("error", why.clone().into_owned());
    }
    let mut names = span.attributes.iter();
    let remote = names.find_map(|(name, value)| match value {
        Value::Text(value) if name == "subgraph.name" => Some(Endpoint {
            service_name: value,
        }),
        _ => None,
    });
    Message {
        trace_id: span.trace.to_string(),
        id: span.id.to_string(),
        parent_id: span.parent.map(|id| id.to_string()),
        name: &span.name,
        kind: match span.kind {
            SpanKind::Internal => None,
            SpanKind::Server => Some("SERVER"),
            SpanKind::Client => Some("CLIENT"),
        },
        timestamp: span.start_ns / 1_000,
        duration: (span.end_ns.saturating_sub(span.start_ns) / 1_000).max(1),
        local_endpoint: Endpoint {
            service_name: service,
        },
        remote_endpoint: remote.filter(|_| span.kind == SpanKind::Client),
        tags,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{SpanId, TraceId};

    #[test]
    fn a_span_has_ids_times_in_microseconds_and_tags() {
        let span = Span {
            trace: TraceId([1; 16]),
            id: SpanId([2; 8]),
            parent: Some(SpanId([3; 8])),
            parent_is_remote: false,
            state: None,
            name: "POST /r".into(),
            kind: SpanKind::Client,
            start_ns: 1_000_000_999,
            end_ns: 1_002_000_999,
            attributes: vec![
                ("subgraph.name".into(), "reviews".into()),
                ("http.response.status_code".into(), Value::Integer(500)),
            ],
            dropped_attributes: 0,
            failure: Some("no".into()),
        };
        let root = Span {
            parent: None,
            kind: SpanKind::Internal,
            end_ns: span.start_ns,
            attributes: Vec::new(),
            failure: None,
            ..span.clone()
        };
        let text = message("gateway", &[span, root]);
        let spans: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            spans,
            serde_json::json!([
                {
                    "traceId": "01".repeat(16),
                    "id": "02".repeat(8),
                    "parentId": "03".repeat(8),
                    "name": "POST /r",
                    "kind": "CLIENT",
                    "timestamp": 1_000_000,
                    "duration": 2_000,
                    "localEndpoint": {"serviceName": "gateway"},
                    "remoteEndpoint": {"serviceName": "reviews"},
                    "tags": {
                        "subgraph.name": "reviews",
                        "http.response.status_code": "500",
                        "otel.status_code": "ERROR",
                        "error": "no",
                    },
                },
                {
                    "traceId": "01".repeat(16),
                    "id": "02".repeat(8),
                    "name": "POST /r",
                    "timestamp": 1_000_000,
                    "duration": 1,
                    "localEndpoint": {"serviceName": "gateway"},
                    "tags": {},
                },
            ])
        );
    }
}
