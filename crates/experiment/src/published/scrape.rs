//! `/metrics` for Prometheus.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::Account;
use super::families::{Family, Labels, Values, edges_ns, edges_s, seconds};
use crate::console::Console;
use crate::exit::Failure;
use crate::http_server::HttpServer;

/// The `Content-Type` of the text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The listen address of `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bind(SocketAddr);

/// Reads a port of loopback, or an address with a port.
pub fn bind(text: &str) -> Result<Bind, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(Bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
    }
    let named = text.strip_prefix("localhost:");
    let numbered = named.map(|port| format!("127.0.0.1:{port}"));
    numbered
        .as_deref()
        .unwrap_or(text)
        .parse()
        .map(Bind)
        .map_err(|_| "expected a port, such as 9464, or an address with a port, such as 127.0.0.1:9464, [::1]:9464 or 0.0.0.0:9464".to_owned())
}

/// Listens, and prints the address.
///
/// # Errors
/// When it cannot listen on the address.
pub(super) fn start(
    Bind(address): Bind,
    account: Account,
    console: Console,
) -> Result<HttpServer, Failure> {
    let answer =
        move |request: &http::Request<_>| respond(request.method(), request.uri().path(), &account);
    let server = HttpServer::start(address, "weigh-metrics", Arc::new(answer)).map_err(|error| {
        Failure::not_ready(format!(
            "--prometheus: cannot listen on {address}: {error}. Choose another port, or 0 for any free port"
        ))
    })?;
    console.say(format_args!(
        "weigh: metrics at http://{}/metrics",
        server.address
    ));
    Ok(server)
}

fn respond(method: &Method, path: &str, account: &Account) -> Response<Full<Bytes>> {
    let text = |status, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        response
    };
    if path != "/metrics" {
        return text(
            StatusCode::NOT_FOUND,
            "metrics are at /metrics\n".to_owned(),
        );
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, String::new());
        let methods = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, methods);
        return refused;
    }
    let mut metrics = text(StatusCode::OK, written(account.read().0));
    let kind = HeaderValue::from_static(OPENMETRICS);
    metrics.headers_mut().insert(CONTENT_TYPE, kind);
    metrics
}

/// The text of these metrics.
pub(super) fn written(families: Vec<Family>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scraped(families)));
    let mut text = String::with_capacity(16 * 1024);
    encode(&mut text, &registry).expect("writing to a text cannot fail");
    text
}

#[derive(Debug)]
struct Scraped(Vec<Family>);

impl Collector for Scraped {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.0 {
            let kind = match family.values {
                Values::Counters(_) => MetricType::Counter,
                Values::Gauges(_) => MetricType::Gauge,
                Values::Histograms(_) => MetricType::Histogram,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            match &family.values {
                Values::Counters(samples) => {
                    for (labels, value) in samples {
                        with_labels(&mut metric, labels, |metric| {
                            metric.encode_counter::<NoLabelSet, _, f64>(value, None)
                        })?;
                    }
                }
                Values::Gauges(samples) => {
                    for (labels, value) in samples {
                        with_labels(&mut metric, labels, |metric| metric.encode_gauge(value))?;
                    }
                }
                Values::Histograms(samples) => {
                    for (labels, durations) in samples {
                        let counts = durations.in_buckets(&edges_ns());
                        // The library's own value for the bucket without an upper bound.
                        let edges = edges_s().into_iter().chain([f64::MAX]);
                        let buckets: Vec<(f64, u64)> = edges.zip(counts).collect();
                        let (sum_s, all) = (seconds(durations.sum_ns()), durations.len());
                        with_labels(&mut metric, labels, |metric| {
                            metric.encode_histogram::<NoLabelSet>(sum_s, all, &buckets, None)
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn with_labels(
    metric: &mut MetricEncoder<'_>,
    labels: &Labels,
    sample: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() {
        return sample(metric);
    }
    // The library does not escape values, so a name with a quote could add lines.
    let escaped = labels.iter().map(|(name, value)| (*name, escaped(value)));
    let escaped: Vec<(&str, String)> = escaped.collect();
    sample(&mut metric.encode_family(&escaped)?)
}

/// Escapes a label's value for the format.
fn escaped(value: &str) -> String {
    // The backslash first. Otherwise the backslashes added below would be doubled.
    let value = value.replace('\\', "\\\\");
    value.replace('"', "\\\"").replace('\n', "\\n")
}
