//! Meaning of a verdict. It holds the facts of one sentence: the size of the difference, or the smallest
//! difference that the run would have shown. A difference that the headline metric does not show is an aside.

use std::collections::BTreeMap;

use model::{Metric, Unit};
use recording::float;
use serde::Serialize;

use super::estimate::{ClaimName, MetricSummary, OverheadSummary};
use super::few::{self, FewPay};
use super::quantity::{amount, with_ends};

/// Meaning of the verdict on a variant that was compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meaning {
    /// The other side of the comparison.
    pub against: Reference,
    /// The metric that decides the verdict.
    pub headline: Metric,
    /// The other side's value of this metric.
    pub of_baseline: f64,
    /// The size of the difference, or the size that would have been visible.
    pub size: SizeShown,
    /// A difference that the headline metric does not show. Absent if there is none.
    pub aside: Option<Aside>,
    /// The unit of the latencies of the report.
    #[serde(skip)]
    pub times: Unit,
}

/// The other side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The baseline of the variant.
    Baseline,
    /// Another variant of the same run, by its name.
    Variant(String),
    /// A result of another run.
    OtherResult,
}

/// The size of the difference in the headline metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeShown {
    /// A difference was shown.
    Shown(Extent),
    /// No difference was shown.
    NotShown {
        /// The smallest difference that four of five runs like this one would show, in the metric's unit.
        detectable: f64,
        /// Number of rounds after which half of it would be shown. Absent if it is unknown.
        rounds_for_half: Option<usize>,
        /// Duration of these rounds in seconds. Absent if the length of a round is unknown.
        half_takes_s: Option<f64>,
    },
}

/// A difference with the ends of its interval, in the unit of the metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// The metric.
    pub metric: Metric,
    /// True if the variant's values are higher.
    pub is_higher: bool,
    /// The difference.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

/// A difference that the headline metric does not show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aside {
    /// The mean latency disagrees with the headline metric.
    Mean {
        /// The difference of the mean.
        mean: Extent,
        /// The cost that only few requests pay. Absent if it is too small.
        few: Option<FewPay>,
        /// The difference for the slowest quarter of the requests. Absent if no difference was shown.
        slow_quarter: Option<Extent>,
    },
    /// The processor time of a request rises, and its latency does not.
    ProcessorTime(Extent),
}

/// A variant and its baseline.
pub(crate) struct Compared<'a> {
    pub(crate) against: Reference,
    /// The metric that decides the verdict.
    pub(crate) headline: Metric,
    pub(crate) metrics: &'a BTreeMap<Metric, MetricSummary>,
    /// The baseline's value of the headline metric.
    pub(crate) of_baseline: f64,
    /// Cost that only few requests pay.
    pub(crate) few: Option<&'a FewPay>,
    /// Length of a round in seconds. `None` if it is unknown.
    pub(crate) round_s: Option<f64>,
}

impl Meaning {
    /// The meaning of a comparison. `None` if there are too few rounds for an interval.
    pub(crate) fn of(compared: Compared<'_>) -> Option<Self> {
        let overhead = overhead_of(&compared, compared.headline)?;
        let size = match overhead.claim {
            ClaimName::Higher | ClaimName::Lower => {
                SizeShown::Shown(Extent::of(compared.headline, overhead)?)
            }
            ClaimName::NoDifferenceShown => would_have_shown(&compared, overhead)?,
            ClaimName::TooFewRounds => return None,
        };
        let aside = mean_otherwise(&compared).or_else(|| processor_time_otherwise(&compared));
        Some(Self {
            against: compared.against,
            headline: compared.headline,
            of_baseline: compared.of_baseline,
            size,
            aside,
            times: Unit::of_times(compared.of_baseline),
        })
    }
}

impl Extent {
    /// The extent of an overhead. `None` with too few rounds.
    pub(crate) fn of(metric: Metric, overhead: &OverheadSummary) -> Option<Self> {
        let (low, high) = overhead.difference_low.zip(overhead.difference_high)?;
        Some(Self {
            metric,
            is_higher: overhead.claim == ClaimName::Higher,
            value: overhead.difference,
            low,
            high,
        })
    }
}

fn overhead_of<'a>(compared: &Compared<'a>, metric: Metric) -> Option<&'a OverheadSummary> {
    compared.metrics.get(&metric)?.overhead.as_ref()
}

impl OverheadSummary {
    /// The size of the overhead without its sign: `80 us (75 to 88)`. `None` with too few rounds.
    pub fn in_words(&self, unit: Unit) -> Option<String> {
        let (low, high) = self.difference_low.zip(self.difference_high)?;
        Some(with_ends(unit, self.difference, low, high))
    }

    /// The smallest difference that four of five runs like this one would show: `7.0 us`.
    pub fn detectable_in_words(&self, unit: Unit) -> Option<String> {
        Some(amount(unit, self.detectable?))
    }
}

/// The smallest visible difference, and the rounds for half of it.
fn would_have_shown(compared: &Compared<'_>, overhead: &OverheadSummary) -> Option<SizeShown> {
    let rounds_for_half = overhead.rounds_for_half;
    Some(SizeShown::NotShown {
        detectable: overhead.detectable?,
        rounds_for_half,
        half_takes_s: rounds_for_half
            .zip(compared.round_s)
            .map(|(rounds, one)| one * float(rounds as u64)),
    })
}

/// The difference of the mean if it disagrees, and the requests that pay it.
fn mean_otherwise(compared: &Compared<'_>) -> Option<Aside> {
    let (_, mean) = few::disagreeing(compared.headline, compared.metrics)?;
    Some(Aside::Mean {
        mean: Extent::of(Metric::Mean, mean)?,
        few: compared.few.cloned(),
        slow_quarter: slow_quarter(compared),
    })
}

/// The cost for the slowest quarter. `None` if it shows no difference.
fn slow_quarter(compared: &Compared<'_>) -> Option<Extent> {
    let overhead = overhead_of(compared, Metric::SlowQuarter)?;
    let is_shown = matches!(overhead.claim, ClaimName::Higher | ClaimName::Lower);
    Extent::of(Metric::SlowQuarter, overhead).filter(|_| is_shown)
}

/// The difference in processor time if neither the typical latency nor the mean shows it. It is a mean over all
/// requests, and steadier than the mean latency.
fn processor_time_otherwise(compared: &Compared<'_>) -> Option<Aside> {
    let (typical, processor) = (
        overhead_of(compared, compared.headline)?,
        overhead_of(compared, Metric::Cpu)?,
    );
    // A request may take less time than processors work for it. The sentence mentions only a much higher
    // processor time.
    let is_more = processor.difference_low? > 1.5 * typical.difference_high?.max(0.0);
    let is_told = compared.headline == Metric::Typical
        && compared.few.is_none()
        && processor.claim == ClaimName::Higher
        && is_more;
    let extent = Extent::of(Metric::Cpu, processor).filter(|_| is_told)?;
    Some(Aside::ProcessorTime(extent))
}
