//! Traces and metrics of the gateway for OpenTelemetry.
//!
//! The one idea: a worker only writes down what a request did, and only if its trace is recorded;
//! everything that a collector needs happens on threads that no request waits for. A [`Tracer`]
//! decides once for each request, [`Active`] is passed along with it, an [`OpenSpan`] is a piece of
//! its work, and an [`Exporter`] sends what has been put into a bounded queue.
//!
//! Absent on purpose: a subscriber for the events of libraries, events and links of spans, and the
//! SDK of OpenTelemetry, whose instruments and processors would be on the path of each request.

mod call;
mod clock;
mod collector;
mod context;
mod exporter;
mod identifier;
mod metric_message;
mod names;
mod queue;
mod resource;
mod shortened;
mod span;
mod span_message;
mod trace;
mod tracer;

pub use call::{sending, sent};
pub use collector::CollectorError;
pub use context::{Parent, SpanId, TRACEPARENT, TRACESTATE, TraceId};
pub use exporter::{Export, Exporter, Metrics, Traces};
pub use identifier::random_bytes;
pub use queue::Counts;
pub use resource::Variables;
pub use shortened::{NAME_CHARS_MAX, TEXT_CHARS_MAX, shortened};
pub use span::{Kind, Value, kept};
pub use trace::{Active, OpenSpan, Trace};
pub use tracer::Tracer;

/// Now, in nanoseconds since 1970: when counting began.
#[must_use]
pub fn started_ns() -> u64 {
    clock::unix_ns()
}
