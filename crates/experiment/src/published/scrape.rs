//! `/metrics` for Prometheus, on a separate thread.

use std::convert::Infallible;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

use super::Account;
use super::families::{Family, Labels, Values, edges_ns, edges_s, seconds};
use crate::console::Console;
use crate::exit::Failure;

/// The `Content-Type` of the text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum number of simultaneous scrapes. More scrapes wait.
const SCRAPES_MAX: usize = 8;

/// Time limit of one connection. A scrape needs a fraction of it.
const SCRAPE_MAX: Duration = Duration::from_secs(5);

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

/// Serves until it is dropped.
pub(super) struct Server {
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and prints the address.
    ///
    /// # Errors
    /// When it cannot listen on the address.
    pub(super) fn start(
        Bind(address): Bind,
        account: Account,
        console: Console,
    ) -> Result<Server, Failure> {
        let refused = |error: std::io::Error| {
            Failure::not_ready(format!(
                "--prometheus: cannot listen on {address}: {error}. Choose another port, or 0 for any free port"
            ))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(refused)?;
        let end = Arc::new(Notify::new());
        let ended = Arc::clone(&end);
        let work = move || {
            runtime.block_on(async {
                // This task ends with the runtime, after the notification.
                tokio::spawn(serve(listener, account));
                ended.notified().await;
            });
        };
        let thread = thread::Builder::new().name("weigh-metrics".to_owned());
        let thread = thread.spawn(work).map_err(refused)?;
        console.say(format_args!("weigh: metrics at http://{bound}/metrics"));
        Ok(Server {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The notification is stored if the thread does not wait for it yet.
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, account: Account) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let permits = Arc::new(Semaphore::new(SCRAPES_MAX));
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let account = account.clone();
                tokio::spawn(async move {
                    // No scrape needs longer, and the permit must be released.
                    let _ = tokio::time::timeout(SCRAPE_MAX, answer(stream, account)).await;
                    drop(permit);
                });
            }
            // For example, no file descriptor is left. The next attempt would also fail immediately.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(stream: TcpStream, account: Account) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = respond(request.method(), request.uri().path(), &account);
        async { Ok::<_, Infallible>(response) }
    });
    // A scraper that disconnects is not an error.
    let _ = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
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
