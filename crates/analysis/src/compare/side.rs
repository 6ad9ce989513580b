//! One side of one row, with its figures by round.

use std::collections::BTreeMap;

use model::Metric;
use recording::import::ForeignRun;
use recording::{Kind, Recording, RoundPart, digits};

use super::{Operand, OperandSource, Replies};
use crate::metric::figure;
use crate::summary::{Summary, Verdict, mean_by_round};

/// One side of one row.
pub(super) struct Side {
    pub(super) name: String,
    pub(super) is_baseline: bool,
    /// Values by round and group. Runs of other tools are numbered in their order.
    pub(super) figures: BTreeMap<Metric, BTreeMap<RoundPart, f64>>,
    /// Values of the baseline in the same result, by round and group. Empty without a baseline.
    pub(super) of_baseline: BTreeMap<Metric, BTreeMap<RoundPart, f64>>,
    /// Percentiles with too few requests per round, in this variant or its baseline.
    pub(super) sparse: Vec<Metric>,
    /// All variants of the run, if they were measured side by side. Their figures show the speed of the
    /// machine in a round.
    pub(super) others: Vec<Other>,
    /// The verdict on a side without a number.
    pub(super) no_number: Option<Verdict>,
    /// Reason why the figures are doubtful. `None` if they are not.
    pub(super) trouble: Option<String>,
    /// Failures in a file of another tool, if the file contains them.
    pub(super) replies: Option<Replies>,
    /// True if it is a file of another tool, with all requests of the file.
    pub(super) is_whole: bool,
}

/// A variant that may be on neither side.
pub(super) struct Other {
    pub(super) name: String,
    pub(super) figures: BTreeMap<Metric, BTreeMap<RoundPart, f64>>,
}

/// Names of the variants or commands that the user may select.
pub(super) fn names(operand: &Operand) -> Vec<String> {
    match &operand.source {
        OperandSource::Recording(recording) => recording
            .variants
            .iter()
            .map(|variant| variant.name.clone())
            .collect(),
        OperandSource::Runs(runs) => {
            let rows = OperandSource::rows(runs).into_iter();
            rows.map(|row| row.name.unwrap_or(&operand.label).to_owned())
                .collect()
        }
    }
}

impl Side {
    /// The side with this index in [`names`].
    pub(super) fn of(operand: &Operand, summary: Option<&Summary>, index: usize) -> Self {
        match (&operand.source, summary) {
            (OperandSource::Recording(recording), Some(summary)) => {
                Self::of_recording(recording, summary, index)
            }
            (OperandSource::Recording(recording), None) => {
                Self::of_recording(recording, &Summary::of(recording), index)
            }
            (OperandSource::Runs(runs), _) => {
                let row = OperandSource::rows(runs)[index];
                let name = row.name.unwrap_or(&operand.label).to_owned();
                Self {
                    is_whole: row.name.is_none(),
                    ..Self::of_run(row.run, name)
                }
            }
        }
    }

    fn of_recording(recording: &Recording, summary: &Summary, index: usize) -> Self {
        let row = &summary.variants[index];
        let baseline = summary.variant(&row.baseline);
        let baseline = baseline.filter(|baseline| {
            // An overhead needs a baseline with a number, and the baseline itself has no overhead.
            recording.kind == Kind::Lab && !baseline.verdict.is_invalid() && !row.is_baseline
        });
        Self {
            name: row.name.clone(),
            is_baseline: row.is_baseline,
            figures: by_unit(recording, &row.name),
            of_baseline: baseline
                .map_or_else(BTreeMap::new, |baseline| by_unit(recording, &baseline.name)),
            sparse: [Some(row), baseline]
                .into_iter()
                .flatten()
                .flat_map(|row| &row.metrics)
                .filter(|(_, figure)| figure.is_sparse)
                .map(|(metric, _)| *metric)
                .collect(),
            others: others(recording, summary),
            // Other verdicts have figures. A variant that its own run could not compare may be compared here.
            no_number: Some(row.verdict.clone()).filter(Verdict::is_invalid),
            trouble: None,
            replies: Some(Replies {
                succeeded: row.outcomes.passed,
                failed: row.outcomes.total() - row.outcomes.passed,
            }),
            is_whole: false,
        }
    }

    fn of_run(run: &ForeignRun, name: String) -> Self {
        let part = |round: u32| RoundPart { round, group: 0 };
        let numbered = |values: &Vec<f64>| (0..).map(part).zip(values.iter().copied()).collect();
        // Failures are an obstacle and not a missing number, because other tools include failed requests in
        // their figures.
        let trouble = run.failed.filter(|failed| *failed > 0).map(|failed| {
            format!(
                "{} of the requests of {name} did not succeed",
                digits::count(failed)
            )
        });
        Self {
            name,
            is_baseline: false,
            figures: run
                .figures
                .iter()
                .map(|(metric, values)| (*metric, numbered(values)))
                .collect(),
            of_baseline: BTreeMap::new(),
            sparse: Vec::new(),
            others: Vec::new(),
            no_number: None,
            trouble,
            replies: run
                .succeeded
                .zip(run.failed)
                .map(|(succeeded, failed)| Replies { succeeded, failed }),
            is_whole: false,
        }
    }

    /// The figure of each round. A baseline has several measurements in a round with several groups, and they
    /// count as one.
    pub(super) fn rounds(&self, metric: Metric) -> Option<Vec<f64>> {
        let values = self.figures.get(&metric)?;
        let pairs = values.iter().map(|(part, value)| (part.round, *value));
        Some(mean_by_round(pairs))
    }

    /// Variant minus own baseline, for the rounds with measurements of both.
    pub(super) fn overheads(&self, metric: Metric) -> Vec<f64> {
        let (Some(own), Some(base)) = (self.figures.get(&metric), self.of_baseline.get(&metric))
        else {
            return Vec::new();
        };
        let pairs = own
            .iter()
            .filter_map(|(part, value)| Some(value - base.get(part)?));
        pairs.collect()
    }
}

/// All valid variants, if they were measured side by side.
fn others(recording: &Recording, summary: &Summary) -> Vec<Other> {
    if !recording.tells_pace() {
        return Vec::new();
    }
    let believed = summary.variants.iter();
    believed
        .filter(|row| !row.verdict.is_invalid())
        .map(|row| Other {
            name: row.name.clone(),
            figures: by_unit(recording, &row.name),
        })
        .collect()
}

/// The figures of the complete measurements of a variant.
fn by_unit(recording: &Recording, name: &str) -> BTreeMap<Metric, BTreeMap<RoundPart, f64>> {
    let mut figures: BTreeMap<Metric, BTreeMap<RoundPart, f64>> = BTreeMap::new();
    for round in recording.rounds_of(name) {
        // The rounds are the same as in the summary, so interrupted and disturbed measurements do not count.
        if (round.interrupted || round.disturbed) && recording.kind == Kind::Lab {
            continue;
        }
        let latency = round.latency_ns_hdr.histogram();
        for metric in Metric::ALL {
            if let Some(value) = figure(metric, round, &latency) {
                figures
                    .entry(metric)
                    .or_default()
                    .insert(round.part(), value);
            }
        }
    }
    figures
}
