//! History of the cost of variants: one line per run and variant, in an append-only file.
//!
//! The figure is the overhead, which was paired with its baseline in one run. So runs of different days are
//! comparable, which absolute figures are not. Runs of different machines, loads, methods or orders form
//! separate series. [`stats::change_points`] finds changes of the level of a series.

mod decidable;
mod forecast;
mod series;

pub use decidable::undecidable;
pub use forecast::{Forecast, Plan};
pub use series::{Change, Series, name_of};

use std::collections::BTreeMap;

use model::{Load, Metric, Order};
use recording::{Environment, METHOD_OF_FIGURES, Recording, describe};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Interval;

use crate::confidence::CONFIDENCE;
use crate::summary::{MetricSummary, Summary, VariantSummary};

/// A line of a history: one variant of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The name of the format, which identifies a line of a history.
    pub format: Format,
    /// The name of the lab.
    pub lab: String,
    /// The name of the variant.
    pub variant: String,
    /// The name of the baseline.
    pub baseline: String,
    /// The load, such as `100 requests/s` or `8 connections`. Empty if the lab searched for the highest rate,
    /// and in lines of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub load: String,
    /// The figure that decided the verdict.
    pub metric: Metric,
    /// Variant minus baseline, in the unit of the metric. For requests per second, the ratio minus 1.
    pub overhead: Figure,
    /// Processor time per request, variant minus baseline, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<Figure>,
    /// Precision of other figures of the run, as half of the widths of their intervals. Absent in lines of
    /// older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub widths: BTreeMap<Metric, Width>,
    /// The variant's own figure, in the unit of the metric. It is comparable only within one run.
    pub value: f64,
    /// Start of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// The measured commit, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine: processor, cores and kernel.
    pub machine: String,
    /// The version of the method that measured. See [`recording::METHOD`].
    pub method: u32,
    /// The version of the method that computed the figures. See [`recording::METHOD_OF_FIGURES`]. Absent in
    /// lines of older versions, which computed by method 3 or older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_of_figures: Option<u32>,
    /// The order of the variants within a round.
    pub order: Order,
    /// Number of rounds measured.
    pub rounds: usize,
    /// Length of a round in seconds. Absent in lines of older versions, and in runs with one round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_s: Option<f64>,
    /// Path or URL of the recording.
    pub recording: String,
    /// SHA-256 of the recording, in hexadecimal. It keeps a run from being in a history twice.
    pub sha256: String,
}

/// The name of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Format {
    /// The format of a history of `weigh`.
    #[serde(rename = "weighbridge-history")]
    History,
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The estimate, in the unit of the metric.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence of the interval: 0.95, or more if several variants are compared. Absent in lines of older
    /// versions, which used 0.95 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Figure {
    /// Returns the interval. Its ends are in order, even if an edited line has them reversed.
    pub fn interval(&self) -> Interval {
        Interval {
            low: self.low.min(self.high),
            high: self.low.max(self.high),
            confidence: self.confidence.unwrap_or(CONFIDENCE),
        }
    }
}

/// The precision of a figure in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Width {
    /// Half of the width of the interval of the difference, in the unit of the metric.
    pub difference: f64,
    /// Half of the width of the interval of the ratio. Absent if a figure is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Confidence of the two intervals.
    pub confidence: f64,
}

/// Origin of the recording of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOrigin {
    /// The measured commit, if the recording does not contain it.
    pub commit: Option<String>,
    /// Path or URL of the recording.
    pub recording: String,
    /// SHA-256 of the recording, in hexadecimal.
    pub sha256: String,
}

/// Error for a file that is not a history.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: expected an entry of a history, found other text: {source}")]
pub struct ReadError {
    line: usize,
    source: serde_json::Error,
}

impl Entry {
    /// Returns an entry for each variant that was compared and has an interval. Empty for a single load, and
    /// for a recording without numbers.
    #[must_use]
    pub fn of(recording: &Recording, origin: &EntryOrigin) -> Vec<Entry> {
        let summary = Summary::of(recording);
        let compared = summary.variants.iter().filter(|row| !row.is_baseline);
        compared
            .filter_map(|row| Entry::of_row(recording, &summary, row, origin))
            .collect()
    }

    fn of_row(
        recording: &Recording,
        summary: &Summary,
        row: &VariantSummary,
        origin: &EntryOrigin,
    ) -> Option<Entry> {
        let lab = recording.lab.as_ref()?;
        let metric = summary.headline;
        let figure = row.metric(metric).filter(|_| row.has_number())?;
        let of_recording = recording
            .revisions
            .as_ref()
            .map(|it| it.head.commit.clone());
        Some(Entry {
            format: Format::History,
            lab: lab.name.clone(),
            variant: row.name.clone(),
            baseline: row.baseline.clone(),
            load: match recording.load.capacity {
                Some(_) => String::new(),
                None => load_of(&recording.load.model),
            },
            metric,
            overhead: overhead(metric, figure)?,
            cpu_us: row
                .metric(Metric::Cpu)
                .and_then(|cpu| overhead(Metric::Cpu, cpu)),
            widths: widths(row),
            value: (figure.value * 1e3).round() / 1e3,
            started_at: recording.started_at.clone(),
            commit: of_recording.or_else(|| origin.commit.clone()),
            machine: machine_of(&recording.environment),
            method: recording.method,
            method_of_figures: Some(METHOD_OF_FIGURES),
            order: recording.order_measured(),
            rounds: row.rounds,
            round_s: summary.round_s.map(|seconds| (seconds * 1e3).round() / 1e3),
            recording: origin.recording.clone(),
            sha256: origin.sha256.clone(),
        })
    }

    /// A line of the file, without its line break.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("an entry has only text and finite numbers")
    }
}

/// A load in the form of an entry: `100 requests/s`, `8 connections`.
#[must_use]
pub fn load_of(model: &Load) -> String {
    describe::amount(model)
}

/// Reads the lines of a history. Empty lines are left out.
///
/// # Errors
///
/// When a line is not an entry. The error names the first such line.
pub fn read(text: &str) -> Result<Vec<Entry>, ReadError> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|source| ReadError {
                line: index + 1,
                source,
            })
        })
        .collect()
}

/// Rounds to picoseconds and to ten-thousandths of a percent. Further digits are noise and make lines long.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The widths of the intervals of all figures that gates may limit. Figures without an interval are left out.
fn widths(row: &VariantSummary) -> BTreeMap<Metric, Width> {
    let of = |(metric, figure): (&Metric, &MetricSummary)| {
        let overhead = figure.overhead.as_ref()?;
        let difference = overhead.half_width()?;
        let of_ratio = overhead.ratio_low.zip(overhead.ratio_high);
        let width = Width {
            difference: rounded(difference),
            ratio: of_ratio.map(|(low, high)| rounded((high - low) / 2.0)),
            confidence: rounded(overhead.confidence?),
        };
        difference.is_finite().then_some((*metric, width))
    };
    let gated = |(metric, _): &(&Metric, &MetricSummary)| {
        metric.is_of_speed() || **metric == Metric::Memory
    };
    row.metrics.iter().filter(gated).filter_map(of).collect()
}

fn overhead(metric: Metric, figure: &MetricSummary) -> Option<Figure> {
    let overhead = figure.overhead.as_ref()?;
    let of = |value: f64, low: f64, high: f64| {
        let is_finite = [value, low, high].iter().all(|it| it.is_finite());
        is_finite.then(|| Figure {
            value: rounded(value),
            low: rounded(low),
            high: rounded(high),
            confidence: overhead.confidence.map(rounded),
        })
    };
    if metric == Metric::Requests {
        // This is a share, because the absolute rate depends on the machine.
        return of(
            overhead.ratio? - 1.0,
            overhead.ratio_low? - 1.0,
            overhead.ratio_high? - 1.0,
        );
    }
    of(
        overhead.difference,
        overhead.difference_low?,
        overhead.difference_high?,
    )
}

/// The name of the machine in a history. Runs of different machines have different names.
#[must_use]
pub fn machine_of(environment: &Environment) -> String {
    let cores = environment
        .cores
        .map(|cores| recording::describe::plural(cores.into(), "core"));
    let parts = [
        environment.cpu_model.clone(),
        cores,
        environment.kernel.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "an unknown machine".to_owned(),
        false => parts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    fn origin() -> EntryOrigin {
        EntryOrigin {
            commit: Some("0123".to_owned()),
            recording: "recordings/a".to_owned(),
            sha256: "ab".to_owned(),
        }
    }

    #[test]
    fn an_entry_has_the_overhead_and_is_read_again() {
        let recording = SampleRun::side_by_side()
            .variant("baseline", 680.0)
            .variant("rhai", 750.0)
            .build();
        let entries = Entry::of(&recording, &origin());
        let [entry] = entries.as_slice() else {
            panic!("one variant is compared: {entries:?}");
        };
        assert_eq!(
            (entry.variant.as_str(), entry.metric),
            ("rhai", Metric::Typical)
        );
        let Figure {
            value, low, high, ..
        } = entry.overhead;
        assert!(
            low < value && value < high && low > 40.0 && high < 90.0,
            "{entry:?}"
        );
        assert_eq!(entry.commit.as_deref(), Some("0123"));
        let text = format!("\n{}\n\n", entry.line());
        assert_eq!(read(&text).unwrap(), entries);
        let error = read("{\"format\":\"weighbridge-history\"}").unwrap_err();
        assert!(
            error.to_string().starts_with("line 1: expected an entry"),
            "{error}"
        );
    }

    #[test]
    fn a_rate_is_kept_as_a_share() {
        let recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let entries = Entry::of(&recording, &origin());
        assert_eq!(entries[0].metric, Metric::Requests);
        assert!(
            (-0.14..-0.1).contains(&entries[0].overhead.value),
            "{entries:?}"
        );
    }

    #[test]
    fn the_committed_schema_is_that_of_the_lines() {
        let schema = schemars::schema_for!(Entry).to_value();
        generated::assert_schema("history", &schema);
    }
}
