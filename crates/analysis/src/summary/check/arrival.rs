//! Checks that requests arrived as planned, from the actual gaps between sends.

use model::{Arrival, Load, Phase};
use recording::{LoadText, RoundRecord, float};
use stats::Histogram;

use super::{Check, CheckFacts, CheckName, Limits};

/// Minimum number of gaps for a comparison with a distribution.
const GAPS_MIN: u64 = 100;

/// Smallest difference of gaps that counts. A thread that reads responses sends slightly later.
const RESOLUTION_S: f64 = 100e-6;

/// If more than this share of the sends waited for a connection, the target determined the gaps.
const WAITED_SHARE_MAX: f64 = 0.1;

/// Compares the gaps with the plan's distribution. `None` unless the plan has one rate.
pub(super) fn law(load: &LoadText, complete: &[&RoundRecord]) -> Option<Check> {
    let Load::Open {
        phases, arrival, ..
    } = &load.model
    else {
        return None;
    };
    let rate_per_s = only_rate(phases)?;
    // Threads of the other shards also send slots in between.
    let threads = complete.first()?.generator.threads * load.shard.of();
    let mut gaps = Histogram::new();
    let (mut waited, mut planned) = (0, 0);
    for round in complete {
        // If one round has no gaps, there is no figure, because the remaining rounds are not the whole load.
        gaps.add(&round.gaps_ns_hdr.as_ref()?.histogram());
        waited += round.waited;
        planned += round.planned;
    }
    let is_of_target = float(waited) > WAITED_SHARE_MAX * float(planned);
    if gaps.len() < GAPS_MIN || is_of_target || threads == 0 {
        return None;
    }
    Some(match arrival {
        Arrival::Uniform => equal(&gaps, f64::from(threads) / rate_per_s),
        Arrival::Poisson { .. } => poisson(&gaps, threads, rate_per_s),
    })
}

/// The rate of a plan with a constant rate. `None` if it changes.
pub(super) fn only_rate(phases: &[Phase]) -> Option<f64> {
    let rate = phases.first()?.from.per_second();
    let is_rate = |other: f64| (other / rate - 1.0).abs() < 1e-9;
    let is_steady = phases
        .iter()
        .all(|phase| is_rate(phase.from.per_second()) && is_rate(phase.to.per_second()));
    (is_steady && rate > 0.0).then_some(rate)
}

/// Gaps that differ from the planned gap by more than half of it, in either direction.
fn equal(gaps: &Histogram, gap_s: f64) -> Check {
    // At high rates, half of a gap is shorter than the precision of a thread.
    let slack_s = (gap_s / 2.0).max(RESOLUTION_S);
    let below = share_at_or_below(gaps, gap_s - slack_s);
    let above = 1.0 - share_at_or_below(gaps, gap_s + slack_s);
    let share = below + above;
    let facts = CheckFacts::EqualGaps { slack_s, gap_s };
    Limits::new(0.05, 0.25).judge(CheckName::ArrivalLaw, share, facts)
}

/// The largest difference between the distribution of the gaps and the plan's distribution (Kolmogorov and
/// Smirnov). A thread sends every `threads`th slot of a Poisson process. So its gaps have the Erlang
/// distribution of that order, which is exponential for one thread.
fn poisson(gaps: &Histogram, threads: u32, rate_per_s: f64) -> Check {
    let law = |gap_s: f64| {
        let mean = rate_per_s * gap_s;
        let (mut term, mut sum) = (1.0, 1.0);
        for index in 1..threads {
            term *= mean / f64::from(index);
            sum += term;
        }
        1.0 - (-mean).exp() * sum
    };
    let apart = |percent: u32| {
        let gap_ns = gaps.quantile_ns(f64::from(percent) / 100.0)?;
        let gap_s = float(gap_ns) / 1e9;
        let expected = law(gap_s);
        // A histogram is a step function, and the largest difference may be just below a step.
        let sides = [gap_s, gap_s * 0.998].map(|gap_s| share_at_or_below(gaps, gap_s));
        let apart = sides.map(|share| (share - expected).abs());
        (gap_s >= RESOLUTION_S).then(|| apart[0].max(apart[1]))
    };
    // Percentiles are fine enough for a distance of 5 %, which is the lowest limit.
    let distance = (1..=99).filter_map(apart).fold(0.0, f64::max);
    // 99 % of the samples of an exact distribution stay below this (Smirnov's asymptotic formula).
    let noise = 1.63 / float(gaps.len()).sqrt();
    let facts = CheckFacts::PoissonGaps { rate_per_s };
    Limits::new(0.05 + noise, 0.2 + noise).judge(CheckName::ArrivalLaw, distance, facts)
}

fn share_at_or_below(gaps: &Histogram, gap_s: f64) -> f64 {
    if gap_s <= 0.0 {
        return 0.0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive gap, far below 584 years"
    )]
    let gap_ns = (gap_s * 1e9) as u64;
    // Without a gap, the share of shorter gaps is 0.
    gaps.share_at_or_below_ns(gap_ns).unwrap_or(0.0)
}
