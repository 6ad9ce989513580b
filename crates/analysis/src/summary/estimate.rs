//! Estimates from rounds: a value and its difference from the baseline, each with an interval.

use std::collections::BTreeMap;

use recording::digits;
use schemars::JsonSchema;
use serde::Serialize;
use stats::{Claim, Interval, Overhead, paired, sample, width};

use crate::confidence::CONFIDENCE;
use crate::pace::Paired;

/// One metric of one variant over its rounds, in the unit of the metric's name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricSummary {
    /// Hodges-Lehmann estimate over the rounds.
    pub value: f64,
    /// Lower end of the interval. Absent with too few rounds.
    pub low: Option<f64>,
    /// Upper end of the interval. Absent with too few rounds.
    pub high: Option<f64>,
    /// The figure of each completely measured round, in the order of measurement. If a round measured a
    /// baseline in several groups, it is the mean of the groups.
    pub rounds: Vec<f64>,
    /// Number of blocks of a single load that give the interval. Absent if the interval comes from rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<usize>,
    /// True if a single load was recorded in blocks. There may be too few blocks for an interval.
    #[serde(skip)]
    pub has_blocks: bool,
    /// The difference from the baseline. Absent for the baseline itself.
    pub overhead: Option<OverheadSummary>,
    /// True if fewer than ten requests of a round lie beyond this percentile. Reports then print the
    /// percentile over the requests of all rounds instead of this figure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sparse: bool,
}

/// Difference between the metric of a variant and the metric of its baseline, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OverheadSummary {
    /// Number of rounds that measured both in the same group.
    pub rounds: usize,
    /// Hodges-Lehmann estimate of the difference, in the metric's unit.
    pub difference: f64,
    /// Lower end of the interval of the difference. Absent with too few rounds.
    pub difference_low: Option<f64>,
    /// Upper end of the interval of the difference. Absent with too few rounds.
    pub difference_high: Option<f64>,
    /// Variant divided by baseline. Absent if a figure is 0.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio. Absent with too few rounds.
    pub ratio_low: Option<f64>,
    /// Upper end of the interval of the ratio. Absent with too few rounds.
    pub ratio_high: Option<f64>,
    /// Confidence of both intervals. Absent with too few rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The claim about the difference that the interval supports.
    pub claim: ClaimName,
    /// Minimum number of rounds that could support a claim.
    pub rounds_needed: usize,
    /// The smallest difference that four of five runs like this one would show, in the metric's unit. Absent
    /// with too few rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Number of rounds after which half of `detectable` would be shown. Absent with too few rounds, and if
    /// even 100,000 rounds would not suffice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_for_half: Option<usize>,
    /// Number of other variants that show the speed of the machine in each round. Their figures adjust the
    /// difference and the ratio. Absent without an adjustment.
    #[serde(skip_serializing_if = "is_zero")]
    pub adjusted_by: usize,
    /// Number of rounds with the usual speed of the machine, according to the other variants. The adjusted
    /// difference uses only these rounds. Absent without an adjustment.
    #[serde(skip_serializing_if = "is_zero")]
    pub usual_rounds: usize,
    /// The median of the unadjusted differences of all rounds, in the metric's unit. Absent if rounds are not
    /// paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_of_rounds: Option<f64>,
    /// True if the estimate and the plain difference of medians have opposite signs.
    pub is_sign_disputed: bool,
}

/// A claim about a difference, supported by its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimName {
    /// The variant's values are higher.
    Higher,
    /// The variant's values are lower.
    Lower,
    /// The interval contains zero, which does not prove that there is no difference.
    NoDifferenceShown,
    /// There are too few rounds for any claim.
    TooFewRounds,
}

impl ClaimName {
    /// The claim that an interval with these ends supports.
    pub fn of_ends(ends: Option<(f64, f64)>) -> Self {
        match ends {
            None => Self::TooFewRounds,
            Some((low, _)) if low > 0.0 => Self::Higher,
            Some((_, high)) if high < 0.0 => Self::Lower,
            Some(_) => Self::NoDifferenceShown,
        }
    }
}

impl MetricSummary {
    /// Returns the change against the baseline in percent, with its interval. `None` without a comparison.
    pub fn change(&self) -> Option<String> {
        let overhead = self.overhead.as_ref()?;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let ends = overhead.ratio_low.zip(overhead.ratio_high);
        let ends = ends.map(|(low, high)| (percent(low), percent(high)));
        // The scale is 100, because a change in percent is relative to 100.
        let change = digits::estimate(percent(overhead.ratio?), ends, 100.0);
        Some(format!("{change} %"))
    }

    pub(crate) fn of(rounds: Vec<f64>) -> Option<Self> {
        // This is not the corrected confidence of overheads, because a single value is not a comparison.
        let estimate = paired::location(&rounds, CONFIDENCE)?;
        Some(Self {
            value: estimate.value,
            low: estimate.interval.map(|interval| interval.low),
            high: estimate.interval.map(|interval| interval.high),
            rounds,
            blocks: None,
            has_blocks: false,
            overhead: None,
            is_sparse: false,
        })
    }

    /// Half of the width of the value's interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

impl OverheadSummary {
    /// Converts the result of the statistics. `rounds` is the number of rounds of the shorter side.
    /// `rounds_needed` is the number of rounds that an interval requires.
    pub(crate) fn of(overhead: &Overhead, rounds: usize, rounds_needed: usize) -> Self {
        let interval = overhead.difference.interval;
        let ratio_interval = overhead.ratio.and_then(|ratio| ratio.interval);
        Self {
            rounds,
            difference: overhead.difference.value,
            difference_low: interval.map(|interval| interval.low),
            difference_high: interval.map(|interval| interval.high),
            ratio: overhead.ratio.map(|ratio| ratio.value),
            ratio_low: ratio_interval.map(|interval| interval.low),
            ratio_high: ratio_interval.map(|interval| interval.high),
            confidence: interval.map(|interval| interval.confidence),
            claim: ClaimName::from(overhead.claim),
            rounds_needed,
            detectable: None,
            rounds_for_half: None,
            adjusted_by: 0,
            usual_rounds: 0,
            median_of_rounds: None,
            is_sign_disputed: overhead.is_sign_disputed(),
        }
    }

    /// Converts the result of paired rounds, with the smallest difference that such rounds would show.
    pub(crate) fn of_paired(found: &Paired, rounds_needed: usize) -> Self {
        Self {
            adjusted_by: found.adjusted.map_or(0, |adjusted| adjusted.by),
            usual_rounds: found.adjusted.map_or(0, |adjusted| adjusted.over),
            median_of_rounds: {
                let pairs = found.base.iter().zip(&found.own);
                sample::median(&pairs.map(|(base, own)| own - base).collect::<Vec<f64>>())
            },
            ..Self::of(&found.overhead, found.base.len(), rounds_needed)
        }
        .with_power(&found.overhead)
    }

    /// Adds the smallest difference that such rounds would show. It applies only to a paired difference,
    /// because unpaired intervals shrink in a different way.
    #[must_use]
    fn with_power(self, overhead: &Overhead) -> Self {
        let interval = overhead.difference.interval;
        // The interval is from the usual rounds. More rounds would contain an equal share of them.
        let own = match self.usual_rounds {
            0 => self.rounds,
            usual => usual,
        };
        let half = |interval: Interval| {
            let usual = width::rounds_expected(&interval, own, interval.half_width() / 2.0)?;
            Some((usual * self.rounds).div_ceil(own))
        };
        Self {
            detectable: interval.and_then(|interval| width::detectable(&interval, own)),
            rounds_for_half: interval.and_then(half),
            ..self
        }
    }

    /// Widens the intervals for systems with one start in all rounds. `start` is half of the width that the
    /// difference of two starts needs, and `base` the figure of the baseline, in the metric's unit.
    ///
    /// The rounds show random errors only. Both errors are independent, so the squares of their widths add up
    /// (JCGM 100:2008, "Guide to the expression of uncertainty in measurement", 5.1.2).
    #[must_use]
    pub(crate) fn with_one_start(mut self, start: f64, base: Option<f64>) -> Self {
        let down = |low: f64, from: f64, start: f64| from - (from - low).hypot(start);
        let up = |high: f64, from: f64, start: f64| from + (high - from).hypot(start);
        let from = self.difference;
        self.difference_low = self.difference_low.map(|low| down(low, from, start));
        self.difference_high = self.difference_high.map(|high| up(high, from, start));
        let base = base.filter(|base| *base > 0.0);
        if let Some((ratio, base)) = self.ratio.zip(base) {
            self.ratio_low = self.ratio_low.map(|low| down(low, ratio, start / base));
            self.ratio_high = self.ratio_high.map(|high| up(high, ratio, start / base));
        }
        self.claim = ClaimName::of_ends(self.difference_low.zip(self.difference_high));
        self.detectable = self.detectable.map(|least| least.hypot(start));
        self
    }

    /// True if the median of the rounds is more than two half widths from the estimate.
    pub fn is_far_from_median(&self) -> bool {
        let far = self.median_of_rounds.zip(self.half_width());
        far.is_some_and(|(median, half)| (median - self.difference).abs() > 2.0 * half)
    }

    /// Half of the width of the difference's interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.difference_high? - self.difference_low?) / 2.0)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl From<Claim> for ClaimName {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Higher => Self::Higher,
            Claim::Lower => Self::Lower,
            Claim::NoDifferenceShown => Self::NoDifferenceShown,
            Claim::TooFewRounds { .. } => Self::TooFewRounds,
        }
    }
}

/// One value per round: the mean of its measurements. A baseline has several measurements in a round with
/// several groups. It still has one value per round, because the round is the unit.
pub(crate) fn mean_by_round(values: impl Iterator<Item = (u32, f64)>) -> Vec<f64> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (round, value) in values {
        rounds.entry(round).or_default().push(value);
    }
    let means = rounds.values().map(|values| sample::mean(values));
    means
        .map(|mean| mean.expect("a round has a value"))
        .collect()
}
