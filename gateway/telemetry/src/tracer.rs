//! Decides about the recording of requests, and begins their traces.

use std::rc::Rc;
use std::sync::Arc;

use gateway_config::{Propagation, ResponseTraceId, TraceIdFormat, TracingExporters};
use http::HeaderName;
use http::header::{HeaderMap, HeaderValue};

use crate::context::{Parent, TraceId};
use crate::identifier;
use crate::propagation::Formats;
use crate::queue::{Destination, ExportCounts, Queue};
use crate::trace::{Active, OpenSpan, Origin, Trace};

/// The tracing settings of one configuration. Dropping it closes the queue of the exporter.
#[derive(Debug)]
pub struct Tracer {
    /// The queues for spans, one for each receiver. Empty if traces are only forwarded.
    pub(crate) queues: Arc<[Arc<Queue>]>,
    /// Sampling threshold out of 2^63. Traces with a smaller id are recorded.
    threshold: u64,
    is_parent_based: bool,
    attributes_max: usize,
    formats: Arc<Formats>,
    told: Option<(HeaderName, TraceIdFormat)>,
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
    }
}

impl Tracer {
    /// The tracer of a configuration. `None` if it neither records nor forwards traces.
    #[must_use]
    pub fn new(config: &TracingExporters, counts: &Arc<ExportCounts>) -> Option<Self> {
        let told = &config.experimental_response_trace_id;
        let exports = [
            (
                Destination::Otlp,
                config.otlp.enabled,
                &config.otlp.batch_processor,
            ),
            (
                Destination::Zipkin,
                config.zipkin.enabled,
                &config.zipkin.batch_processor,
            ),
            (
                Destination::Datadog,
                config.datadog.enabled,
                &config.datadog.batch_processor,
            ),
        ];
        let queues = exports.into_iter().filter(|(_, is_on, _)| *is_on);
        let queues: Arc<[_]> = queues
            .map(|(destination, _, batches)| {
                Arc::new(Queue::new(destination, batches, Arc::clone(counts)))
            })
            .collect();
        let exports = !queues.is_empty();
        if !exports && config.propagation == Propagation::default() && !told.enabled {
            return None;
        }
        // The services around a receiver usually have its format.
        let propagation = Propagation {
            zipkin: config.propagation.zipkin || config.zipkin.enabled,
            datadog: config.propagation.datadog || config.datadog.enabled,
            ..config.propagation.clone()
        };
        Some(Self {
            queues,
            threshold: threshold(config.common.sampler.0.0),
            is_parent_based: config.common.parent_based_sampler,
            attributes_max: config.common.max_attributes_per_span,
            formats: Arc::new(Formats::new(&propagation, exports)),
            told: told.enabled.then(|| header(told)),
        })
    }

    /// Begins the trace of a request with these headers, and its server span if the trace is recorded. `None`
    /// if traces are only forwarded and the client began no trace.
    #[must_use]
    pub fn begin(self: &Arc<Self>, headers: &HeaderMap) -> Option<(Active, Option<Box<OpenSpan>>)> {
        let parent = self.formats.read(headers);
        let baggage = self.formats.read_baggage(headers);
        if self.queues.is_empty() {
            return self.pass_on(parent, baggage);
        }
        let (fresh, mut ids) = identifier::fresh();
        let id = parent.as_ref().map_or(fresh, |parent| parent.trace);
        let decided = parent.as_ref().and_then(|parent| parent.is_sampled);
        let is_sampled = match decided {
            Some(is_sampled) if self.is_parent_based => is_sampled,
            _ => self.samples(id),
        };
        let span = ids.next();
        let (parent_span, state) =
            parent.map_or((None, None), |parent| (parent.span, parent.state));
        let origin = self.origin(id, is_sampled, state, baggage);
        let trace = Trace::new(origin, &self.queues, self.attributes_max, ids);
        let trace = Rc::new(trace);
        let server = trace.server(span, parent_span);
        Some((Active { trace, span }, server))
    }

    /// Forwards a trace without recording it. The client's span stays the parent of subgraph spans.
    fn pass_on(
        self: &Arc<Self>,
        parent: Option<Parent>,
        baggage: Option<HeaderValue>,
    ) -> Option<(Active, Option<Box<OpenSpan>>)> {
        let (fresh, mut ids) = identifier::fresh();
        let (id, span, state, is_sampled) = match parent {
            Some(Parent {
                trace,
                span,
                is_sampled,
                state,
            }) => (
                trace,
                span.unwrap_or_else(|| ids.next()),
                state,
                is_sampled.unwrap_or_default(),
            ),
            // Clients that receive a trace id need one. Baggage passes along with a trace.
            None if self.told.is_some() || baggage.is_some() => (fresh, ids.next(), None, false),
            None => return None,
        };
        let origin = self.origin(id, is_sampled, state, baggage);
        let trace = Rc::new(Trace::only_passed_on(origin));
        Some((Active { trace, span }, None))
    }

    fn origin(
        &self,
        id: TraceId,
        is_sampled: bool,
        state: Option<HeaderValue>,
        baggage: Option<HeaderValue>,
    ) -> Origin {
        Origin {
            id,
            is_sampled,
            state,
            baggage,
            formats: Arc::clone(&self.formats),
        }
    }

    /// True if the trace is recorded. The lower half of the id decides, as in SDKs, so that all services with
    /// an equal share decide equally.
    fn samples(&self, id: TraceId) -> bool {
        let [_, _, _, _, _, _, _, _, lower @ ..] = id.0;
        u64::from_be_bytes(lower) >> 1 < self.threshold
    }

    /// The response header with the trace id for the client, if one is configured.
    #[must_use]
    pub fn told(&self, id: TraceId) -> Option<(HeaderName, HeaderValue)> {
        let (name, format) = self.told.as_ref()?;
        let text = id.shown(*format);
        let value = HeaderValue::from_str(&text).expect("digits and hyphens are a header value");
        Some((name.clone(), value))
    }
}

fn header(told: &ResponseTraceId) -> (HeaderName, TraceIdFormat) {
    (told.header_name.0.clone(), told.format)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share is from 0 to 1, so the product is from 0 to 2^63"
)]
fn threshold(share: f64) -> u64 {
    (share * (1_u64 << 63) as f64) as u64
}

#[cfg(test)]
mod tests {
    use gateway_config::{Otlp, Sampler, TracingCommon, Written};

    use super::*;
    use crate::context::TRACEPARENT;

    fn tracer(share: f64, is_parent_based: bool) -> Arc<Tracer> {
        let config = TracingExporters {
            otlp: Otlp {
                enabled: true,
                ..Otlp::default()
            },
            common: TracingCommon {
                sampler: Written(Sampler(share)),
                parent_based_sampler: is_parent_based,
                ..TracingCommon::default()
            },
            ..TracingExporters::default()
        };
        Arc::new(Tracer::new(&config, &Arc::default()).unwrap())
    }

    fn sampled(tracer: &Arc<Tracer>, parent: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(parent) = parent {
            headers.insert(TRACEPARENT, HeaderValue::from_static(parent));
        }
        let (_, server) = tracer.begin(&headers).unwrap();
        server.is_some()
    }

    const YES: &str = "00-0af7651916cd43ddffffffffffffffff-b7ad6b7169203331-01";
    const NO: &str = "00-0af7651916cd43dd0000000000000000-b7ad6b7169203331-00";

    #[test]
    fn a_share_of_traces_is_recorded_and_the_id_decides() {
        for (share, low, high) in [(0.0, 0, 0), (1.0, 20_000, 20_000), (0.1, 1_700, 2_300)] {
            let tracer = tracer(share, true);
            let count = (0..20_000).filter(|_| sampled(&tracer, None)).count();
            assert!((low..=high).contains(&count), "{count} at {share}");
        }
        // An id always gets the same decision, regardless of the parent's flag.
        let tracer = tracer(0.5, false);
        assert!(!sampled(&tracer, Some(YES)));
        assert!(sampled(&tracer, Some(NO)));
    }

    #[test]
    fn a_parent_decides_where_it_may() {
        for share in [0.0, 0.5, 1.0] {
            let tracer = tracer(share, true);
            assert!(sampled(&tracer, Some(YES)));
            assert!(!sampled(&tracer, Some(NO)));
        }
    }

    #[test]
    fn an_id_is_written_as_asked() {
        let mut id = [0; 16];
        (id[7], id[15]) = (1, 16);
        let id = TraceId(id);
        for (format, expected) in [
            (
                TraceIdFormat::Hexadecimal,
                "00000000000000010000000000000010",
            ),
            (TraceIdFormat::Decimal, "18446744073709551632"),
            (TraceIdFormat::Datadog, "16"),
            (TraceIdFormat::Uuid, "00000000-0000-0001-0000-000000000010"),
        ] {
            assert_eq!(id.shown(format), expected);
        }
    }
}
