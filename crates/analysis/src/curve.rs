//! Curve of overhead against load, from several recordings of one lab at different loads.
//!
//! Every level is a complete recording with its own intervals. No figure is computed across levels. So a
//! level that overwhelms a variant does not affect the other levels.

use model::{Load, Metric, Unit};
use recording::{Recording, describe, digits};
use serde::Serialize;

use crate::summary::{OverheadSummary, Summary, VariantSummary};

/// A lab at several loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    levels: Vec<LoadLevel>,
}

/// A lab at one load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadLevel {
    /// The folder of the level's recording, relative to the folder of the curve.
    pub folder: String,
    /// The recording of the level.
    pub recording: Recording,
    /// Summary of the recording, with the gates judged.
    pub summary: Summary,
}

/// Reason why recordings do not form a curve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// The list of recordings is empty.
    #[error("expected the recordings of a sweep, found none")]
    Empty,
    /// One recording is of another lab, or of another kind of load.
    #[error("expected levels of one sweep, found {what} in `{folder}`")]
    Unlike {
        /// Folder of the differing recording.
        folder: String,
        /// Property that differs.
        what: &'static str,
    },
}

impl LoadLevel {
    /// Amount of the load: requests per second of an open loop (its first phase), or connections.
    #[must_use]
    pub fn amount(&self) -> f64 {
        match &self.recording.load.model {
            Load::Closed { connections, .. } => f64::from(*connections),
            Load::Open { phases, .. } => phases.first().map_or(0.0, |it| it.from.per_second()),
        }
    }

    /// The amount as the report shows it: `100`, `1,600`.
    #[must_use]
    pub fn number(&self) -> String {
        digits::planned(self.amount())
    }

    /// The amount with its unit: `100 requests/s`, `8 connections`.
    #[must_use]
    pub fn load(&self) -> String {
        describe::amount(&self.recording.load.model)
    }
}

impl Curve {
    /// Makes a curve from the recordings of a sweep, in any order.
    ///
    /// # Errors
    ///
    /// When the list is empty, or the recordings are not of one lab and one kind of load.
    pub fn new(mut levels: Vec<LoadLevel>) -> Result<Curve, CurveError> {
        let Some(first) = levels.first() else {
            return Err(CurveError::Empty);
        };
        let likeness = |one: &LoadLevel, other: &LoadLevel| {
            let alike = [
                (one.summary.title == other.summary.title, "another lab"),
                (
                    one.summary.headline == other.summary.headline,
                    "another kind of load",
                ),
                (
                    one.recording.method == other.recording.method,
                    "another method",
                ),
            ];
            alike.into_iter().find(|(is_alike, _)| !is_alike)
        };
        for other in &levels {
            if let Some((_, what)) = likeness(first, other) {
                let folder = other.folder.clone();
                return Err(CurveError::Unlike { folder, what });
            }
        }
        levels.sort_by(|one, other| one.amount().total_cmp(&other.amount()));
        // One slow level makes all levels be shown in its unit, because a reader compares them.
        let is_slow = |level: &LoadLevel| level.summary.unit(Metric::P50) == Unit::Milliseconds;
        if levels.iter().any(is_slow) {
            for level in &mut levels {
                level.summary.show_times_in(Unit::Milliseconds);
            }
        }
        Ok(Curve { levels })
    }

    /// The unit of a metric in the reports of this curve.
    #[must_use]
    pub fn unit(&self, metric: Metric) -> Unit {
        self.levels[0].summary.unit(metric)
    }

    /// The levels in ascending order of load.
    #[must_use]
    pub fn levels(&self) -> &[LoadLevel] {
        &self.levels
    }

    /// The metric of the curve, which decides each verdict.
    #[must_use]
    pub fn metric(&self) -> Metric {
        self.levels[0].summary.headline
    }

    /// The metric of single events, if the streams of any variant have one: the delivery if the origin stamps its
    /// events, or else the time to the first event. The time of a whole stream depends on its plan.
    #[must_use]
    pub fn metric_of_events(&self) -> Option<Metric> {
        let has = |metric: &Metric| {
            let summaries = self.levels.iter().map(|level| &level.summary);
            let mut rows = summaries.flat_map(|summary| &summary.variants);
            rows.any(|row| row.metric(*metric).is_some())
        };
        [Metric::Delivery, Metric::FirstEvent].into_iter().find(has)
    }

    /// Unit of the amounts of load.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.levels[0].summary.is_open_loop {
            true => "requests/s",
            false => "connections",
        }
    }

    /// The lab's name.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.levels[0].summary.title
    }

    /// The compared variants, in the order of the lab.
    #[must_use]
    pub fn variants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for level in &self.levels {
            for row in level.summary.variants.iter().filter(|row| !row.is_baseline) {
                if !names.contains(&row.name.as_str()) {
                    names.push(&row.name);
                }
            }
        }
        names
    }

    /// A variant's overhead at each level that has an interval: the load, the estimate and its ends, in the
    /// shown unit. For requests per second, it is the change in percent.
    #[must_use]
    pub fn points(&self, variant: &str) -> Vec<Point> {
        let metric = self.metric();
        let point = |level: &LoadLevel| {
            let row = level.summary.variant(variant)?;
            let overhead = overhead_of(row, metric)?;
            let (value, low, high) = match metric {
                Metric::Requests => {
                    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
                    (
                        percent(overhead.ratio?),
                        percent(overhead.ratio_low?),
                        percent(overhead.ratio_high?),
                    )
                }
                metric => {
                    let shown = |value: f64| self.unit(metric).shown(value);
                    (
                        shown(overhead.difference),
                        shown(overhead.difference_low?),
                        shown(overhead.difference_high?),
                    )
                }
            };
            Some(Point {
                load: level.amount(),
                value,
                low,
                high,
            })
        };
        self.levels.iter().filter_map(point).collect()
    }

    /// The curve as JSON: each level with its load, the folder of its recording and its summary.
    #[must_use]
    pub fn json(&self) -> String {
        let levels = self.levels.iter().map(|level| LevelText {
            load: level.load(),
            amount: level.amount(),
            folder: &level.folder,
            summary: &level.summary,
        });
        let text = CurveText {
            format: "weighbridge-curve",
            lab: self.title(),
            metric: self.metric(),
            levels: levels.collect(),
        };
        serde_json::to_string_pretty(&text).expect("text and finite numbers") + "\n"
    }
}

/// One point of a variant's curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Amount of the load.
    pub load: f64,
    /// The estimate of the overhead.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A curve in the form of its JSON.
#[derive(Serialize)]
struct CurveText<'a> {
    format: &'static str,
    lab: &'a str,
    metric: Metric,
    levels: Vec<LevelText<'a>>,
}

#[derive(Serialize)]
struct LevelText<'a> {
    load: String,
    amount: f64,
    folder: &'a str,
    summary: &'a Summary,
}

/// The overhead of a variant in a metric. `None` if the variant has no such difference.
#[must_use]
pub fn overhead_of(row: &VariantSummary, metric: Metric) -> Option<&OverheadSummary> {
    row.metric(metric)?.overhead.as_ref()
}

#[cfg(test)]
mod tests {

    use super::*;

    use crate::sample::{curve, level};

    #[test]
    fn levels_are_in_order_of_load_and_each_has_its_own_interval() {
        let curve = curve();
        let loads: Vec<String> = curve.levels().iter().map(LoadLevel::load).collect();
        assert_eq!(
            loads,
            ["100 requests/s", "400 requests/s", "1,600 requests/s"]
        );
        let points = curve.points("late");
        assert_eq!(points.len(), 3);
        assert!(
            points
                .iter()
                .all(|it| it.low < it.value && it.value < it.high)
        );
        assert!(points[2].value > 3.0 * points[0].value);
        let json: serde_json::Value = serde_json::from_str(&curve.json()).unwrap();
        assert_eq!(json["levels"][2]["amount"], 1600.0);
        assert_eq!(json["levels"][2]["folder"], "at-1600-per-s");
        assert_eq!(json["levels"][0]["summary"]["variants"][1]["name"], "late");
    }

    #[test]
    fn recordings_of_two_labs_are_no_curve() {
        assert_eq!(Curve::new(Vec::new()), Err(CurveError::Empty));
        let mut other = level(400.0, 1.0);
        other.summary.title = "another".to_owned();
        let found = Curve::new(vec![level(100.0, 1.0), other]);
        let error = found.unwrap_err().to_string();
        assert!(
            error.contains("found another lab in `at-400-per-s`"),
            "{error}"
        );
    }
}
