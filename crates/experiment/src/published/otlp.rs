//! Pushes to an OpenTelemetry collector: OTLP over HTTP, once a second, on a separate thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Uri;
use load::Request;
use model::{Protocol, Trust, Version};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use super::Account;
use super::families::{Family, Labels, Values, edges_ns, edges_s, seconds};
use crate::address;
use crate::console::Console;
use crate::environment::{now, version};

/// Interval between two pushes.
const EVERY: Duration = Duration::from_secs(1);

/// Time limit of a push. The end of a run waits for at most two pushes.
const PUSH_MAX: Duration = Duration::from_millis(900);

/// The URL of the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector(Uri);

/// Reads the URL of a collector.
pub fn collector(text: &str) -> Result<Collector, String> {
    let url = address::url(text)?;
    let authority = url.authority().ok_or("the URL has no host")?;
    if authority.as_str().contains('@') {
        return Err(
            "expected http://HOST:PORT, found a URL with a password, which would not be sent"
                .to_owned(),
        );
    }
    if url.path() != "/" {
        return Ok(Collector(url));
    }
    let whole = format!("{}/v1/metrics", address::root(&url));
    whole
        .parse()
        .map(Collector)
        .map_err(|error| format!("{error}"))
}

/// Pushes until it is dropped.
pub(super) struct Pusher {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pusher {
    pub(super) fn start(endpoint: Collector, account: Account, console: Console) -> Pusher {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let work = move || push_until(&over, &endpoint, &account, console);
        let thread = thread::Builder::new().name("weigh-otlp".to_owned());
        let thread = match thread.spawn(work) {
            Ok(thread) => Some(thread),
            Err(error) => {
                console.warn(&format!("--otlp: no metrics are pushed: {error}"));
                None
            }
        };
        Pusher { is_over, thread }
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

fn push_until(is_over: &AtomicBool, endpoint: &Collector, account: &Account, console: Console) {
    let mut was_refused = false;
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        // The resolver has no time limit. After a failure there is therefore no last push at the end of the
        // run.
        if is_last && was_refused {
            return;
        }
        let (families, started) = account.read();
        match push(endpoint, &request(&families, started, now().into())) {
            Ok(()) => was_refused = false,
            Err(reason) => {
                if !was_refused {
                    console.warn(&format!(
                        "--otlp: {} does not accept the metrics: {reason}. The run continues",
                        endpoint.0
                    ));
                }
                was_refused = true;
            }
        }
        if is_last {
            return;
        }
        thread::park_timeout(EVERY);
    }
}

fn push(Collector(url): &Collector, request: &ExportMetricsServiceRequest) -> Result<(), String> {
    let protocol = Protocol {
        version: Version::Http1,
        tls: address::is_encrypted(url).then_some(Trust::System),
        ..Protocol::default()
    };
    let target = address::target(url, None, protocol).map_err(|failure| failure.message)?;
    let request = Request {
        method: "POST".to_owned(),
        headers: vec![(
            "Content-Type".to_owned(),
            "application/x-protobuf".to_owned(),
        )],
        body: request.encode_to_vec(),
        ..Request::get(address::path(url))
    };
    let answer =
        load::exchange(&target, &request, PUSH_MAX).map_err(|failure| failure.to_string())?;
    match answer.status {
        200..=299 => Ok(()),
        status => Err(format!("it answered {status}")),
    }
}

/// The metrics as one message.
fn request(
    families: &[Family],
    started: SystemTime,
    now: SystemTime,
) -> ExportMetricsServiceRequest {
    let (started, now) = (unix_ns(started), unix_ns(now));
    let version = version().version;
    let scope = ScopeMetrics {
        scope: Some(InstrumentationScope {
            name: "weighbridge".to_owned(),
            version: version.clone(),
            ..InstrumentationScope::default()
        }),
        metrics: families
            .iter()
            .map(|it| metric_of(it, started, now))
            .collect(),
        ..ScopeMetrics::default()
    };
    let resource = vec![
        ("service.name", "weighbridge".to_owned()),
        ("service.version", version),
    ];
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: attributes(&resource),
                ..Resource::default()
            }),
            scope_metrics: vec![scope],
            ..ResourceMetrics::default()
        }],
    }
}

fn metric_of(family: &Family, started: u64, now: u64) -> Metric {
    let temporality = i32::from(AggregationTemporality::Cumulative);
    let data = match &family.values {
        Values::Counters(samples) => metric::Data::Sum(Sum {
            data_points: numbers(samples, started, now),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Values::Gauges(samples) => metric::Data::Gauge(Gauge {
            data_points: numbers(samples, started, now),
        }),
        Values::Histograms(samples) => metric::Data::Histogram(Histogram {
            data_points: samples
                .iter()
                .map(|(labels, durations)| HistogramDataPoint {
                    attributes: attributes(labels),
                    start_time_unix_nano: started,
                    time_unix_nano: now,
                    count: durations.len(),
                    sum: Some(seconds(durations.sum_ns())),
                    bucket_counts: durations.in_buckets(&edges_ns()),
                    explicit_bounds: edges_s(),
                    ..HistogramDataPoint::default()
                })
                .collect(),
            aggregation_temporality: temporality,
        }),
    };
    Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: family.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn numbers(samples: &[(Labels, f64)], started: u64, now: u64) -> Vec<NumberDataPoint> {
    let point = |(labels, value): &(Labels, f64)| NumberDataPoint {
        attributes: attributes(labels),
        start_time_unix_nano: started,
        time_unix_nano: now,
        value: Some(number_data_point::Value::AsDouble(*value)),
        ..NumberDataPoint::default()
    };
    samples.iter().map(point).collect()
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    let attribute = |(name, value): &(&'static str, String)| KeyValue {
        key: (*name).to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.clone())),
        }),
        ..KeyValue::default()
    };
    labels.iter().map(attribute).collect()
}

/// Nanoseconds since 1970. Valid until 2554.
fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
