//! Sends messages to a collector: OTLP over HTTP and over gRPC.
//!
//! gRPC is HTTP/2 with five bytes before the message, and with the status in trailers. So the gateway's own
//! client can send it.

mod outcome;

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use gateway_config::{Otlp, OtlpEndpoint, OtlpProtocol};
use gateway_upstream::{
    Call, Client, EndpointError, Http2, Policy, Reply, Trust, UpstreamEndpoint,
};
use http::header::{HeaderMap, HeaderName};
use http::{Method, Uri};

use crate::clock;
use crate::resource::Variables;
pub(crate) use outcome::Outcome;

/// Largest response of a collector that is read, in bytes.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// First and longest pause before a message is sent again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

const HTTP_HEADERS: &[u8] = b"content-type: application/x-protobuf\r\n";
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

/// A collector for one kind of data, with its address.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    pub(crate) signal: Signal,
    endpoint: UpstreamEndpoint,
    headers: HeaderMap,
    protocol: OtlpProtocol,
    /// Maximum time for a message, including all retries.
    pub(crate) timeout: Duration,
}

impl Collector {
    pub(crate) fn new(
        otlp: &Otlp,
        signal: Signal,
        variables: Variables<'_>,
    ) -> Result<Self, CollectorError> {
        let uri = address(otlp, signal, variables)?;
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
            protocol: otlp.protocol,
            timeout: otlp.batch_processor.max_export_timeout.0,
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
        message: Bytes,
        report: impl Fn(&Outcome),
    ) -> Outcome {
        let message = match self.protocol {
            OtlpProtocol::Http => message,
            OtlpProtocol::Grpc => framed(&message),
        };
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

    async fn attempt(&self, client: &Client, message: Bytes, left: Duration) -> Outcome {
        let call = Call {
            method: Method::POST,
            headers: &self.headers,
            rendered_headers: match self.protocol {
                OtlpProtocol::Http => HTTP_HEADERS,
                OtlpProtocol::Grpc => GRPC_HEADERS,
            },
            body: message,
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
            OtlpProtocol::Http => outcome::of_http(self.signal, reply),
            OtlpProtocol::Grpc => outcome::of_grpc(self.signal, reply),
        }
    }
}

/// The address for messages: from the environment, otherwise from the configuration.
fn address(otlp: &Otlp, signal: Signal, variables: Variables<'_>) -> Result<Uri, CollectorError> {
    let variable = |name: &'static str| {
        let text = variables(name).filter(|text| !text.is_empty())?;
        let read = OtlpEndpoint::parse(&text);
        Some(read.map_err(|reason| CollectorError::Variable { name, reason }))
    };
    let own = variable(signal.variable()).transpose()?;
    let is_own = own.is_some();
    let general = variable("OTEL_EXPORTER_OTLP_ENDPOINT").transpose()?;
    let written = otlp.endpoint.as_ref().map(|it| it.0.clone());
    let endpoint = own.or(general).or(written);
    let uri = match (endpoint, otlp.protocol) {
        (Some(OtlpEndpoint::Url(uri)), _) => uri,
        (_, OtlpProtocol::Grpc) => Uri::from_static("http://127.0.0.1:4317"),
        (_, OtlpProtocol::Http) => Uri::from_static("http://127.0.0.1:4318"),
    };
    let base = uri.path().trim_end_matches('/');
    let path = match otlp.protocol {
        // A gRPC call uses the path of its method. The URL's path is not added.
        OtlpProtocol::Grpc => signal.grpc_path().to_owned(),
        // The variable of this signal contains the whole URL.
        OtlpProtocol::Http
            if base.ends_with(signal.http_path()) || (is_own && !base.is_empty()) =>
        {
            return Ok(uri);
        }
        OtlpProtocol::Http => format!("{base}{}", signal.http_path()),
    };
    let mut parts = uri.into_parts();
    parts.path_and_query = path.parse().ok();
    Ok(Uri::from_parts(parts).expect("a URL with another path is one"))
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

#[cfg(test)]
mod tests {
    use gateway_config::Written;

    use super::*;

    fn of(
        endpoint: Option<&str>,
        protocol: OtlpProtocol,
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let otlp = Otlp {
            endpoint: endpoint.map(|text| Written(OtlpEndpoint::parse(text).unwrap())),
            protocol,
            ..Otlp::default()
        };
        let look = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        address(&otlp, Signal::Traces, &look)
            .map(|uri| uri.to_string())
            .map_err(|error| error.to_string())
    }

    const GRPC: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

    #[test]
    fn a_collector_is_where_the_original_looks_for_it() {
        use OtlpProtocol::{Grpc, Http};
        for (endpoint, protocol, expected) in [
            (None, Http, "http://127.0.0.1:4318/v1/traces"),
            (Some("default"), Http, "http://127.0.0.1:4318/v1/traces"),
            (Some("c:1"), Http, "http://c:1/v1/traces"),
            (Some("https://c/otlp/"), Http, "https://c/otlp/v1/traces"),
            (Some("http://c:1/v1/traces"), Http, "http://c:1/v1/traces"),
        ] {
            assert_eq!(of(endpoint, protocol, &[]).as_deref(), Ok(expected));
        }
        for (endpoint, host) in [
            (None, "http://127.0.0.1:4317"),
            (Some("default"), "http://127.0.0.1:4317"),
            (Some("https://c:1"), "https://c:1"),
        ] {
            let expected = format!("{host}{GRPC}");
            assert_eq!(of(endpoint, Grpc, &[]), Ok(expected));
        }
    }

    #[test]
    fn the_environment_wins_and_the_variable_of_the_signal_is_the_whole_url() {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://e:1");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:1/path");
        let http = OtlpProtocol::Http;
        let expected = "http://e:1/v1/traces";
        assert_eq!(of(Some("c:1"), http, &[general]).as_deref(), Ok(expected));
        let expected = "http://own:1/path";
        assert_eq!(of(None, http, &[general, own]).as_deref(), Ok(expected));
        let empty = ("OTEL_EXPORTER_OTLP_ENDPOINT", "");
        let expected = "http://c:1/v1/traces";
        assert_eq!(of(Some("c:1"), http, &[empty]).as_deref(), Ok(expected));
        let wrong = ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://e");
        let told = of(None, http, &[wrong]).unwrap_err();
        assert!(
            told.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: `ftp://e`"),
            "{told}"
        );
    }
}
