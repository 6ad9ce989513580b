//! `telemetry`: names of clients, and exports of metrics and traces.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::instrumentation::Instrumentation;
use crate::log_export::LoggingExporters;
use crate::report::Report;
use crate::resource_value::AttributeValue;
use crate::tls::Pem;
use crate::trace_id::TraceIdFormat;
use crate::written::{Listen, OtlpEndpoint, PlainPath, Sampler, Written};

/// Logs, traces and metrics of requests, and their names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// The source of the client's name and version.
    pub apollo: ClientNames,
    /// The destinations of metrics and traces, and the form of the log.
    pub exporters: Exporters,
    /// Attributes of spans, instruments of metrics, and events in the log. Without this key, requests have no
    /// such work.
    pub instrumentation: Option<Instrumentation>,
}

/// The source of the client's name and version.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientNames {
    /// The request header with the client's name.
    pub client_name_header: Written<HeaderName>,
    /// The request header with the client's version.
    pub client_version_header: Written<HeaderName>,
    /// The claim of the token with the client's name. It has precedence over the header. Not in Apollo
    /// Router.
    pub client_name_claim: Option<String>,
    /// The claim of the token with the client's version. It has precedence over the header. Not in Apollo
    /// Router.
    pub client_version_claim: Option<String>,
}

impl Default for ClientNames {
    fn default() -> Self {
        Self {
            client_name_header: Written(HeaderName::from_static("apollographql-client-name")),
            client_version_header: Written(HeaderName::from_static("apollographql-client-version")),
            client_name_claim: None,
            client_version_claim: None,
        }
    }
}

/// The destinations of metrics and traces, and the form of the log.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Exporters {
    /// The destinations of metrics.
    pub metrics: MetricsExporters,
    /// The destinations of traces. A trace has the parts of one request and their durations.
    pub tracing: TracingExporters,
    /// The form of the lines in the log.
    pub logging: LoggingExporters,
}

/// The destinations of counters and durations.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsExporters {
    /// The attributes of this service in metrics.
    pub common: MetricsCommon,
    /// Metrics in the text format of Prometheus.
    pub prometheus: Prometheus,
    /// Metrics for a collector, pushed every `batch_processor.scheduled_delay`.
    pub otlp: Otlp,
}

/// The attributes of this service in metrics.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsCommon {
    /// The name of this service, `service.name`. `OTEL_SERVICE_NAME` has precedence.
    pub service_name: Option<String>,
    /// The namespace of this service, `service.namespace`.
    pub service_namespace: Option<String>,
    /// Further attributes of this service.
    pub resource: BTreeMap<String, AttributeValue>,
}

/// Metrics in the text format of Prometheus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prometheus {
    /// True if the gateway serves these metrics.
    pub enabled: bool,
    /// The listen address. The default is the address of `health_check`.
    pub listen: Option<Written<Listen>>,
    /// The path of the metrics.
    pub path: Written<PlainPath>,
}

impl Default for Prometheus {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: None,
            path: Written(PlainPath("/metrics".to_owned())),
        }
    }
}

/// The destinations of traces, their selection, and their propagation to other services.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingExporters {
    /// The attributes of this service in traces, and the selection of requests.
    pub common: TracingCommon,
    /// The propagation of traces to subgraphs and coprocessors.
    pub propagation: Propagation,
    /// The collector that receives traces.
    pub otlp: Otlp,
    /// The Zipkin server that receives traces.
    pub zipkin: Zipkin,
    /// The Datadog agent that receives traces.
    pub datadog: Datadog,
    /// The response header with the id of the trace.
    pub experimental_response_trace_id: ResponseTraceId,
}

/// The attributes of this service in traces, and the selection of requests.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingCommon {
    /// The name of this service, `service.name`. `OTEL_SERVICE_NAME` has precedence.
    pub service_name: Option<String>,
    /// The namespace of this service, `service.namespace`.
    pub service_namespace: Option<String>,
    /// Further attributes of this service.
    pub resource: BTreeMap<String, AttributeValue>,
    /// The requests with traces. The value is `always_on`, `always_off`, or a share such as `0.01`. The id of
    /// the trace decides once for the whole trace.
    pub sampler: Written<Sampler>,
    /// True if the `traceparent` of a client decides for its request. Any client can then turn on traces for
    /// its requests. Set it to false if the clients are unknown.
    pub parent_based_sampler: bool,
    /// Maximum number of attributes of a span. The gateway drops further attributes and counts them in the
    /// span.
    pub max_attributes_per_span: usize,
}

impl Default for TracingCommon {
    fn default() -> Self {
        Self {
            service_name: None,
            service_namespace: None,
            resource: BTreeMap::new(),
            sampler: Written(Sampler(1.0)),
            parent_based_sampler: true,
            max_attributes_per_span: 128,
        }
    }
}

/// The formats of traces in the headers of clients, subgraphs and coprocessors. The gateway reads and writes each
/// of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Propagation {
    /// True for the W3C headers `traceparent` and `tracestate`. The gateway always uses them if it exports
    /// traces.
    pub trace_context: bool,
    /// True for the headers `x-b3-…` of Zipkin. The gateway also reads the single header `b3`.
    pub zipkin: bool,
    /// True for the header `uber-trace-id` of Jaeger.
    pub jaeger: bool,
    /// True for the headers `x-datadog-…`.
    pub datadog: bool,
    /// True for the header `x-amzn-trace-id` of AWS X-Ray.
    pub aws_xray: bool,
    /// True if the gateway forwards the header `baggage` of W3C, up to 8,192 bytes.
    pub baggage: bool,
    /// A header with only the id of the trace. It has precedence over the other formats.
    pub request: RequestTraceId,
}

/// A header with only the id of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestTraceId {
    /// The name of the header.
    pub header_name: Option<Written<HeaderName>>,
    /// The format of the id for subgraphs. The gateway reads hexadecimal digits, with or without hyphens.
    pub format: TraceIdFormat,
}

/// The response header with the id of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseTraceId {
    /// True if responses to clients have this header.
    pub enabled: bool,
    /// The name of the header.
    pub header_name: Written<HeaderName>,
    /// The format of the id.
    pub format: TraceIdFormat,
}

impl Default for ResponseTraceId {
    fn default() -> Self {
        Self {
            enabled: false,
            header_name: Written(HeaderName::from_static("apollo-trace-id")),
            format: TraceIdFormat::Hexadecimal,
        }
    }
}

/// A collector that receives OTLP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Otlp {
    /// True if the gateway sends data to the collector.
    pub enabled: bool,
    /// The address of the collector. The value is a URL, `host:port`, or `default`. `default` is
    /// `http://127.0.0.1:4317` for gRPC and `http://127.0.0.1:4318` for HTTP. Over HTTP, the gateway appends
    /// `/v1/traces` or `/v1/metrics` to other paths. `OTEL_EXPORTER_OTLP_ENDPOINT` and
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `…_METRICS_ENDPOINT` have precedence.
    pub endpoint: Option<Written<OtlpEndpoint>>,
    /// The protocol to the collector.
    pub protocol: OtlpProtocol,
    /// Settings that only gRPC uses.
    pub grpc: OtlpGrpc,
    /// Settings that only HTTP uses.
    pub http: OtlpHttp,
    /// The size of the queue, and the interval between messages.
    pub batch_processor: BatchProcessor,
    /// The start of the counts in metrics. It is the start of the process or the last message. Traces do not
    /// use it.
    pub temporality: Temporality,
}

/// A Zipkin server that receives traces as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Zipkin {
    /// True if the gateway sends traces to Zipkin. Then it also reads and writes the headers `x-b3-…`.
    pub enabled: bool,
    /// The address of Zipkin. The value is a URL, `host:port`, or `default`. The gateway appends
    /// `/api/v2/spans` to an address without a path. `default` is `http://127.0.0.1:9411/api/v2/spans`.
    pub endpoint: Option<Written<OtlpEndpoint>>,
    /// The size of the queue, and the interval between messages.
    pub batch_processor: BatchProcessor,
}

/// A Datadog agent that receives traces as MessagePack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Datadog {
    /// True if the gateway sends traces to the agent. Then it also reads and writes the headers
    /// `x-datadog-…`.
    pub enabled: bool,
    /// The address of the agent. The value is a URL, `host:port`, or `default`. The gateway appends
    /// `/v0.4/traces` to an address without a path. `default` is `http://127.0.0.1:8126/v0.4/traces`.
    pub endpoint: Option<Written<OtlpEndpoint>>,
    /// The size of the queue, and the interval between messages.
    pub batch_processor: BatchProcessor,
}

/// The protocol to a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpProtocol {
    /// The protocol gRPC, over HTTP/2.
    #[default]
    Grpc,
    /// The protocol Protobuf in HTTP/1.1 requests.
    Http,
}

/// The start of the counts in metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Temporality {
    /// Metrics count since the start of the process.
    #[default]
    Cumulative,
    /// Metrics count since the last message.
    Delta,
}

/// Settings of gRPC calls to the collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpGrpc {
    /// Certificate authorities in PEM, instead of the authorities of the operating system.
    pub ca: Option<Pem>,
    /// The certificate of the gateway in PEM.
    pub cert: Option<Pem>,
    /// The private key of the certificate in PEM.
    pub key: Option<Pem>,
    /// The headers of every call.
    pub metadata: BTreeMap<String, HeaderTexts>,
}

/// Settings of HTTP requests to the collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpHttp {
    /// The headers of every request.
    pub headers: BTreeMap<String, Secret>,
}

/// One or several values of a header.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderTexts {
    /// The only value of the header.
    One(Secret),
    /// The values of the header.
    Several(Vec<Secret>),
}

impl HeaderTexts {
    /// The values, one or several.
    pub fn all(&self) -> &[Secret] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

/// The value of a header. It may be a key, so the gateway never shows it.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(pub Written<HeaderValue>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(a header's value)")
    }
}

/// The size of a collector's queue, and the interval between messages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchProcessor {
    /// Maximum waiting time of data in the queue. For metrics, it is the time between two messages.
    pub scheduled_delay: Written<Duration>,
    /// Maximum number of spans in the queue. The gateway drops further spans and counts them.
    pub max_queue_size: NonZeroUsize,
    /// Maximum number of spans in one message.
    pub max_export_batch_size: NonZeroUsize,
    /// Maximum time to send a message, with all retries. After it, the gateway drops the message and counts
    /// it.
    pub max_export_timeout: Written<Duration>,
    /// Maximum number of messages in flight.
    pub max_concurrent_exports: NonZeroUsize,
}

impl Default for BatchProcessor {
    fn default() -> Self {
        let count = |count| NonZeroUsize::new(count).expect("the defaults are not zero");
        Self {
            scheduled_delay: Written(Duration::from_secs(5)),
            max_queue_size: count(2048),
            max_export_batch_size: count(512),
            max_export_timeout: Written(Duration::from_secs(30)),
            max_concurrent_exports: count(1),
        }
    }
}

fn check_batches(batches: &BatchProcessor, path: &[&str], report: &mut Report<'_>) {
    if batches.scheduled_delay.is_zero() {
        report(
            &[path, &["batch_processor", "scheduled_delay"]].concat(),
            "expected a time above zero".to_owned(),
        );
    }
}

/// Reports keys of exporters that contradict each other.
pub(crate) fn check(exporters: &Exporters, report: &mut Report<'_>) {
    let tracing = &exporters.tracing;
    for (name, batches) in [
        ("zipkin", &tracing.zipkin.batch_processor),
        ("datadog", &tracing.datadog.batch_processor),
    ] {
        check_batches(
            batches,
            &["telemetry", "exporters", "tracing", name],
            report,
        );
    }
    for (signal, otlp) in [
        ("tracing", &exporters.tracing.otlp),
        ("metrics", &exporters.metrics.otlp),
    ] {
        let path = |rest: &[&'static str]| {
            [&["telemetry", "exporters", signal, "otlp"][..], rest].concat()
        };
        if otlp.grpc.cert.is_some() != otlp.grpc.key.is_some() {
            report(
                &path(&["grpc"]),
                "`cert` and `key` belong together: write both, or none".to_owned(),
            );
        }
        check_batches(&otlp.batch_processor, &path(&[]), report);
        let headers = otlp
            .http
            .headers
            .keys()
            .map(|name| ("http", "headers", name));
        let metadata = otlp.grpc.metadata.keys();
        let metadata = metadata.map(|name| ("grpc", "metadata", name));
        for (protocol, key, name) in headers.chain(metadata) {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                report(
                    &path(&[protocol, key]),
                    format!(
                        "`{name}` is not the name of a header: expected letters, digits and `-`"
                    ),
                );
            }
        }
    }
}
