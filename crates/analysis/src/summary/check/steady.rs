//! Checks that the target was stable from beginning to end: stalls, and drift within and across rounds.

use std::collections::BTreeMap;

use model::{Load, Metric, micros};
use recording::{RoundPart, RoundRecord, float};
use stats::trend::{mann_kendall, theil_sen_change};

use super::arrival::only_rate;
use super::{Check, CheckFacts, CheckName, Limits, LongestStall, Watched, ratio};
use crate::confidence::CONFIDENCE;
use crate::summary::mean_by_round;

/// A window without a response is a stall only if at least this many responses per window are usual.
const ANSWERS_USUAL: f64 = 20.0;

/// Thirds of a round are compared if each has at least this many windows.
const WINDOWS_IN_THIRD: usize = 2;

/// State of one window of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    /// Responses arrived, or too few are usual to notice a stall.
    Usual,
    /// The generator did not run, or had just resumed.
    Paused,
    /// No response arrived although the generator ran.
    Stalled,
    /// The first responses after a stall, which had waited for its end.
    AfterStall,
}

/// True if the load is constant over time.
fn is_even(load: &Load) -> bool {
    match load {
        Load::Closed { .. } => true,
        Load::Open { phases, .. } => only_rate(phases).is_some(),
    }
}

/// The windows of a round, without one that its end cut short.
fn windows(round: &RoundRecord) -> Vec<Window> {
    let windows = &round.windows;
    if windows.width_us == 0 {
        return Vec::new();
    }
    let whole = usize::try_from(round.elapsed_us / windows.width_us).expect("a usize has 64 bits");
    let ended: Vec<u64> = windows
        .completed
        .iter()
        .zip(&windows.errors)
        .map(|(completed, errors)| completed + errors)
        .take(whole)
        .collect();
    // The mean over the round decides. A window without responses must not define the usual number.
    let is_busy = float(ended.iter().sum()) >= ANSWERS_USUAL * float(ended.len() as u64);
    let mut kinds: Vec<Window> = Vec::with_capacity(ended.len());
    for (index, ended) in (0u64..).zip(&ended) {
        let from_us = index * windows.width_us;
        // Requests that waited during a pause are completed in the window after it.
        let is_paused = round.generator.pauses.iter().any(|pause| {
            let (at_us, length_us) = (micros(pause.at), micros(pause.length));
            at_us < from_us + windows.width_us && at_us + length_us + windows.width_us > from_us
        });
        kinds.push(match kinds.last() {
            _ if is_paused => Window::Paused,
            // With 20 usual responses, Poisson arrivals leave one window in 500 million empty by chance.
            _ if is_busy && *ended == 0 => Window::Stalled,
            Some(Window::Stalled) => Window::AfterStall,
            _ => Window::Usual,
        });
    }
    kinds
}

/// Sequences of whole windows without a response of the target.
pub(super) fn stalls(load: &Load, complete: &[&RoundRecord]) -> Option<Check> {
    if !is_even(load) {
        return None;
    }
    let (mut stalls, mut longest) = (0, None);
    let (mut stalled_us, mut elapsed_us) = (0, 0);
    for round in complete {
        elapsed_us += round.elapsed_us;
        let kinds = windows(round);
        let mut from = 0;
        for run in kinds.chunk_by(|one, other| one == other) {
            if run[0] == Window::Stalled {
                let length_us = run.len() as u64 * round.windows.width_us;
                let at_us = from as u64 * round.windows.width_us;
                stalls += 1;
                stalled_us += length_us;
                longest = longest.max(Some(LongestStall {
                    length_us,
                    round: round.round,
                    at_us,
                }));
            }
            from += run.len();
        }
    }
    let share = ratio(float(stalled_us), float(elapsed_us));
    let facts = CheckFacts::Stalls {
        count: stalls,
        longest,
    };
    Some(Limits::only_weak(0.0).judge(CheckName::TargetStalls, share, facts))
}

/// The logarithm of the change in mean latency from the first to the last third of a round. The second value
/// is the p-value of a monotonic trend over the windows.
fn change_within(round: &RoundRecord) -> Option<(f64, f64)> {
    let windows = &round.windows;
    let usable: Vec<(f64, f64)> = self::windows(round)
        .into_iter()
        .zip(windows.completed.iter().zip(&windows.latency_sum_ns))
        .filter(|(kind, (completed, _))| *kind == Window::Usual && **completed > 0)
        .map(|(_, (completed, sum_ns))| (float(*completed), float(*sum_ns)))
        .collect();
    let third = usable.len() / 3;
    if third < WINDOWS_IN_THIRD {
        return None;
    }
    let mean = |part: &[(f64, f64)]| {
        let completed: f64 = part.iter().map(|(completed, _)| completed).sum();
        let sum_ns: f64 = part.iter().map(|(_, sum_ns)| sum_ns).sum();
        sum_ns / completed
    };
    let change = (mean(&usable[usable.len() - third..]) / mean(&usable[..third])).ln();
    let means: Vec<f64> = usable
        .iter()
        .map(|(count, sum_ns)| sum_ns / count)
        .collect();
    // The ratio does not exist if a third has a latency of 0.
    change.is_finite().then_some(())?;
    Some((change, mann_kendall(&means)?))
}

/// Latency at the end of a round compared with its beginning. With enough rounds, an interval separates drift
/// from chance. With few rounds, every round must change in the same direction with high significance.
pub(super) fn within_rounds(load: &Load, complete: &[&RoundRecord]) -> Option<Check> {
    if !is_even(load) {
        return None;
    }
    let found: Vec<(f64, f64)> = complete
        .iter()
        .filter_map(|round| change_within(round))
        .collect();
    let changes: Vec<f64> = found.iter().map(|(change, _)| *change).collect();
    let estimate = stats::location(&changes, CONFIDENCE)?;
    // The end of the interval that is nearer to 0 is the smallest likely change.
    let (sure, weak_beyond) = match estimate.interval {
        Some(interval) if interval.contains(0.0) => (0.0, 0.05),
        Some(interval) if interval.low > 0.0 => (interval.low, 0.05),
        Some(interval) => (interval.high, 0.05),
        // Without an interval, only a large change is reported.
        None => (sure_of_few(&found), 0.2),
    };
    let figure = sure.abs().exp_m1();
    let mut limits = Limits::only_weak(weak_beyond);
    // Only growing latency fails. The figures then depend on the length of a round, and a longer `warmup`
    // does not help.
    if sure > 0.0 && estimate.interval.is_some() {
        limits.failed_beyond = Some(0.2);
    }
    let facts = CheckFacts::LastThird {
        factor: estimate.value.exp(),
        is_rising: sure > 0.0,
    };
    Some(limits.judge(CheckName::DriftWithinRounds, figure, facts))
}

/// The smallest change of a few rounds that all change in the same direction. It is 0 if they do not.
fn sure_of_few(found: &[(f64, f64)]) -> f64 {
    let is_up = found[0].0 > 0.0;
    let is_sure = found
        .iter()
        .all(|(change, p)| (*change > 0.0) == is_up && *p < 0.001);
    let least = found
        .iter()
        .map(|(change, _)| *change)
        .reduce(|one, other| if one.abs() < other.abs() { one } else { other });
    // An uncertain change counts as no change.
    least.filter(|_| is_sure).unwrap_or(0.0)
}

/// Mean latency over the rounds. The machine's own drift is in the baseline as well, so the check uses the
/// variant's latency relative to the baseline.
pub(super) fn across_rounds(watched: &Watched<'_>) -> Option<Check> {
    let recording = watched.recording;
    let baseline = recording.baseline_of(watched.variant);
    let is_baseline = watched.variant.name == baseline;
    let of_baseline: BTreeMap<RoundPart, f64> = recording
        .rounds_of(baseline)
        .filter(|round| !round.interrupted && !round.disturbed)
        .filter_map(|round| Some((round.part(), round.latency_ns_hdr.histogram().mean_ns()?)))
        .collect();
    let logarithms = watched
        .figures
        .by_part(Metric::Mean)
        .filter_map(|(part, mean_us)| {
            let beside = match is_baseline {
                true => 1.0,
                false => *of_baseline.get(&part)?,
            };
            Some((part.round, (mean_us / beside).ln()))
        });
    let logarithms: Vec<f64> = mean_by_round(logarithms)
        .into_iter()
        .filter(|logarithm| logarithm.is_finite())
        .collect();
    // An interval needs this many rounds. In fewer rounds a trend is easily chance.
    if logarithms.len() < stats::rounds_needed(CONFIDENCE) {
        return None;
    }
    let p = mann_kendall(&logarithms)?;
    // With logarithms, a rise and a fall by the same factor have the same weight.
    let change = theil_sen_change(&logarithms)?.exp_m1();
    let figure = if p < 0.01 { change.abs() } else { 0.0 };
    let facts = CheckFacts::Trend {
        relative_to: (!is_baseline).then(|| baseline.to_owned()),
        is_rising: change > 0.0,
    };
    // A baseline never fails. Its drift is the machine's drift, which cancels in differences.
    let limits = match !is_baseline && p < 0.001 {
        true => Limits::new(0.02, 0.1),
        false => Limits::only_weak(0.02),
    };
    Some(limits.judge(CheckName::DriftAcrossRounds, figure, facts))
}
