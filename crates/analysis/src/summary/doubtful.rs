//! The estimate of a variant with a withheld verdict.

use std::collections::BTreeMap;

use model::Metric;
use serde::Serialize;

use super::estimate::MetricSummary;

/// Figures that are not trusted. They are separate from trusted figures, so that no program mistakes them for
/// a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Always `false`.
    pub trusted: bool,
    /// The metric that would decide the verdict.
    pub headline: Metric,
    /// The untrusted figures by metric.
    pub metrics: BTreeMap<Metric, MetricSummary>,
}

impl Estimate {
    pub(super) fn of(headline: Metric, metrics: BTreeMap<Metric, MetricSummary>) -> Self {
        Self {
            trusted: false,
            headline,
            metrics,
        }
    }
}
