//! Sends messages to a collector: OTLP over HTTP and over gRPC, and the formats of Zipkin and Datadog.
//!
//! gRPC is HTTP/2 with five bytes before the message, and with the status in trailers. So the gateway's own
//! client can send it.

mod address;
mod outcome;

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use gateway_config::{BatchProcessor, Datadog, Otlp, OtlpProtocol, Zipkin};
use gateway_upstream::{
    Call, Client, EndpointError, Http2, Policy, Reply, Trust, UpstreamEndpoint,
};
use http::header::{HeaderMap, HeaderName};
use http::{HeaderValue, Method, Uri};

use crate::clock;
use crate::resource::Variables;
pub(crate) use outcome::Outcome;

/// Largest response of a collector that is read, in bytes.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// The header with the number of traces in a message for Datadog's agent.
const TRACE_COUNT: HeaderName = HeaderName::from_static("x-datadog-trace-count");
/// First and longest pause before a message is sent again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

const HTTP_HEADERS: &[u8] = b"content-type: application/x-protobuf\r\n";
const JSON_HEADERS: &[u8] = b"content-type: application/json\r\n";
const MSGPACK_HEADERS: &[u8] = b"content-type: application/msgpack\r\ndatadog-meta-lang: rust\r\n";
const GRPC_HEADERS: &[u8] = b"content-type: application/grpc\r\nte: trailers\r\n";

/// The kind of exported data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Spans of recorded requests.
    Traces,
    /// Counters and other metrics.
    Metrics,
}

impl Signal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    fn http_path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }

    fn grpc_path(self) -> &'static str {
        match self {
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::Traces => "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            Self::Metrics => "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        }
    }
}

/// The reason why a collector cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The address or the certificates of the collector cannot be used.
    #[error("telemetry.exporters: the collector for {signal} cannot be called: {source}")]
    Endpoint {
        /// The name of the exported data.
        signal: &'static str,
        /// The error of the address or the certificates.
        source: EndpointError,
    },
    /// An environment variable is not an address.
    #[error("{name}: {reason}")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// The expected and the actual value.
        reason: String,
    },
    /// The exporting thread cannot be started.
    #[error("no thread for telemetry: {0}")]
    Thread(#[from] std::io::Error),
}

/// The protocol and the format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Otlp(OtlpProtocol),
    Zipkin,
    Datadog,
}

/// A message for a collector.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) body: Bytes,
    /// Number of traces in it, for Datadog's agent.
    pub(crate) traces: usize,
}

impl From<Bytes> for Message {
    fn from(body: Bytes) -> Self {
        Self { body, traces: 0 }
    }
}

/// A collector for one kind of data, with its address.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    pub(crate) signal: Signal,
    endpoint: UpstreamEndpoint,
    headers: HeaderMap,
    protocol: Protocol,
    /// Maximum time for a message, including all retries.
    pub(crate) timeout: Duration,
}

impl Collector {
    pub(crate) fn new(
        otlp: &Otlp,
        signal: Signal,
        variables: Variables<'_>,
    ) -> Result<Self, CollectorError> {
        let uri = address::otlp(otlp, signal, variables)?;
        let wrong = |source| CollectorError::Endpoint {
            signal: signal.name(),
            source,
        };
        let grpc = &otlp.grpc;
        let is_grpc = otlp.protocol == OtlpProtocol::Grpc;
        let text = |pem: &Option<gateway_config::Pem>| pem.as_ref().map(|pem| pem.0.clone());
        let (ca, cert, key) = (text(&grpc.ca), text(&grpc.cert), text(&grpc.key));
        let identity = cert.as_deref().zip(key.as_deref());
        let has_trust = is_grpc && (ca.is_some() || identity.is_some());
        let trust = has_trust.then(|| Trust::new(ca.as_deref(), identity));
        let trust = trust.transpose().map_err(|error| wrong(error.into()))?;
        let policy = Policy {
            http2: if is_grpc { Http2::Only } else { Http2::Disable },
            trust,
            ..Policy::default()
        };
        Ok(Self {
            signal,
            endpoint: UpstreamEndpoint::from_uri(&uri, policy).map_err(wrong)?,
            headers: headers(otlp),
            protocol: Protocol::Otlp(otlp.protocol),
            timeout: otlp.batch_processor.max_export_timeout.0,
        })
    }

    /// A Zipkin server.
    pub(crate) fn zipkin(zipkin: &Zipkin) -> Result<Self, CollectorError> {
        let uri = address::plain(zipkin.endpoint.as_ref(), 9411, "/api/v2/spans");
        Self::plain(&uri, Protocol::Zipkin, &zipkin.batch_processor)
    }

    /// A Datadog agent.
    pub(crate) fn datadog(datadog: &Datadog) -> Result<Self, CollectorError> {
        let uri = address::plain(datadog.endpoint.as_ref(), 8126, "/v0.4/traces");
        Self::plain(&uri, Protocol::Datadog, &datadog.batch_processor)
    }

    fn plain(
        uri: &Uri,
        protocol: Protocol,
        batches: &BatchProcessor,
    ) -> Result<Self, CollectorError> {
        let policy = Policy {
            http2: Http2::Disable,
            ..Policy::default()
        };
        let endpoint = UpstreamEndpoint::from_uri(uri, policy);
        Ok(Self {
            signal: Signal::Traces,
            endpoint: endpoint.map_err(|source| CollectorError::Endpoint {
                signal: Signal::Traces.name(),
                source,
            })?,
            headers: HeaderMap::new(),
            protocol,
            timeout: batches.max_export_timeout.0,
        })
    }

    /// The address, for the log.
    pub(crate) fn address(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Sends a message until it is accepted or refused, or until the timeout. `report` receives the outcome
    /// of each attempt.
    pub(crate) async fn deliver(
        &self,
        client: &Client,
        mut message: Message,
        report: impl Fn(&Outcome),
    ) -> Outcome {
        if self.protocol == Protocol::Otlp(OtlpProtocol::Grpc) {
            message.body = framed(&message.body);
        }
        let start = clock::now();
        let (mut pause, longest) = PAUSES;
        loop {
            let left = self.timeout.saturating_sub(start.elapsed());
            let outcome = self.attempt(client, message.clone(), left).await;
            report(&outcome);
            let Outcome::Again { after, .. } = &outcome else {
                return outcome;
            };
            // The pause that the collector requests. Otherwise our own pause with jitter, so that several
            // gateways do not retry together.
            let jitter = u32::try_from(clock::unix_ns() % 1_000).unwrap_or_default();
            let wait = after.unwrap_or(pause + pause * jitter / 4_000);
            if start.elapsed() + wait >= self.timeout {
                return outcome;
            }
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(longest);
        }
    }

    async fn attempt(&self, client: &Client, message: Message, left: Duration) -> Outcome {
        let mut headers = self.headers.clone();
        if self.protocol == Protocol::Datadog {
            headers.insert(TRACE_COUNT, HeaderValue::from(message.traces));
        }
        let call = Call {
            method: Method::POST,
            headers: &headers,
            rendered_headers: match self.protocol {
                Protocol::Otlp(OtlpProtocol::Http) => HTTP_HEADERS,
                Protocol::Otlp(OtlpProtocol::Grpc) => GRPC_HEADERS,
                Protocol::Zipkin => JSON_HEADERS,
                Protocol::Datadog => MSGPACK_HEADERS,
            },
            body: message.body,
            timeout: Some(left),
            reply_bytes_max: Some(REPLY_BYTES_MAX),
            // At worst the collector receives a span twice.
            is_idempotent: true,
        };
        match client.send(&self.endpoint, call).await {
            Ok(reply) => self.outcome(&reply),
            Err(error) => Outcome::Again {
                after: None,
                why: error.to_string(),
            },
        }
    }

    fn outcome(&self, reply: &Reply) -> Outcome {
        match self.protocol {
            Protocol::Otlp(OtlpProtocol::Http) => outcome::of_http(self.signal, reply),
            Protocol::Otlp(OtlpProtocol::Grpc) => outcome::of_grpc(self.signal, reply),
            Protocol::Zipkin | Protocol::Datadog => outcome::of_status(reply),
        }
    }
}

fn headers(otlp: &Otlp) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &gateway_config::Secret| {
        // The configuration check refuses invalid names.
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            headers.append(name, value.0.0.clone());
        }
    };
    match otlp.protocol {
        OtlpProtocol::Http => {
            for (name, value) in &otlp.http.headers {
                add(name, value);
            }
        }
        OtlpProtocol::Grpc => {
            for (name, values) in &otlp.grpc.metadata {
                values.all().iter().for_each(|value| add(name, value));
            }
        }
    }
    headers
}

/// A gRPC message: its length, then the uncompressed bytes.
fn framed(message: &Bytes) -> Bytes {
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    // The number of spans in a batch and the size of each span are limited.
    framed.put_u32(u32::try_from(message.len()).expect("a message is smaller than 4 GiB"));
    framed.extend_from_slice(message);
    framed.freeze()
}
