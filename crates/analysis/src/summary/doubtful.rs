//! The estimate of a variant with a withheld verdict.

use std::collections::BTreeMap;

use model::Metric;
use schemars::JsonSchema;
use serde::Serialize;

use super::estimate::MetricSummary;
use super::quantity;

/// Figures that are not trusted. They are separate from trusted figures, so that no program mistakes them for
/// a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Always `false`.
    pub trusted: bool,
    /// The difference that would decide the verdict, in words: `+90 us (60 to 110)`. Absent for a baseline,
    /// and with too few rounds for an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The untrusted figures by metric.
    pub metrics: BTreeMap<Metric, MetricSummary>,
}

impl Estimate {
    pub(super) fn of(headline: Metric, metrics: BTreeMap<Metric, MetricSummary>) -> Self {
        let words = metrics.get(&headline).and_then(|figure| {
            let overhead = figure.overhead.as_ref()?;
            match headline {
                // A rate is compared by its ratio, as in the verdict.
                Metric::Requests => {
                    let change = figure.change()?;
                    overhead.ratio_low.map(|_| format!("{change} requests/s"))
                }
                _ => {
                    let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
                    Some(quantity::signed(
                        headline.unit(),
                        overhead.difference,
                        low,
                        high,
                    ))
                }
            }
        });
        Self {
            trusted: false,
            words,
            metrics,
        }
    }

    /// Remark after a withheld verdict: `~+90 us (60 to 110), not trusted`.
    pub(super) fn remark(&self) -> Option<String> {
        let words = self.words.as_ref()?;
        Some(format!("~{words}, not trusted"))
    }
}
