//! Traces and metrics of the gateway for OpenTelemetry.
//!
//! The key idea: a worker only records the events of a request, and only if its trace is recorded. All work
//! for the collector happens on threads that no request waits for. A [`Tracer`] decides once per request.
//! [`Active`] is passed along with the request, and an [`OpenSpan`] is a piece of its work. An [`Exporter`]
//! sends the spans from a bounded queue.
//!
//! Absent on purpose: a subscriber for the events of libraries, events and links of spans, and the
//! OpenTelemetry SDK. Its instruments and processors would run on the path of each request.

mod call;
mod clock;
mod collector;
mod context;
mod datadog_message;
mod exporter;
mod identifier;
mod instrument;
mod metric_message;
mod names;
mod propagation;
mod queue;
mod resource;
mod shortened;
mod span;
mod span_message;
mod trace;
mod tracer;
mod zipkin_message;

pub use call::{describe, sending, sent};
pub use collector::CollectorError;
pub use context::{Parent, SpanId, TRACEPARENT, TRACESTATE, TraceId};
pub use exporter::{Export, Exporter, Metrics, Traces};
pub use identifier::random_bytes;
pub use instrument::{Held, InstrumentHead, InstrumentKind, Labels, Series, families};
pub use queue::{Destination, ExportCounts, SpanCounts};
pub use resource::Variables;
pub use shortened::{NAME_CHARS_MAX, TEXT_CHARS_MAX, shortened};
pub use span::{SpanKind, Value, kept};
pub use trace::{Active, OpenSpan, SpanEdits, Trace};
pub use tracer::Tracer;

/// The current time in nanoseconds since 1970, as the start of counting.
#[must_use]
pub fn started_ns() -> u64 {
    clock::unix_ns()
}
