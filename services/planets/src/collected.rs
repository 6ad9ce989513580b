//! An OpenTelemetry collector for labs. It receives traces and metrics over HTTP, discards them, and reports
//! their number.
//!
//! Telemetry is sent late. So `/collected` responds only after a quiet period. A lab compares the counts
//! before and after a load with the load.
//!
//! Absent on purpose: gRPC, and all other features of a collector.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::{DecodeError, Message as _};
use serde::Serialize;
use tokio::time::Instant;

/// Quiet time before a response. The labs' gateways batch telemetry for a second, and this is longer.
const QUIET: Duration = Duration::from_millis(1300);
/// Maximum wait for a quiet period.
const QUIET_MAX: Duration = Duration::from_secs(4);
/// The histogram with the reported count.
const DURATION: &str = "http.server.request.duration";

/// Counters of the received telemetry.
#[derive(Debug, Default)]
pub(crate) struct Collected(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    last_spans: Option<Instant>,
}

/// Numbers of received items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// Received messages with spans.
    pub(crate) trace_messages: u64,
    /// Spans in all messages.
    pub(crate) spans: u64,
    /// Server spans: one for each traced request.
    pub(crate) traced_requests: u64,
    /// Traced requests in traces that a client began.
    pub(crate) continued_traces: u64,
    /// Received pushes of metrics.
    pub(crate) metric_messages: u64,
    /// Number of the gateway's responses in the last push.
    pub(crate) counted_requests: u64,
}

impl Collected {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        // The counts are valid after any panic, because each is changed by one addition.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a message with traces.
    pub(crate) fn traces(&self, body: &Bytes) -> Result<(), DecodeError> {
        let request = ExportTraceServiceRequest::decode(&body[..])?;
        let scopes = request.resource_spans.iter().flat_map(|it| &it.scope_spans);
        let (mut spans, mut servers, mut continued) = (0, 0, 0);
        for span in scopes.flat_map(|it| &it.spans) {
            spans += 1;
            let is_server = span.kind == i32::from(SpanKind::Server);
            servers += u64::from(is_server);
            continued += u64::from(is_server && !span.parent_span_id.is_empty());
        }
        self.with(|state| {
            state.counts.trace_messages += 1;
            state.counts.spans += spans;
            state.counts.traced_requests += servers;
            state.counts.continued_traces += continued;
            state.last_spans = Some(Instant::now());
        });
        Ok(())
    }

    /// Counts a push of metrics.
    pub(crate) fn metrics(&self, body: &Bytes) -> Result<(), DecodeError> {
        let request = ExportMetricsServiceRequest::decode(&body[..])?;
        let scopes = request
            .resource_metrics
            .iter()
            .flat_map(|it| &it.scope_metrics);
        let durations = scopes
            .flat_map(|it| &it.metrics)
            .filter(|it| it.name == DURATION);
        let counts = durations.filter_map(|it| match it.data.as_ref()? {
            metric::Data::Histogram(histogram) => {
                Some(histogram.data_points.iter().map(|it| it.count).sum::<u64>())
            }
            _ => None,
        });
        let counted: u64 = counts.sum();
        self.with(|state| {
            state.counts.metric_messages += 1;
            state.counts.counted_requests = counted;
        });
        Ok(())
    }

    /// The counts after a quiet period.
    pub(crate) async fn look(&self) -> Counts {
        let start = Instant::now();
        loop {
            let last = self.with(|state| state.last_spans);
            // At least from now on, because telemetry of recent requests may still be on its way.
            let since = last.map_or(start, |last| last.max(start));
            let quiet_at = (since + QUIET).min(start + QUIET_MAX);
            if Instant::now() >= quiet_at {
                return self.with(|state| state.counts.clone());
            }
            tokio::time::sleep_until(quiet_at).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

    use super::*;

    #[test]
    fn spans_and_requests_are_counted_and_rubbish_is_not() {
        let collected = Collected::default();
        let span = |kind: SpanKind| Span {
            kind: i32::from(kind),
            parent_span_id: vec![1; 8],
            ..Span::default()
        };
        let spans = vec![span(SpanKind::Server), span(SpanKind::Client)];
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![ScopeSpans {
                    spans,
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        collected.traces(&request.encode_to_vec().into()).unwrap();
        assert!(collected.traces(&Bytes::from_static(b"\xff")).is_err());
        assert!(collected.metrics(&Bytes::from_static(b"\xff")).is_err());
        collected.metrics(&Bytes::new()).unwrap();
        let expected = Counts {
            trace_messages: 1,
            spans: 2,
            traced_requests: 1,
            continued_traces: 1,
            metric_messages: 1,
            counted_requests: 0,
        };
        assert_eq!(collected.with(|state| state.counts.clone()), expected);
    }
}
