//! Converts the gateway's metrics to OTLP messages.
//!
//! The values are the same as at `/metrics`, under the names of OpenTelemetry and Apollo Router. Absent on
//! purpose: instruments that record single values on the path of each request.

use bytes::Bytes;
use gateway_config::Temporality;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use telemetry::metrics::{Family, Number, Sample};

use crate::names::{label, named};
use crate::resource::{attribute, text};
use crate::span_message::scope;

/// Metrics with the time of their reading.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) at_ns: u64,
    pub(crate) families: Vec<Family>,
}

/// The start of the counted period.
#[derive(Clone, Copy)]
pub(crate) struct Since<'a> {
    pub(crate) temporality: Temporality,
    /// Start of the process, in nanoseconds since 1970.
    pub(crate) start_ns: u64,
    /// The metrics that the collector accepted last.
    pub(crate) last: Option<&'a Taken>,
}

/// One message with all metrics.
pub(crate) fn message(resource: &Resource, now: &Taken, since: Since<'_>) -> Bytes {
    let metrics = now.families.iter().map(|family| {
        let writing = Writing { now, since, family };
        writing.metric()
    });
    let scope_metrics = ScopeMetrics {
        scope: Some(scope()),
        metrics: metrics.flatten().collect(),
        ..ScopeMetrics::default()
    };
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource.clone()),
            scope_metrics: vec![scope_metrics],
            ..ResourceMetrics::default()
        }],
    };
    request.encode_to_vec().into()
}

struct Writing<'a> {
    now: &'a Taken,
    since: Since<'a>,
    family: &'a Family,
}

impl Writing<'_> {
    /// The OTLP metric. `None` if there are no samples.
    fn metric(&self) -> Option<Metric> {
        let first = self.family.samples.first()?;
        let (name, unit) = named(&self.family.name);
        let unit = if self.family.unit.is_empty() {
            unit
        } else {
            &self.family.unit
        };
        let temporality = i32::from(match self.since.temporality {
            Temporality::Cumulative => AggregationTemporality::Cumulative,
            Temporality::Delta => AggregationTemporality::Delta,
        });
        let data = match first.number {
            Number::Counter(_) => metric::Data::Sum(Sum {
                data_points: self.numbers(),
                aggregation_temporality: temporality,
                is_monotonic: true,
            }),
            Number::Gauge(_) => metric::Data::Gauge(Gauge {
                data_points: self.numbers(),
            }),
            Number::Histogram { .. } => metric::Data::Histogram(Histogram {
                data_points: self
                    .family
                    .samples
                    .iter()
                    .filter_map(|it| self.histogram(it))
                    .collect(),
                aggregation_temporality: temporality,
            }),
        };
        Some(Metric {
            name: name.to_owned(),
            description: self.family.help.clone(),
            unit: unit.to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }

    fn numbers(&self) -> Vec<NumberDataPoint> {
        let points = self.family.samples.iter().filter_map(|sample| {
            let value = match (&sample.number, self.before(sample)) {
                (Number::Counter(now), Some(Number::Counter(before))) => now - before,
                (Number::Counter(now) | Number::Gauge(now), _) => *now,
                (Number::Histogram { .. }, _) => return None,
            };
            Some(NumberDataPoint {
                attributes: attributes(sample),
                start_time_unix_nano: self.start_ns(),
                time_unix_nano: self.now.at_ns,
                value: Some(number_data_point::Value::AsDouble(value)),
                ..NumberDataPoint::default()
            })
        });
        points.collect()
    }

    fn histogram(&self, sample: &Sample) -> Option<HistogramDataPoint> {
        let Number::Histogram {
            bounds,
            counts,
            sum,
        } = &sample.number
        else {
            return None;
        };
        let (mut counts, mut sum) = (counts.clone(), *sum);
        if let Some(Number::Histogram {
            counts: earlier,
            sum: earlier_sum,
            ..
        }) = self.before(sample)
        {
            for (count, earlier) in counts.iter_mut().zip(earlier) {
                *count = count.saturating_sub(*earlier);
            }
            sum -= earlier_sum;
        }
        Some(HistogramDataPoint {
            attributes: attributes(sample),
            start_time_unix_nano: self.start_ns(),
            time_unix_nano: self.now.at_ns,
            count: counts.iter().sum(),
            sum: Some(sum),
            bucket_counts: counts,
            explicit_bounds: bounds.clone(),
            ..HistogramDataPoint::default()
        })
    }

    fn start_ns(&self) -> u64 {
        match (self.since.temporality, self.since.last) {
            (Temporality::Delta, Some(last)) => last.at_ns,
            _ => self.since.start_ns,
        }
    }

    /// The sample that the collector accepted last, if only differences are sent.
    fn before(&self, sample: &Sample) -> Option<&Number> {
        if self.since.temporality == Temporality::Cumulative {
            return None;
        }
        let families = &self.since.last?.families;
        let family = families.iter().find(|it| it.name == self.family.name)?;
        let earlier = family
            .samples
            .iter()
            .find(|it| it.labels == sample.labels)?;
        Some(&earlier.number)
    }
}

fn attributes(sample: &Sample) -> Vec<KeyValue> {
    let labels = sample.labels.iter();
    labels
        .map(|(name, value)| attribute(label(name), text(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(at_ns: u64, requests: f64, counts: [u64; 2]) -> Taken {
        let sample = |number| Sample {
            labels: vec![("subgraph_name".to_owned(), "a".to_owned())],
            number,
        };
        let family = |name: &str, number| Family {
            name: name.to_owned(),
            help: String::new(),
            unit: String::new(),
            samples: vec![sample(number)],
        };
        Taken {
            at_ns,
            families: vec![
                family("http_client_requests", Number::Counter(requests)),
                family(
                    "http_client_request_duration_seconds",
                    Number::Histogram {
                        bounds: vec![0.1],
                        counts: counts.to_vec(),
                        sum: requests / 10.0,
                    },
                ),
                family("apollo_router_cache_size", Number::Gauge(requests)),
            ],
        }
    }

    /// The name, start of counting, value and buckets of each sample.
    fn told(now: &Taken, since: Since<'_>) -> Vec<(String, u64, f64, Vec<u64>)> {
        let message = message(&Resource::default(), now, since);
        let request = ExportMetricsServiceRequest::decode(message).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        let told = metrics.iter().map(|metric| {
            let number = |points: &[NumberDataPoint]| {
                let Some(number_data_point::Value::AsDouble(value)) = points[0].value else {
                    panic!("{points:?}");
                };
                (points[0].start_time_unix_nano, value, Vec::new())
            };
            let (start, value, counts) = match metric.data.as_ref().unwrap() {
                metric::Data::Sum(sum) => number(&sum.data_points),
                metric::Data::Gauge(gauge) => number(&gauge.data_points),
                metric::Data::Histogram(histogram) => {
                    let point = &histogram.data_points[0];
                    assert_eq!(point.count, point.bucket_counts.iter().sum::<u64>());
                    assert_eq!(point.attributes[0].key, "subgraph.name");
                    let counts = point.bucket_counts.clone();
                    (point.start_time_unix_nano, point.sum.unwrap(), counts)
                }
                other => panic!("{other:?}"),
            };
            (metric.name.clone(), start, value, counts)
        });
        told.collect()
    }

    #[test]
    fn counts_are_those_since_the_start_or_since_the_last_push() {
        let (first, second) = (taken(100, 10.0, [4, 6]), taken(200, 30.0, [4, 26]));
        let since = Since {
            temporality: Temporality::Cumulative,
            start_ns: 7,
            last: Some(&first),
        };
        let requests = |start, value| ("http.client.requests".to_owned(), start, value, Vec::new());
        let duration = |start, sum, counts: [u64; 2]| {
            let name = "http.client.request.duration".to_owned();
            (name, start, sum, counts.to_vec())
        };
        let size = |start| {
            (
                "apollo.router.cache.size".to_owned(),
                start,
                30.0,
                Vec::new(),
            )
        };
        let all = [requests(7, 30.0), duration(7, 3.0, [4, 26]), size(7)];
        assert_eq!(told(&second, since), all);
        let delta = Since {
            temporality: Temporality::Delta,
            ..since
        };
        let all = [requests(100, 20.0), duration(100, 2.0, [0, 20]), size(100)];
        assert_eq!(told(&second, delta), all);
        let none = Since {
            last: None,
            ..delta
        };
        assert_eq!(told(&second, none)[0], requests(7, 30.0));
    }
}
