//! Metrics as values, for receivers of pushed metrics.

use super::Labels;

/// A metric with its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name of the metric. Counters have no `_total`.
    pub name: String,
    /// Description of the metric.
    pub help: String,
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
