//! Counts as values, for those who do not scrape but are sent them.

use super::Labels;

/// A metric with its samples, as it was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name, for counters without `_total`.
    pub name: String,
    /// What it counts.
    pub help: String,
    /// Its samples, all of one kind.
    pub samples: Vec<Sample>,
}

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Names with their values, which may be any text.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub number: Number,
}

/// A value of one of three kinds.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// What only grows.
    Counter(f64),
    /// What can fall.
    Gauge(f64),
    /// Cells of a histogram, added up.
    Histogram {
        /// Upper bounds, in the unit of the metric.
        bounds: Vec<f64>,
        /// The values of each bucket alone; one more than the bounds.
        counts: Vec<u64>,
        /// All values together.
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
