//! Custom instruments: counters and histograms with any attributes.
//!
//! Each worker has a series of its own, so workers do not wait for each other. A scrape adds them up. The
//! number of attribute sets has a limit, because clients can choose the values.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use telemetry::metrics::{Family, Number, Sample};

/// Maximum number of attribute sets of one instrument in one worker. Further sets are counted together.
const SETS_MAX: usize = 2_000;
/// The attribute of the values beyond the limit, by OpenTelemetry's convention.
const OVERFLOW: &str = "otel.metric.overflow";

/// The attributes of a value, by their names.
pub type Labels = Vec<(Arc<str>, String)>;

/// The kind of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstrumentKind {
    /// A sum that only grows.
    Counter,
    /// The distribution of values in buckets.
    Histogram,
    /// A sum that can fall.
    Level,
}

/// The definition of an instrument.
#[derive(Clone, Debug, PartialEq)]
pub struct InstrumentHead {
    /// Name in OpenTelemetry, such as `http.server.request.duration`.
    pub name: Arc<str>,
    /// The kind of the metric.
    pub kind: InstrumentKind,
    /// The unit of the values, or an empty text.
    pub unit: String,
    /// The description of the metric.
    pub description: String,
    /// Upper bounds of the buckets. Empty for sums.
    pub bounds: Vec<f64>,
}

/// One worker's values of an instrument.
#[derive(Debug)]
pub struct Series {
    head: Arc<InstrumentHead>,
    sets: Mutex<HashMap<Labels, Cell>>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    /// One count more than bounds, for larger values. Empty for a counter.
    counts: Vec<u64>,
    sum: f64,
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.counts
            .resize(other.counts.len().max(self.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }
}

impl Series {
    /// Creates the series of a worker, without values.
    #[must_use]
    pub fn new(head: Arc<InstrumentHead>) -> Self {
        Self {
            head,
            sets: Mutex::default(),
        }
    }

    /// The definition of the instrument.
    #[must_use]
    pub fn head(&self) -> &Arc<InstrumentHead> {
        &self.head
    }

    /// Records a value. A counter ignores negative numbers, and every instrument ignores numbers that are not
    /// finite.
    pub fn record(&self, mut labels: Labels, value: f64) {
        let is_histogram = self.head.kind == InstrumentKind::Histogram;
        let is_counter = self.head.kind == InstrumentKind::Counter;
        if !value.is_finite() || (value < 0.0 && is_counter) {
            return;
        }
        // No code panics while it holds this lock.
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= SETS_MAX && !sets.contains_key(&labels) {
            labels = vec![(OVERFLOW.into(), "true".to_owned())];
        }
        let cell = sets.entry(labels).or_default();
        cell.sum += value;
        if is_histogram {
            let bounds = &self.head.bounds;
            cell.counts.resize(bounds.len() + 1, 0);
            cell.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        }
    }
}

/// A request in flight that counts in the level of an instrument until it is dropped.
#[derive(Debug)]
pub struct Held {
    series: Arc<Series>,
    labels: Labels,
}

impl Held {
    /// Adds one to the level with these attributes.
    #[must_use]
    pub fn new(series: &Arc<Series>, labels: Labels) -> Self {
        series.record(labels.clone(), 1.0);
        Self {
            series: Arc::clone(series),
            labels,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.series.record(std::mem::take(&mut self.labels), -1.0);
    }
}

/// The values of all workers as metrics, in the order of their names.
pub fn families<'a>(series: impl Iterator<Item = &'a Arc<Series>>) -> Vec<Family> {
    type Sets = BTreeMap<Labels, Cell>;
    let mut all: BTreeMap<&str, (&InstrumentHead, Sets)> = BTreeMap::new();
    for series in series {
        let head = &series.head;
        let (_, sets) = all.entry(&head.name).or_insert((head, Sets::new()));
        let own = series.sets.lock().unwrap_or_else(PoisonError::into_inner);
        for (labels, cell) in own.iter() {
            sets.entry(labels.clone()).or_default().add(cell);
        }
    }
    let families = all.into_iter().map(|(name, (head, sets))| Family {
        name: name.to_owned(),
        help: head.description.clone(),
        unit: head.unit.clone(),
        samples: sets.into_iter().map(|set| sample(head, set)).collect(),
    });
    families
        .filter(|family| !family.samples.is_empty())
        .collect()
}

fn sample(head: &InstrumentHead, set: (Labels, Cell)) -> Sample {
    let (labels, cell) = set;
    let labels = labels.into_iter();
    Sample {
        labels: labels
            .map(|(name, value)| (name.to_string(), value))
            .collect(),
        number: match head.kind {
            InstrumentKind::Counter => Number::Counter(cell.sum),
            InstrumentKind::Level => Number::Gauge(cell.sum),
            InstrumentKind::Histogram => Number::Histogram {
                bounds: head.bounds.clone(),
                counts: cell.counts,
                sum: cell.sum,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(kind: InstrumentKind) -> Arc<Series> {
        Arc::new(Series::new(Arc::new(InstrumentHead {
            name: "acme.size".into(),
            kind,
            unit: "By".to_owned(),
            description: "Sizes".to_owned(),
            bounds: match kind {
                InstrumentKind::Counter | InstrumentKind::Level => Vec::new(),
                InstrumentKind::Histogram => vec![1.0, 10.0],
            },
        })))
    }

    fn labels(value: &str) -> Labels {
        vec![("a.b".into(), value.to_owned())]
    }

    #[test]
    fn the_values_of_all_workers_are_added_up() {
        let workers = [
            series(InstrumentKind::Histogram),
            series(InstrumentKind::Histogram),
        ];
        for (worker, value) in [(0, 1.0), (0, 5.0), (1, 50.0), (1, f64::NAN)] {
            workers[worker].record(labels("x"), value);
        }
        workers[1].record(labels("y"), -1.0);
        let families = families(workers.iter());
        assert_eq!(families.len(), 1);
        let of = |at: usize| {
            let sample: &Sample = &families[0].samples[at];
            let Number::Histogram { counts, sum, .. } = &sample.number else {
                panic!("{sample:?}");
            };
            (sample.labels[0].1.clone(), counts.clone(), *sum)
        };
        assert_eq!(of(0), ("x".to_owned(), vec![1, 1, 1], 56.0));
        assert_eq!(of(1), ("y".to_owned(), vec![1, 0, 0], -1.0));
    }

    #[test]
    fn a_level_counts_what_is_held() {
        let level = series(InstrumentKind::Level);
        let one = Held::new(&level, labels("x"));
        let other = Held::new(&level, labels("x"));
        drop(one);
        let of = || families([&level].into_iter())[0].samples[0].number.clone();
        assert_eq!(of(), Number::Gauge(1.0));
        drop(other);
        assert_eq!(of(), Number::Gauge(0.0));
    }

    #[test]
    fn a_counter_never_falls_and_has_a_bounded_number_of_sets() {
        let counter = series(InstrumentKind::Counter);
        for number in 0..SETS_MAX + 5 {
            counter.record(labels(&number.to_string()), 2.0);
        }
        counter.record(labels("0"), -1.0);
        counter.record(labels("0"), 1.0);
        let families = families([&counter].into_iter());
        assert_eq!(families[0].samples.len(), SETS_MAX + 1);
        let of = |value: &str| {
            let samples = families[0].samples.iter();
            let mut found = samples.filter(|it| it.labels[0].1 == value);
            found.next().unwrap().number.clone()
        };
        assert_eq!(of("0"), Number::Counter(3.0));
        assert_eq!(of("true"), Number::Counter(10.0));
    }
}
