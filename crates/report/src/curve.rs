//! Curve of overhead against load, from several recordings of one lab at different loads.
//!
//! Every level is a complete recording with its own intervals. No figure is computed across levels. So a
//! level that overwhelms a variant does not affect the other levels.

pub(crate) mod text;

pub use text::{comment, csv, junit, markdown, text};

use model::Load;
use serde::Serialize;

use crate::describe;
use crate::digits;
use crate::metric::Metric;
use crate::recording::Recording;
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
    pub(crate) fn number(&self) -> String {
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
        Ok(Curve { levels })
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

    /// Unit of the amounts of load.
    pub(crate) fn kind(&self) -> &'static str {
        match self.levels[0].summary.is_open_loop {
            true => "requests/s",
            false => "connections",
        }
    }

    /// The lab's name.
    pub(crate) fn title(&self) -> &str {
        &self.levels[0].summary.title
    }

    /// The compared variants, in the order of the lab.
    pub(crate) fn variants(&self) -> Vec<&str> {
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
    pub(crate) fn points(&self, variant: &str) -> Vec<Point> {
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
                    let shown = |value: f64| metric.unit().shown(value);
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
pub(crate) struct Point {
    pub(crate) load: f64,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
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

pub(crate) fn overhead_of(row: &VariantSummary, metric: Metric) -> Option<&OverheadSummary> {
    row.metric(metric)?.overhead.as_ref()
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{Phase, Rate};

    use super::*;
    use crate::gate::Undecided;
    use crate::sample::Sample;

    /// A lab at one rate. The variant `late` takes `late_us` longer than the baseline.
    pub(crate) fn level(per_s: f64, late_us: f64) -> LoadLevel {
        let mut recording = Sample::side_by_side()
            .variant("baseline", 200.0)
            .variant("late", 200.0 + late_us)
            .build();
        if let Load::Open { phases, .. } = &mut recording.load.model {
            let duration = phases[0].duration;
            *phases = vec![Phase::constant(duration, Rate::new(per_s).unwrap())];
        }
        let gates = ["typical overhead < 100us".parse().unwrap()];
        LoadLevel {
            folder: format!("at-{per_s}-per-s"),
            summary: Summary::of(&recording).judged(&gates, Undecided::Fails),
            recording,
        }
    }

    pub(crate) fn curve() -> Curve {
        let levels = [(1_600.0, 180.0), (100.0, 30.0), (400.0, 45.0)];
        Curve::new(levels.map(|(rate, late)| level(rate, late)).to_vec()).unwrap()
    }

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

    #[test]
    fn a_variant_without_a_number_at_a_level_is_a_row_that_says_so() {
        let mut broken = level(6_400.0, 1.0);
        broken
            .recording
            .rounds
            .retain(|round| round.variant != "late");
        broken.summary = Summary::of(&broken.recording);
        let curve = Curve::new(vec![level(100.0, 30.0), level(400.0, 30.0), broken]).unwrap();
        assert_eq!(curve.points("late").len(), 2);
        let shown = text(&curve, crate::Terminal::plain(100));
        let (_, after) = shown.split_once("\n6,400 ").unwrap();
        let late = after.lines().nth(1).unwrap();
        assert!(late.contains("–") && late.contains("invalid"), "{shown}");
        assert!(
            shown.contains("- late at 6,400 requests/s: invalid: "),
            "{shown}"
        );
    }

    #[test]
    fn what_the_user_wrote_is_text_and_never_markup() {
        let evil = "<script>alert(1)</script>\"'&";
        let mut levels = vec![level(100.0, 30.0), level(400.0, 45.0)];
        for level in &mut levels {
            level.folder = format!("at-{evil}");
            level.summary.title = evil.to_owned();
            level.summary.question = Some(evil.to_owned());
            for row in &mut level.summary.variants {
                row.name = evil.to_owned();
                row.baseline = evil.to_owned();
            }
        }
        let page = crate::curve_page(&Curve::new(levels).unwrap());
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("<title>&lt;script&gt;"));
    }

    #[test]
    fn every_rendering_says_which_level_breaks_a_gate() {
        let curve = curve();
        let text = text(&curve, crate::Terminal::plain(100));
        for page in [
            text.clone(),
            markdown(&curve),
            comment(&curve),
            csv(&curve),
            junit(&curve),
            crate::curve_page(&curve),
        ] {
            for words in ["1,600 requests/s", "broken"] {
                assert!(page.contains(words), "{words}:\n{page}");
            }
        }
        assert!(comment(&curve).lines().count() <= 30);
        insta::assert_snapshot!(text);
        insta::assert_snapshot!(markdown(&curve));
    }
}
