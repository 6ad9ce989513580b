//! Costs that few requests pay.
//!
//! The typical latency is the mean of the fastest three quarters of the requests. It misses a cost that only
//! the slowest quarter pays. The mean includes it. If the two disagree, the report shows both, and the share
//! of the requests that pay.

use std::collections::BTreeMap;

use model::Metric;
use recording::float;
use serde::Serialize;
use stats::Histogram;

use super::estimate::{ClaimName, MetricSummary, OverheadSummary};

/// A difference of the mean that the typical latency does not show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FewPay {
    /// The difference of the mean latency, in microseconds.
    pub latency_us_mean: f64,
    /// Share of the requests, 0 to 1, that are slower or faster by more than the typical latency explains.
    /// Absent if the share is too small to be distinguished from chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_requests: Option<f64>,
    /// The difference between these requests and the others.
    pub payment: Payment,
}

/// The difference between few requests and the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payment {
    /// They pay, and the others do not.
    Pay,
    /// All pay, and they pay more.
    PayMore,
    /// All pay, and they pay less.
    PayLess,
    /// They save, and the others do not.
    Save,
    /// All save, and they save more.
    SaveMore,
    /// All save, and they save less.
    SaveLess,
}

/// Returns the overheads of the typical latency and of the mean if they disagree, else `None`.
///
/// They disagree if the mean claims a difference and one of three conditions is true. The typical latency
/// shows no difference, its interval does not overlap the mean's interval, or its difference is less than
/// half as large.
pub(super) fn disagreeing(
    headline: Metric,
    metrics: &BTreeMap<Metric, MetricSummary>,
) -> Option<(&OverheadSummary, &OverheadSummary)> {
    let overhead = |metric: Metric| metrics.get(&metric)?.overhead.as_ref();
    let (typical, mean) = (overhead(headline)?, overhead(Metric::Mean)?);
    if headline != Metric::Typical || !is_claimed(mean) {
        return None;
    }
    let (low, high) = typical.difference_low.zip(typical.difference_high)?;
    let is_apart = mean.difference_low? > high || mean.difference_high? < low;
    // A mean that depends on few requests is uncertain. Its wide interval may reach down to the typical
    // latency.
    let is_much_more = mean.difference.abs() > 2.0 * low.abs().max(high.abs());
    let is_other = !is_claimed(typical) || is_apart || is_much_more;
    is_other.then_some((typical, mean))
}

/// Smallest disagreement that the verdict mentions, as a share of the larger difference. Below it, only the
/// sentence below the verdict mentions it, because slow requests cost a little more nearly everywhere.
const WORTH_A_WORD: f64 = 0.15;

fn is_claimed(overhead: &OverheadSummary) -> bool {
    matches!(overhead.claim, ClaimName::Higher | ClaimName::Lower)
}

/// The cost that few requests pay, from the latencies of all rounds of a variant and of its baseline.
pub(super) fn pay(
    headline: Metric,
    metrics: &BTreeMap<Metric, MetricSummary>,
    own: &Histogram,
    of_baseline: &Histogram,
) -> Option<FewPay> {
    let (typical, mean) = disagreeing(headline, metrics)?;
    let larger = typical.difference.abs().max(mean.difference.abs());
    if (mean.difference - typical.difference).abs() <= WORTH_A_WORD * larger {
        return None;
    }
    let share_of_requests = share(own, of_baseline, typical, mean);
    Some(FewPay {
        latency_us_mean: mean.difference,
        share_of_requests,
        payment: payment(typical, mean),
    })
}

fn payment(typical: &OverheadSummary, mean: &OverheadSummary) -> Payment {
    let is_more = mean.difference > typical.difference;
    match (typical.claim, mean.claim, is_more) {
        (ClaimName::Higher, ClaimName::Higher, true) => Payment::PayMore,
        (ClaimName::Higher, ClaimName::Higher, false) => Payment::PayLess,
        (ClaimName::Lower, ClaimName::Lower, true) => Payment::SaveLess,
        (ClaimName::Lower, ClaimName::Lower, false) => Payment::SaveMore,
        (_, _, true) => Payment::Pay,
        (_, _, false) => Payment::Save,
    }
}

/// The largest distance between the distributions of a variant and of its baseline. The baseline is moved by
/// the typical difference, at the end of its interval that explains most:
///
/// `share = max over x of P(variant > x) - P(baseline + typical > x)`.
///
/// The sides are exchanged if the mean is below the typical difference. `None` if the distance is less than
/// three standard errors, because it may then be chance.
fn share(
    own: &Histogram,
    of_baseline: &Histogram,
    typical: &OverheadSummary,
    mean: &OverheadSummary,
) -> Option<f64> {
    if own.is_empty() || of_baseline.is_empty() {
        return None;
    }
    let is_higher = mean.difference > typical.difference;
    let shift_ns = 1e3
        * match is_higher {
            true => typical.difference_high?,
            false => typical.difference_low?,
        };
    let (own, of_baseline) = (Distribution::of(own), Distribution::of(of_baseline));
    let distance = |at_ns: f64| {
        let above = own.share_above(at_ns);
        let above_of_base = of_baseline.share_above(at_ns - shift_ns);
        let distance = match is_higher {
            true => above - above_of_base,
            false => above_of_base - above,
        };
        let variance = own.variance(above) + of_baseline.variance(above_of_base);
        (distance > 3.0 * variance.sqrt()).then_some(distance)
    };
    // Both distributions have steps only at these values.
    let of_own = own.steps.iter().map(|(at_ns, _)| *at_ns);
    let moved = of_baseline.steps.iter().map(|(at_ns, _)| at_ns + shift_ns);
    of_own.chain(moved).filter_map(distance).reduce(f64::max)
}

/// The distribution of latencies, prepared for many lookups.
struct Distribution {
    /// A latency in nanoseconds, and the share of the requests that are not slower, in rising order.
    steps: Vec<(f64, f64)>,
    requests: f64,
}

impl Distribution {
    fn of(latency: &Histogram) -> Self {
        let requests = float(latency.len());
        let mut sum = 0;
        let steps = latency.recorded().map(|(at_ns, count)| {
            sum += count;
            (float(at_ns), float(sum) / requests)
        });
        Self {
            steps: steps.collect(),
            requests,
        }
    }

    fn share_above(&self, at_ns: f64) -> f64 {
        let below = self.steps.partition_point(|(step_ns, _)| *step_ns <= at_ns);
        match below {
            0 => 1.0,
            below => 1.0 - self.steps[below - 1].1,
        }
    }

    /// The variance of a share that was measured with `requests` requests.
    fn variance(&self, share: f64) -> f64 {
        share * (1.0 - share) / self.requests
    }
}
