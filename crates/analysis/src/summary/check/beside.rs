//! Checks of a variant against its baseline, for one generator that sent to both at the same time.
//!
//! Side by side, a late or paused generator affects all variants. The effect cancels in differences. It
//! widens their intervals and does not bias them, so the check is weak. A cause that affects one variant and
//! not its baseline is a bias.

use std::collections::BTreeMap;

use model::Order;
use recording::{RoundPart, RoundRecord, float};
use stats::paired;

use super::{
    Check, CheckFacts, CheckName, CheckNote, CheckState, Limits, Watched, generator, ratio,
};
use crate::confidence::CONFIDENCE;

/// Measurements of a variant, each paired with the baseline's measurement at the same time.
pub(super) struct Beside<'a> {
    /// The baseline's measurement and the variant's measurement of the same time.
    pairs: Vec<(&'a RoundRecord, &'a RoundRecord)>,
    is_baseline: bool,
}

impl<'a> Beside<'a> {
    /// `None` in turn, if several generators or shards sent the load, and in a search, which loads one
    /// variant after the other.
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

    /// The difference in lateness between the variant and its baseline. `None` for the baseline, and with too
    /// few rounds for an interval.
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
        // The end of the interval that is nearer to 0 is the smallest likely distance.
        let apart_us = match interval.contains(0.0) {
            true => 0.0,
            false => interval.low.abs().min(interval.high.abs()),
        };
        let half_us = paired::location(&typical, CONFIDENCE)?
            .interval?
            .half_width();
        let median_us = paired::location(&median, CONFIDENCE)?.value;
        // A bias of half an interval's width moves the true value out of the interval. A bias below a
        // hundredth of the latency is irrelevant.
        let failed_beyond = half_us.max(0.01 * median_us);
        let facts = CheckFacts::LatenessApart {
            mean_us: estimate.value,
            low_us: interval.low,
            high_us: interval.high,
        };
        let limits = Limits::new(failed_beyond / 2.0, failed_beyond);
        Some(limits.judge(CheckName::LatenessApart, apart_us, facts))
    }

    /// Makes failures weak that hit the baseline equally.
    pub(super) fn excuse(&self, checks: &mut [Check]) {
        let of_baseline: Vec<&RoundRecord> = self.pairs.iter().map(|(base, _)| *base).collect();
        for check in checks
            .iter_mut()
            .filter(|it| it.state == CheckState::Failed)
        {
            let shared = match check.name {
                // The difference in lateness between the variant and the baseline has its own check.
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
                check.notes.push(CheckNote::SameAsBaseline);
            }
        }
    }
}

/// True if the baseline's value is at least two thirds of the variant's value.
fn is_alike(own: f64, of_baseline: f64) -> bool {
    of_baseline >= own * 2.0 / 3.0
}

/// Mean lateness of one measurement in microseconds. It leaves out the latest hundredth, and sends that
/// waited for a free or a new connection. The target causes these waits, and they are the latest sends.
/// `None` if most sends waited.
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
