//! An OpenTelemetry collector over HTTP and gRPC that records all messages. On request of a test, it
//! misbehaves.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// Maximum time that a test waits for messages.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Behavior of a collector toward its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Accepts and records every message.
    Good,
    /// Accepts connections and never responds.
    Silent,
    /// Responds with this status and an invalid body.
    Rubbish(u16),
    /// Responds over gRPC with this gRPC status.
    Grpc(&'static str),
}

/// The data that a collector received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Got {
    pub(crate) spans: Vec<Span>,
    /// The metrics of each push.
    pub(crate) metrics: Vec<Vec<Metric>>,
    /// The attributes of the last resource.
    pub(crate) resource: Vec<KeyValue>,
    /// Path and headers of each message.
    pub(crate) heads: Vec<(String, HeaderMap)>,
    /// The messages in other formats than OTLP.
    pub(crate) others: Vec<Bytes>,
}

/// A collector on a free port. It runs until the end of the test.
pub(crate) struct Collector {
    /// The address as `host:port`.
    pub(crate) address: String,
    state: Arc<State>,
}

struct State {
    got: Mutex<Got>,
    arrived: Condvar,
    manner: Mutex<Manner>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::with(Manner::Good)
    }

    pub(crate) fn with(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            got: Mutex::default(),
            arrived: Condvar::new(),
            manner: Mutex::new(manner),
        });
        let served = Arc::clone(&state);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve(listener, served));
        });
        Self { address, state }
    }

    pub(crate) fn set(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    /// Waits until the received data meets a condition.
    pub(crate) fn wait(&self, is_it: impl Fn(&Got) -> bool) -> Got {
        let got = self.state.got.lock().unwrap();
        let waited = self
            .state
            .arrived
            .wait_timeout_while(got, WAIT_MAX, |got| !is_it(got));
        let (got, time) = waited.unwrap();
        assert!(!time.timed_out(), "{:#?}", *got);
        got.clone()
    }

    /// Waits for at least `count` spans.
    pub(crate) fn spans(&self, count: usize) -> Vec<Span> {
        self.wait(|got| got.spans.len() >= count).spans
    }

    /// The data received until now.
    pub(crate) fn got(&self) -> Got {
        self.state.got.lock().unwrap().clone()
    }

    /// A configuration that sends traces to this collector over a protocol.
    pub(crate) fn config(&self, protocol: &str, common: &str) -> String {
        let address = &self.address;
        format!(
            "telemetry: {{exporters: {{tracing: {{common: {{{common}}}, otlp: {{enabled: true, endpoint: '{address}', protocol: {protocol}, batch_processor: {{scheduled_delay: 50ms}}}}}}}}}}\n"
        )
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| answer(Arc::clone(&state), request));
        tokio::spawn(async move {
            let builder = auto::Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // An error at the end of a connection does not matter.
            let _ = connection.await;
        });
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|it| it.to_bytes());
    let manner = *state.manner.lock().unwrap();
    let path = parts.uri.path().to_owned();
    let is_grpc = path.starts_with("/opentelemetry.");
    match manner {
        Manner::Silent => return std::future::pending().await,
        Manner::Rubbish(status) => {
            let mut response = Response::new(Full::from(&b"\xff\xff<html>"[..]).boxed());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            return Ok(response);
        }
        Manner::Grpc(status) => return Ok(grpc(status)),
        Manner::Good => {}
    }
    let Ok(body) = body else {
        return Ok(grpc("13"));
    };
    // A gRPC message starts with five bytes: a flag for no compression, and the length.
    let message = if is_grpc { body.slice(5..) } else { body };
    let mut got = state.got.lock().unwrap();
    got.heads.push((path.clone(), parts.headers));
    if path == "/api/v2/spans" || path == "/v0.4/traces" {
        got.others.push(message);
        state.arrived.notify_all();
        return Ok(Response::new(Full::default().boxed()));
    }
    if path.contains("race") {
        let request = ExportTraceServiceRequest::decode(message).expect("a message of traces");
        for of in request.resource_spans {
            got.resource = of.resource.unwrap_or_default().attributes;
            for scope in of.scope_spans {
                got.spans.extend(scope.spans);
            }
        }
    } else {
        let request = ExportMetricsServiceRequest::decode(message).expect("a message of metrics");
        let mut metrics = Vec::new();
        for of in request.resource_metrics {
            got.resource = of.resource.unwrap_or_default().attributes;
            metrics.extend(of.scope_metrics.into_iter().flat_map(|it| it.metrics));
        }
        got.metrics.push(metrics);
    }
    drop(got);
    state.arrived.notify_all();
    Ok(if is_grpc {
        grpc("0")
    } else {
        Response::new(Full::default().boxed())
    })
}

/// A gRPC response: an empty message, followed by the status.
fn grpc(status: &'static str) -> Answer {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers.insert("grpc-message", HeaderValue::from_static("because"));
    let body = Full::from(&b"\0\0\0\0\0"[..]);
    let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(body.boxed());
    let media = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", media);
    response
}

/// The value of an attribute as text.
pub(crate) fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|it| it.key == name)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => text.clone(),
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::BoolValue(value) => value.to_string(),
        any_value::Value::DoubleValue(value) => value.to_string(),
        other => format!("{other:?}"),
    })
}

/// The sum of all points of a metric. Histograms add their counts, other metrics their values.
pub(crate) fn sum(metrics: &[Metric], name: &str) -> Option<f64> {
    let found = metrics.iter().find(|it| it.name == name)?;
    let numbers = |points: &[opentelemetry_proto::tonic::metrics::v1::NumberDataPoint]| {
        let values = points.iter().map(|point| match point.value {
            Some(number_data_point::Value::AsDouble(value)) => value,
            Some(number_data_point::Value::AsInt(value)) => value as f64,
            None => 0.0,
        });
        values.sum()
    };
    Some(match found.data.as_ref()? {
        metric::Data::Sum(sum) => numbers(&sum.data_points),
        metric::Data::Gauge(gauge) => numbers(&gauge.data_points),
        metric::Data::Histogram(histogram) => {
            let counts = histogram.data_points.iter().map(|point| point.count as f64);
            counts.sum()
        }
        other => panic!("{other:?}"),
    })
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
