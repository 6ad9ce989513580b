//! Checks of a variant against its baseline, for one generator that sent to both at the same time.
//!
//! Side by side, a generator that is late or stands still is so for all variants. That cancels in
//! differences: it makes them less sure, which their intervals say, and does not bias them. So it asks
//! for care. A cause that hits one variant and not its baseline is a bias.

use std::collections::BTreeMap;

use model::Order;
use stats::paired;

use super::{Check, CheckName, CheckState, Limits, Watched, generator, ratio};
use crate::confidence::CONFIDENCE;
use crate::digits;
use crate::float::float;
use crate::recording::{RoundPart, RoundRecord};

/// The measurements of the baseline beside those of a variant.
pub(super) struct Beside<'a> {
    /// A measurement of the baseline, then that of the variant at the same time.
    pairs: Vec<(&'a RoundRecord, &'a RoundRecord)>,
    is_baseline: bool,
}

impl<'a> Beside<'a> {
    /// None in turn, where several generators or shards sent the load, and in a search, in which one
    /// variant is asked after the other.
    pub(super) fn of(watched: &Watched<'a>) -> Option<Self> {
        let recording = watched.recording;
        let is_shared = recording.order_measured() == Order::SideBySide
            && recording.load.capacity.is_none()
            && recording.load.shard.of() == 1
            && watched.complete.iter().all(|it| it.generators.is_empty());
        if !is_shared {
            return None;
        }
        let baseline = recording.baseline_of(watched.variant);
        let of_baseline: BTreeMap<RoundPart, &RoundRecord> = recording
            .rounds_of(baseline)
            .filter(|round| !round.interrupted && !round.disturbed)
            .map(|round| (round.part(), round))
            .collect();
        let own = watched.complete.iter();
        Some(Self {
            pairs: own
                .filter_map(|round| Some((*of_baseline.get(&round.part())?, *round)))
                .collect(),
            is_baseline: watched.variant.name == baseline,
        })
    }

    /// The difference in lateness between the variant and its baseline. None for the baseline, and
    /// with too few rounds for an interval.
    pub(super) fn lateness(&self) -> Option<Check> {
        let pairs = self.pairs.iter().filter(|_| !self.is_baseline);
        let found: Vec<(f64, f64, f64)> = pairs
            .filter_map(|(base, own)| {
                let late_us = lateness_us(own)? - lateness_us(base)?;
                let [of_base, of_own] = [base, own].map(|round| round.latency_ns_hdr.histogram());
                let typical_us = (own.typical_ns(&of_own)? - base.typical_ns(&of_base)?) / 1e3;
                Some((late_us, typical_us, float(of_base.quantile_ns(0.5)?) / 1e3))
            })
            .collect();
        let late: Vec<f64> = found.iter().map(|it| it.0).collect();
        let typical: Vec<f64> = found.iter().map(|it| it.1).collect();
        let median: Vec<f64> = found.iter().map(|it| it.2).collect();
        let estimate = paired::location(&late, CONFIDENCE)?;
        let interval = estimate.interval?;
        // The end of the interval that is nearer to 0: how much they are apart at least.
        let apart_us = match interval.contains(0.0) {
            true => 0.0,
            false => interval.low.abs().min(interval.high.abs()),
        };
        let half_us = paired::location(&typical, CONFIDENCE)?
            .interval?
            .half_width();
        let median_us = paired::location(&median, CONFIDENCE)?.value;
        // A bias as large as the half of an interval takes the truth out of it. What is less than a
        // hundredth of the latency is not worth an answer.
        let failed_beyond = half_us.max(0.01 * median_us);
        let word = match estimate.value < 0.0 {
            true => "earlier",
            false => "later",
        };
        let (low, high) = digits::interval_ends(interval.low, interval.high);
        let text = format!(
            "its sends left {} {word} than the baseline's on average ({low} to {high} us). The \
             difference contains this",
            digits::duration_ns(estimate.value.abs() * 1e3),
        );
        let limits = Limits::new(failed_beyond / 2.0, failed_beyond);
        Some(limits.judge(CheckName::LatenessApart, apart_us, text))
    }

    /// Makes failures weak that hit the baseline equally.
    pub(super) fn excuse(&self, checks: &mut [Check]) {
        let of_baseline: Vec<&RoundRecord> = self.pairs.iter().map(|(base, _)| *base).collect();
        for check in checks
            .iter_mut()
            .filter(|it| it.state == CheckState::Failed)
        {
            let shared = match check.name {
                // How late one variant is beside the other has a check of its own.
                CheckName::Lateness => true,
                CheckName::GeneratorPauses => {
                    is_alike(check.figure, generator::paused_share(&of_baseline))
                }
                CheckName::GeneratorStarved => generator::starved(&of_baseline)
                    .is_some_and(|baseline| is_alike(check.figure, baseline.figure)),
                _ => false,
            };
            if shared {
                check.state = CheckState::Weak;
                check.failed_beyond = None;
                check.text += ". The baseline had the same, so only the intervals are wider";
            }
        }
    }
}

/// Whether a baseline has at least two thirds of what its variant has.
fn is_alike(own: f64, of_baseline: f64) -> bool {
    of_baseline >= own * 2.0 / 3.0
}

/// Mean lateness of one measurement in microseconds, without the latest hundredth and without sends
/// that waited for a connection, be it for a free one or a new one: those are the target's doing, and are
/// the latest. None where most sends waited.
fn lateness_us(round: &RoundRecord) -> Option<f64> {
    let lateness = round.lateness_ns_hdr.histogram();
    let opened = round.connect_ns_hdr.histogram().len();
    let waited = ratio(float(round.waited + opened), float(lateness.len()));
    let kept = 0.99 * (1.0 - waited);
    if kept < 0.5 {
        return None;
    }
    Some(lateness.trimmed_mean_ns(kept)? / 1e3)
}
