//! Ladder of a lab: the cost of each step from one variant to the next.

use std::collections::BTreeMap;

use model::Metric;
use recording::Recording;
use serde::Serialize;

use super::estimate::MetricSummary;
use super::row::{Frame, Row};
use crate::confidence::{self, Looks};

/// The cost of each step between variants that build on each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LadderSummary {
    /// Each step, in the order of the lab.
    pub steps: Vec<LadderStep>,
    /// From the first variant to the last, compared directly. Absent for a single step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<LadderStep>,
}

/// A step from one variant to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LadderStep {
    /// Name of the variant before the step.
    pub from: String,
    /// Name of the variant after the step.
    pub to: String,
    /// Figures of the variant after the step, with the difference from the variant before it. In each metric,
    /// the intervals of all steps and of the whole hold together with 95 %. Empty if one of the two variants
    /// has no trusted number.
    pub metrics: BTreeMap<Metric, MetricSummary>,
}

/// Returns the ladder of a recording. `None` if its lab has none.
pub(super) fn of(
    recording: &Recording,
    rows: &[Row<'_>],
    frame: &Frame<'_>,
) -> Option<LadderSummary> {
    let names = &recording.lab.as_ref()?.ladder;
    let mut pairs: Vec<(&String, &String)> = names.iter().zip(names.iter().skip(1)).collect();
    let is_single = pairs.len() == 1;
    pairs.push((names.first()?, names.last()?));
    let trusted = |name: &String| {
        let row = rows.iter().find(|row| row.variant.name == *name);
        row.filter(|row| row.invalid.is_none())
    };
    let looks = Looks::of(recording);
    let metrics = [frame.headline, Metric::Mean, Metric::Cpu, Metric::Memory];
    // The direct comparison of the ends counts, too.
    let each = |metric: Metric| {
        let both = pairs
            .iter()
            .filter_map(|(from, to)| trusted(from).zip(trusted(to)));
        let differences = both.map(|(from, to)| {
            let against = to.against(from, frame);
            to.figures.differences(&against, metric)
        });
        confidence::each_of(looks, &differences.collect::<Vec<_>>())
    };
    let confidences: BTreeMap<Metric, f64> = metrics.map(|it| (it, each(it))).into();
    let step = |(from, to): &(&String, &String)| {
        let both = trusted(from).zip(trusted(to));
        let figures = both.map(|(before, after)| {
            let against = after.against(before, frame);
            let confidence = |metric: Metric| confidences.get(&metric).copied();
            let mut figures = after.figures.metrics(Some(&against), |metric| {
                confidence(metric).unwrap_or(confidence::CONFIDENCE)
            });
            figures.retain(|metric, _| confidences.contains_key(metric));
            figures
        });
        LadderStep {
            from: (*from).clone(),
            to: (*to).clone(),
            metrics: figures.unwrap_or_default(),
        }
    };
    let mut steps: Vec<LadderStep> = pairs.iter().map(step).collect();
    let whole = steps.pop().filter(|_| !is_single);
    Some(LadderSummary { steps, whole })
}
