//! Metrics in the text format of OpenMetrics, which Prometheus and compatible programs read.
//!
//! The key idea: a service counts in plain cells, optionally one set per worker. They are read only during a
//! scrape. So counting costs one addition and no lookup by label.

mod families;
mod process;

pub use families::{Family, Number, Sample};

use std::fmt::{self, Debug};
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The labels of a sample: names and values. Values may be any text.
pub type Labels<'a> = [(&'a str, &'a str)];

/// The counters of a service.
pub trait Counts: Debug + Send + Sync + 'static {
    /// Writes every metric with its samples.
    ///
    /// # Errors
    /// The errors of the scrape.
    fn tell(&self, scrape: &mut Scrape<'_>) -> fmt::Result;
}

/// Two sets of counters that are scraped together.
impl<A: Counts, B: Counts> Counts for (Arc<A>, Arc<B>) {
    fn tell(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        self.0.tell(scrape)?;
        self.1.tell(scrape)
    }
}

/// All metrics and the current resource usage of the process, as text.
///
/// # Panics
/// Never: writing to a text cannot fail.
#[must_use]
pub fn text(counts: Arc<impl Counts>) -> String {
    // A registry for each scrape: it holds no counters, and its locks never delay requests.
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scraped(counts)));
    let mut text = String::with_capacity(4096);
    encode(&mut text, &registry).expect("writing to a text cannot fail");
    text
}

#[derive(Debug)]
struct Scraped<C>(Arc<C>);

impl<C: Counts> Collector for Scraped<C> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut scrape = Scrape(Sink::Text(encoder));
        self.0.tell(&mut scrape)?;
        process::tell(&mut scrape)
    }
}

/// All metrics and the current resource usage of the process, as values.
///
/// # Panics
/// Never: gathering values cannot fail.
#[must_use]
pub fn families(counts: &impl Counts) -> Vec<Family> {
    let mut families = Vec::new();
    let mut scrape = Scrape(Sink::Families(&mut families));
    let told = counts.tell(&mut scrape);
    let told = told.and_then(|()| process::tell(&mut scrape));
    told.expect("gathering values cannot fail");
    families
}

/// The receiver of all metrics during one scrape.
#[derive(Debug)]
pub struct Scrape<'a>(Sink<'a>);

#[derive(Debug)]
enum Sink<'a> {
    /// Writes metrics as text.
    Text(DescriptorEncoder<'a>),
    /// Collects metrics as values.
    Families(&'a mut Vec<Family>),
}

/// The buckets of a histogram, added up over all cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Buckets<'a> {
    /// Upper bounds, in the unit of the metric.
    pub bounds: &'a [f64],
    /// Number of values in each bucket, not cumulative. There is one bucket more than bounds, for values
    /// above all bounds.
    pub counts: &'a [u64],
    /// Sum of all values, in the unit of the metric.
    pub sum: f64,
}

impl Scrape<'_> {
    /// Writes a counter. The text appends `_total` to its name.
    ///
    /// # Errors
    /// The errors of the scrape.
    pub fn counters<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (&'l Labels<'l>, u64)>,
    ) -> fmt::Result {
        let Some(mut metric) = self.metric(name, help, MetricType::Counter)? else {
            self.gather(samples, |count| Number::Counter(count as f64));
            return Ok(());
        };
        for (labels, count) in samples {
            with_labels(&mut metric, labels, |metric| {
                metric.encode_counter::<NoLabelSet, _, f64>(&count, None)
            })?;
        }
        Ok(())
    }

    /// Writes a counter without labels. The text appends `_total` to its name.
    ///
    /// # Errors
    /// The errors of the scrape.
    pub fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        self.counters(name, help, [(&[][..], count)])
    }

    /// Writes a gauge, a value that can fall.
    ///
    /// # Errors
    /// The errors of the scrape.
    pub fn gauge(&mut self, name: &str, help: &str, sample: (&Labels<'_>, u64)) -> fmt::Result {
        self.gauges(name, help, [sample])
    }

    /// Writes a gauge with a sample for each set of labels.
    ///
    /// # Errors
    /// The errors of the scrape.
    pub fn gauges<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (&'l Labels<'l>, u64)>,
    ) -> fmt::Result {
        let Some(mut metric) = self.metric(name, help, MetricType::Gauge)? else {
            self.gather(samples, |value| Number::Gauge(value as f64));
            return Ok(());
        };
        for (labels, value) in samples {
            with_labels(&mut metric, labels, |metric| metric.encode_gauge(&value))?;
        }
        Ok(())
    }

    /// Writes a histogram.
    ///
    /// # Errors
    /// The errors of the scrape.
    pub fn histograms<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (&'l Labels<'l>, Buckets<'l>)>,
    ) -> fmt::Result {
        let samples = samples.into_iter().inspect(|(_, buckets)| {
            assert_eq!(
                buckets.counts.len(),
                buckets.bounds.len() + 1,
                "one bucket is beyond the last bound"
            );
        });
        let Some(mut metric) = self.metric(name, help, MetricType::Histogram)? else {
            self.gather(samples, |buckets| Number::Histogram {
                bounds: buckets.bounds.to_vec(),
                counts: buckets.counts.to_vec(),
                sum: buckets.sum,
            });
            return Ok(());
        };
        for (labels, buckets) in samples {
            with_labels(&mut metric, labels, |metric| {
                encode_histogram(metric, buckets.bounds, buckets.counts, buckets.sum)
            })?;
        }
        Ok(())
    }

    /// Writes a metric of a user with OpenTelemetry's names. The text has names that Prometheus allows, and
    /// the unit at the end of the name.
    ///
    /// # Errors
    /// The errors of the scrape.
    pub fn family(&mut self, family: &Family) -> fmt::Result {
        let text = match &mut self.0 {
            Sink::Text(text) => text,
            Sink::Families(families) => {
                families.push(family.clone());
                return Ok(());
            }
        };
        let name = families::prometheus_name(family);
        let kind = match family.samples.first().map(|it| &it.number) {
            Some(Number::Counter(_)) => MetricType::Counter,
            Some(Number::Gauge(_)) => MetricType::Gauge,
            Some(Number::Histogram { .. }) => MetricType::Histogram,
            None => return Ok(()),
        };
        let mut metric = text.encode_descriptor(&name, &family.help, None, kind)?;
        for sample in &family.samples {
            let named = families::labels(sample);
            let labels = named.iter().map(|(name, value)| (name.as_str(), *value));
            let labels: Vec<(&str, &str)> = labels.collect();
            with_labels(&mut metric, &labels, |metric| match &sample.number {
                Number::Counter(sum) => metric.encode_counter::<NoLabelSet, _, f64>(sum, None),
                Number::Gauge(value) => metric.encode_gauge(value),
                Number::Histogram {
                    bounds,
                    counts,
                    sum,
                } => encode_histogram(metric, bounds, counts, *sum),
            })?;
        }
        Ok(())
    }

    /// Writes a counter that is not a whole number.
    fn seconds(&mut self, name: &str, help: &str, seconds: f64) -> fmt::Result {
        match self.metric(name, help, MetricType::Counter)? {
            Some(mut metric) => metric.encode_counter::<NoLabelSet, _, f64>(&seconds, None),
            None => {
                self.gather([(&[][..], seconds)], Number::Counter);
                Ok(())
            }
        }
    }

    /// Begins a metric. For text, it writes the metric's head lines.
    fn metric<'s>(
        &'s mut self,
        name: &'s str,
        help: &'s str,
        kind: MetricType,
    ) -> Result<Option<MetricEncoder<'s>>, fmt::Error> {
        match &mut self.0 {
            Sink::Text(text) => text.encode_descriptor(name, help, None, kind).map(Some),
            Sink::Families(families) => {
                families.push(Family {
                    name: name.to_owned(),
                    help: help.to_owned(),
                    unit: String::new(),
                    samples: Vec::new(),
                });
                Ok(None)
            }
        }
    }

    /// Adds samples to the last metric, if values are collected.
    fn gather<'l, V>(
        &mut self,
        samples: impl IntoIterator<Item = (&'l Labels<'l>, V)>,
        number: impl Fn(V) -> Number,
    ) {
        if let Sink::Families(families) = &mut self.0
            && let Some(family) = families.last_mut()
        {
            let samples = samples.into_iter();
            let samples = samples.map(|(labels, value)| families::sample(labels, number(value)));
            family.samples.extend(samples);
        }
    }
}

fn encode_histogram(
    metric: &mut MetricEncoder<'_>,
    bounds: &[f64],
    counts: &[u64],
    sum: f64,
) -> fmt::Result {
    // The library's marker for the bucket without an upper bound.
    let bounds = bounds.iter().chain([&f64::MAX]).copied();
    let cells: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
    metric.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &cells, None)
}

fn with_labels(
    metric: &mut MetricEncoder<'_>,
    labels: &Labels<'_>,
    sample: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() {
        return sample(metric);
    }
    // The library does not escape values. A client's text in a label could otherwise add lines.
    let escaped = labels.iter().map(|(name, value)| (*name, escaped(value)));
    let escaped: Vec<(&str, String)> = escaped.collect();
    sample(&mut metric.encode_family(&escaped)?)
}

/// Escapes a label's value for the text format.
fn escaped(value: &str) -> String {
    // The backslash first, or the later backslashes would be doubled.
    let value = value.replace('\\', "\\\\");
    value.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests;
