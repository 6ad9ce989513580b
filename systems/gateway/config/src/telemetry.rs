//! `telemetry`: names of clients, and exports of metrics and traces.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::report::Report;
use crate::tls::Pem;
use crate::written::{Listen, OtlpEndpoint, PlainPath, Sampler, Written};

/// Logs, traces and metrics of requests, and their names.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Who the client is.
    pub apollo: ClientNames,
    /// Where counts and traces go.
    pub exporters: Exporters,
}

/// Where the name and version of a client come from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientNames {
    /// The header with the client's name.
    pub client_name_header: Written<HeaderName>,
    /// The header with the client's version.
    pub client_version_header: Written<HeaderName>,
    /// The claim of the token with the client's name; it wins over the header. Not known to the
    /// original.
    pub client_name_claim: Option<String>,
    /// The claim of the token with the client's version; it wins over the header. Not known to
    /// the original.
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

/// Where counts and traces go.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Exporters {
    /// Counts and durations.
    pub metrics: MetricsExporters,
    /// Traces: what single requests did, and how long each part took.
    pub tracing: TracingExporters,
}

/// Where counts and durations go.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsExporters {
    /// Who is counting.
    pub common: MetricsCommon,
    /// In the text format of Prometheus.
    pub prometheus: Prometheus,
    /// Pushed to a collector every `batch_processor.scheduled_delay`.
    pub otlp: Otlp,
}

/// Who is counting.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsCommon {
    /// The name of this service, `service.name`. `OTEL_SERVICE_NAME` wins over it.
    pub service_name: Option<String>,
    /// `service.namespace`.
    pub service_namespace: Option<String>,
    /// Further attributes of this service.
    pub resource: BTreeMap<String, AttributeValue>,
}

/// Counts in the text format of Prometheus.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prometheus {
    /// Whether they are shown.
    pub enabled: bool,
    /// Where; the address of `health_check` when left out.
    pub listen: Option<Written<Listen>>,
    /// On which path.
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

/// Where traces go, which requests are traced, and who else hears of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingExporters {
    /// Who is tracing, and which requests are traced.
    pub common: TracingCommon,
    /// How traces go on to subgraphs and coprocessors.
    pub propagation: Propagation,
    /// Traces for a collector.
    pub otlp: Otlp,
    /// Whether clients are told the id of the trace.
    pub experimental_response_trace_id: ResponseTraceId,
}

/// Who is tracing, and which requests are traced.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracingCommon {
    /// The name of this service, `service.name`. `OTEL_SERVICE_NAME` wins over it.
    pub service_name: Option<String>,
    /// `service.namespace`.
    pub service_namespace: Option<String>,
    /// Further attributes of this service.
    pub resource: BTreeMap<String, AttributeValue>,
    /// Which requests are traced: `always_on`, `always_off`, or a share such as `0.01`. It is
    /// decided once, by the id of the trace.
    pub sampler: Written<Sampler>,
    /// Whether a client that sends `traceparent` decides for its request. Any client can then have
    /// its requests traced: set it to false where strangers are served.
    pub parent_based_sampler: bool,
    /// Most attributes of a span; further ones are dropped and counted in the span.
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

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AttributeValue {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// Text.
    Text(String),
    /// Several of one kind.
    List(Vec<AttributeItem>),
}

/// One of several values of an attribute.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AttributeItem {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Integer(i64),
    /// Any number.
    Number(f64),
    /// Text.
    Text(String),
}

/// How traces go on to subgraphs and coprocessors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Propagation {
    /// By `traceparent` and `tracestate` of the W3C. On in any case where traces are exported.
    pub trace_context: bool,
}

/// Whether clients are told the id of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseTraceId {
    /// Whether they are.
    pub enabled: bool,
    /// The header that tells them.
    pub header_name: Written<HeaderName>,
    /// How the id is written.
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

/// How the id of a trace is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceIdFormat {
    /// 32 hexadecimal digits.
    #[default]
    Hexadecimal,
    /// The same.
    OpenTelemetry,
    /// The whole number in decimal digits.
    Decimal,
    /// Its lower 64 bits in decimal digits.
    Datadog,
    /// With hyphens, as a UUID.
    Uuid,
}

/// A collector that takes OTLP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Otlp {
    /// Whether anything is sent.
    pub enabled: bool,
    /// Where the collector is: a URL, `host:port`, or `default`, which is `http://127.0.0.1:4317`
    /// for gRPC and `http://127.0.0.1:4318` for HTTP. Over HTTP `/v1/traces` or `/v1/metrics` is
    /// appended to a path that is not one of these. `OTEL_EXPORTER_OTLP_ENDPOINT` and
    /// `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `…_METRICS_ENDPOINT` win over it.
    pub endpoint: Option<Written<OtlpEndpoint>>,
    /// How it is spoken to.
    pub protocol: OtlpProtocol,
    /// What gRPC needs.
    pub grpc: OtlpGrpc,
    /// What HTTP needs.
    pub http: OtlpHttp,
    /// How much is kept, and how often it is sent.
    pub batch_processor: BatchProcessor,
    /// Whether metrics count since the start or since they were last sent; without a meaning for
    /// traces.
    pub temporality: Temporality,
}

/// How a collector is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpProtocol {
    /// gRPC, over HTTP/2.
    #[default]
    Grpc,
    /// Protobuf in HTTP/1.1 requests.
    Http,
}

/// Since when metrics count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Temporality {
    /// Since the start.
    #[default]
    Cumulative,
    /// Since they were last sent.
    Delta,
}

/// What gRPC needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpGrpc {
    /// Authorities to trust in place of those of the operating system, PEM.
    pub ca: Option<Pem>,
    /// The certificate that the gateway shows, PEM.
    pub cert: Option<Pem>,
    /// Its private key, PEM.
    pub key: Option<Pem>,
    /// Headers of each call.
    pub metadata: BTreeMap<String, HeaderTexts>,
}

/// What HTTP needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpHttp {
    /// Headers of each request.
    pub headers: BTreeMap<String, Secret>,
}

/// A value of a header, or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HeaderTexts {
    /// One.
    One(Secret),
    /// Several.
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

/// A header's value, which is never shown: it may be a key.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Secret(pub Written<HeaderValue>);

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(a header's value)")
    }
}

/// How much is kept for a collector, and how often it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchProcessor {
    /// The longest time that something waits to be sent; for metrics, the time between two pushes.
    pub scheduled_delay: Written<Duration>,
    /// Spans that may wait; further ones are dropped and counted.
    pub max_queue_size: NonZeroUsize,
    /// Spans of one message.
    pub max_export_batch_size: NonZeroUsize,
    /// The longest time that a message may take, with all its repetitions; then it is dropped and
    /// counted.
    pub max_export_timeout: Written<Duration>,
    /// Messages that may be on their way at a time.
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

/// Reports keys of exporters that contradict each other.
pub(crate) fn check(exporters: &Exporters, report: &mut Report<'_>) {
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
        if otlp.batch_processor.scheduled_delay.is_zero() {
            report(
                &path(&["batch_processor", "scheduled_delay"]),
                "expected a time above zero".to_owned(),
            );
        }
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
