//! Converts spans to OTLP messages.

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as Message, SpanFlags, Status,
};
use prost::Message as _;

use crate::resource::attribute;
use crate::span::{self, Span, Value};

/// The instrumentation scope of these spans and metrics within the service.
pub(crate) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "gateway".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// One message with these spans.
pub(crate) fn message(resource: &Resource, spans: Vec<Span>) -> Bytes {
    let scope_spans = ScopeSpans {
        scope: Some(scope()),
        spans: spans.into_iter().map(span).collect(),
        ..ScopeSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans: vec![scope_spans],
            ..ResourceSpans::default()
        }],
    };
    request.encode_to_vec().into()
}

fn span(span: Span) -> Message {
    // Only recorded spans become messages, so the sampled flag is always set.
    let mut flags = 1 | mask(SpanFlags::ContextHasIsRemoteMask);
    if span.parent_is_remote {
        flags |= mask(SpanFlags::ContextIsRemoteMask);
    }
    let state = span.state.as_ref().and_then(|it| it.to_str().ok());
    Message {
        trace_id: span.trace.0.to_vec(),
        span_id: span.id.0.to_vec(),
        trace_state: state.unwrap_or_default().to_owned(),
        parent_span_id: span.parent.map_or_else(Vec::new, |id| id.0.to_vec()),
        flags,
        name: span.name.into_owned(),
        kind: i32::from(match span.kind {
            span::SpanKind::Internal => SpanKind::Internal,
            span::SpanKind::Server => SpanKind::Server,
            span::SpanKind::Client => SpanKind::Client,
        }),
        start_time_unix_nano: span.start_ns,
        end_time_unix_nano: span.end_ns,
        attributes: span
            .attributes
            .into_iter()
            .map(|(name, value)| attribute(name.into_owned(), value_of(value)))
            .collect(),
        dropped_attributes_count: span.dropped_attributes,
        status: span.failure.map(|why| Status {
            message: why.into_owned(),
            code: i32::from(StatusCode::Error),
        }),
        ..Message::default()
    }
}

fn mask(flag: SpanFlags) -> u32 {
    // The values of this enum are bits.
    u32::try_from(i32::from(flag)).unwrap_or_default()
}

fn value_of(value: Value) -> any_value::Value {
    match value {
        Value::Text(text) => any_value::Value::StringValue(text.into_owned()),
        Value::Integer(number) => any_value::Value::IntValue(number),
        Value::Number(number) => any_value::Value::DoubleValue(number),
        Value::Switch(is_on) => any_value::Value::BoolValue(is_on),
    }
}
