//! Groups of comparable entries of a history, in order, and the changes of their level.

use std::collections::BTreeMap;

use model::{Metric, Unit};
use recording::digits;
use stats::change_points::{Point, segments};
use stats::width;

use super::{Entry, Figure};

/// Runs of one comparison under one load on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Entries in the order of their start. There is at least one.
    pub entries: Vec<Entry>,
    /// Changes of the level, in order.
    pub changes: Vec<Change>,
    /// The level since the last change.
    pub level: f64,
}

/// A change of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Index of the first entry with the new level.
    pub at: usize,
    /// The level before the change.
    pub before: f64,
    /// The level after the change.
    pub after: f64,
}

impl Series {
    /// All series of a history, by lab, variant, load and machine.
    #[must_use]
    pub fn all(entries: &[Entry]) -> Vec<Series> {
        let mut groups: BTreeMap<_, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            let Entry {
                lab,
                variant,
                baseline,
                load,
                machine,
                metric,
                method,
                order,
                ..
            } = entry;
            let names = (lab, variant, baseline, load, machine);
            let key = (names, *metric, *method, order.word());
            groups.entry(key).or_default().push(entry.clone());
        }
        groups.into_values().map(Series::of).collect()
    }

    fn of(mut entries: Vec<Entry>) -> Series {
        // All times have one format in UTC, so their texts have the order of the times.
        entries.sort_by(|a, b| a.started_at.cmp(&b.started_at));
        let points: Vec<Point> = entries.iter().map(point).collect();
        let found = segments(&points);
        let changes = found.windows(2).map(|pair| Change {
            at: pair[1].start,
            before: pair[0].level,
            after: pair[1].level,
        });
        let changes = changes.collect();
        let level = found.last().map_or(0.0, |segment| segment.level);
        Series {
            entries,
            changes,
            level,
        }
    }

    /// The latest entry.
    pub fn last(&self) -> &Entry {
        self.entries.last().expect("a series has an entry")
    }

    /// The title: `static-subgraph: rhai against baseline`
    pub fn title(&self) -> String {
        let Entry {
            lab,
            variant,
            baseline,
            ..
        } = self.last();
        format!("{lab}: `{variant}` against `{baseline}`")
    }

    /// The conditions: `typical latency at 100 requests/s, side by side, method 2, on AMD EPYC, 2 cores`
    pub fn about(&self) -> String {
        let Entry {
            metric,
            load,
            order,
            machine,
            method,
            ..
        } = self.last();
        let figure = match metric {
            Metric::Requests => "requests/s".to_owned(),
            latency => format!("{} latency", latency.label()),
        };
        let load = match load.as_str() {
            "" => String::new(),
            load => format!(" at {load}"),
        };
        let order = order.word().replace('-', " ");
        format!("{figure}{load}, {order}, method {method}, on {machine}")
    }

    /// A figure with its interval: `+52 us (46 to 60)`
    pub fn shown(&self, figure: Figure) -> String {
        let scale = self.scale();
        let (from, to) = digits::interval_ends(figure.low * scale, figure.high * scale);
        let half = (figure.high - figure.low) / 2.0 * scale;
        let value = digits::value((figure.value * scale).abs(), Some(half));
        format!(
            "{}{value} {} ({from} to {to})",
            sign(figure.value),
            self.unit()
        )
    }

    /// A level: `+52 us`. It has no interval, because an interval belongs to one run.
    pub fn level(&self, level: f64) -> String {
        let value = (level * self.scale()).abs();
        let shown = digits::value(value, Some(value * 0.05));
        format!("{}{shown} {}", sign(level), self.unit())
    }

    /// The unit of the shown figures.
    pub fn unit(&self) -> &'static str {
        match self.last().metric.unit() {
            Unit::Milliseconds => "us",
            _ => "%",
        }
    }

    /// Factor from the unit of the entries to the shown unit.
    pub fn scale(&self) -> f64 {
        match self.last().metric.unit() {
            Unit::Milliseconds => 1.0,
            _ => 100.0,
        }
    }

    /// Sentence that describes a change.
    pub fn sentence(&self, change: &Change) -> String {
        let first = &self.entries[change.at];
        format!(
            "since {}: {} instead of {}",
            name_of(first),
            self.level(change.after),
            self.level(change.before)
        )
    }
}

/// The revision and day of an entry: `abc123def of 2026-11-20`, or the time alone.
pub fn name_of(entry: &Entry) -> String {
    // RFC 3339 begins with ten characters of date. An entry of another origin may have another text.
    let day = entry.started_at.get(..10).unwrap_or(&entry.started_at);
    match &entry.commit {
        Some(commit) => format!("{} of {day}", commit.get(..9).unwrap_or(commit)),
        None => entry.started_at.get(..16).unwrap_or(day).replace('T', " "),
    }
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "-" } else { "+" }
}

/// The overhead of an entry with its standard error, which follows from the confidence of the interval and
/// the number of rounds.
fn point(entry: &Entry) -> Point {
    Point {
        value: entry.overhead.value,
        // An entry of another origin may have any number of rounds.
        error: width::standard_error(&entry.overhead.interval(), entry.rounds).unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::entry;

    #[test]
    fn a_change_is_named_by_its_first_commit() {
        // The entries are out of order, because several jobs may add entries.
        let mut entries: Vec<Entry> = (0..20)
            .map(|number| {
                let noise = f64::from(u32::try_from(number * 7 % 5).unwrap()) - 2.0;
                entry(number, if number < 12 { 50.0 } else { 80.0 } + noise)
            })
            .collect();
        entries.reverse();
        let [series] = Series::all(&entries).try_into().unwrap();
        assert_eq!(series.changes.len(), 1, "{:?}", series.changes);
        let sentence = series.sentence(&series.changes[0]);
        insta::assert_snapshot!(sentence, @"
        since 123456789 of 2026-11-13: +80 us instead of +50 us
        ");
        insta::assert_snapshot!(series.shown(series.last().overhead), @"
        +81 us (77 to 85)
        ");
    }

    #[test]
    fn the_error_of_a_run_follows_from_the_confidence_of_its_interval() {
        let error = |rounds: usize, confidence: Option<f64>| {
            let mut entry = entry(0, 50.0);
            entry.rounds = rounds;
            entry.overhead.confidence = confidence;
            point(&entry).error
        };
        // Half of the interval is 4. Student's t of 7 degrees of freedom is 2.365 at 95 %, and 4.029 at
        // 99.5 %.
        assert!((error(8, Some(0.95)) - 4.0 / 2.365).abs() < 1e-3);
        assert!((error(8, Some(0.995)) - 4.0 / 4.029).abs() < 1e-3);
        assert!((error(8, None) - 4.0 / 2.365).abs() < 1e-3);
        assert!(error(1, Some(0.95)).abs() < 1e-9, "one round has no spread");
    }

    #[test]
    fn machines_loads_and_methods_are_told_apart() {
        let mut entries: Vec<Entry> = (0..4).map(|number| entry(number, 50.0)).collect();
        entries[1].machine = "another".to_owned();
        entries[2].method = 1;
        entries[3].load = "400 requests/s".to_owned();
        assert_eq!(Series::all(&entries).len(), 4);
    }
}
