//! Metrics as values, for receivers of pushed metrics.

use super::Labels;

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name of the metric. Counters have no `_total`.
    pub name: String,
    /// Description of the metric.
    pub help: String,
    /// Unit of the values. Empty if the name contains it.
    pub unit: String,
    /// Samples of the metric, all of one kind.
    pub samples: Vec<Sample>,
}

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names and values. Values may be any text.
    pub labels: Vec<(String, String)>,
    /// The value of the sample.
    pub number: Number,
}

/// A value of one of three kinds.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A value that only grows.
    Counter(f64),
    /// A value that can fall.
    Gauge(f64),
    /// The buckets of a histogram, added up over all cells.
    Histogram {
        /// Upper bounds, in the unit of the metric.
        bounds: Vec<f64>,
        /// Number of values in each bucket, not cumulative. One more than the bounds.
        counts: Vec<u64>,
        /// Sum of all values.
        sum: f64,
    },
}

pub(super) fn sample(labels: &Labels<'_>, number: Number) -> Sample {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Sample {
        labels: labels.iter().map(owned).collect(),
        number,
    }
}

/// The name of a metric in Prometheus: without dots, and with its unit at the end.
pub(super) fn prometheus_name(family: &Family) -> String {
    let mut name = label_name(&family.name);
    let unit = match family.unit.as_str() {
        "s" => "seconds",
        "ms" => "milliseconds",
        "us" => "microseconds",
        "ns" => "nanoseconds",
        "By" => "bytes",
        "KiBy" => "kibibytes",
        "MiBy" => "mebibytes",
        "%" => "percent",
        // Other units are annotations.
        _ => return name,
    };
    if !name.ends_with(unit) {
        name.push('_');
        name.push_str(unit);
    }
    name
}

/// The labels of a sample in Prometheus. Of several names that become equal, the first one counts.
pub(super) fn labels(sample: &Sample) -> Vec<(String, &str)> {
    let mut labels: Vec<(String, &str)> = Vec::new();
    for (name, value) in &sample.labels {
        let name = label_name(name);
        if !labels.iter().any(|(known, _)| *known == name) {
            labels.push((name, value));
        }
    }
    labels
}

/// A name with underscores in place of characters that Prometheus does not allow.
pub(super) fn label_name(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let shown: String = name
        .chars()
        .map(|letter| if allowed(letter) { letter } else { '_' })
        .collect();
    if shown.starts_with(|first: char| first.is_ascii_digit()) || shown.is_empty() {
        return format!("_{shown}");
    }
    shown
}
