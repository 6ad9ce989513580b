//! Advice on the round length: fewer long rounds, or more short rounds in the same time.

use std::collections::BTreeMap;

use model::Order;
use recording::{Recording, RoundPart, RoundRecord, digits, float};
use schemars::JsonSchema;
use serde::Serialize;
use stats::nested::Components;
use stats::{paired, sample};

use super::row::Row;
use crate::confidence::CONFIDENCE;

/// Number of blocks into which the load of a round is divided.
const BLOCKS: usize = 16;

/// Minimum number of rounds for meaningful variance components.
const ROUNDS_MIN: usize = 6;

/// The shortest load that the advice may contain, in seconds.
const SECONDS_MIN: f64 = 0.5;

/// The longest load that the advice may contain, as a multiple of the actual load.
const LONGER_MAX: f64 = 4.0;

/// Largest relative width of intervals that is worth a sentence. Advice with a smaller gain is omitted.
const WORTH_A_WORD: f64 = 0.9;

/// Another length of rounds that would have given narrower intervals in the same time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SplitSummary {
    /// Length of the load of a round, in seconds.
    pub load_s: f64,
    /// The best length, in seconds.
    pub load_s_best: f64,
    /// The width of an interval of the mean latency with that length, as a share of the width that it has, in
    /// the same time. From 0 to 1.
    pub width: f64,
}

impl SplitSummary {
    /// Finds the best length for the compared variants. `round_s` is the length of a whole round. `None` if
    /// the recording does not contain it, and if no other length is much better.
    pub(super) fn of(
        recording: &Recording,
        compared: &[(&Row<'_>, &Row<'_>)],
        round_s: Option<f64>,
    ) -> Option<Self> {
        let load_s = load_seconds(recording)?;
        let loads = loads_of_round(recording);
        // The time of a round without its load, divided by the number of loads.
        let start_s = (round_s? / loads - load_s).max(0.0);
        let pairs: Vec<Vec<Vec<f64>>> = compared
            .iter()
            .map(|(row, baseline)| differences(&row.complete, &baseline.complete))
            .filter(|rounds| rounds.len() >= ROUNDS_MIN)
            .collect();
        let candidates = [0.125, 0.25, 0.5, 2.0, LONGER_MAX];
        let lengths = candidates.map(|factor| factor * load_s).into_iter();
        let judged = lengths
            .filter(|seconds| *seconds >= SECONDS_MIN)
            .filter_map(|seconds| {
                let widths: Vec<f64> = pairs
                    .iter()
                    .filter_map(|rounds| width(rounds, load_s, seconds, start_s))
                    .collect();
                // The median of all variants counts, because they share the rounds.
                (widths.len() == pairs.len()).then_some((seconds, sample::median(&widths)?))
            });
        let (load_s_best, width) = judged.min_by(|one, other| one.1.total_cmp(&other.1))?;
        (width < WORTH_A_WORD).then_some(Self {
            load_s,
            load_s_best,
            width,
        })
    }

    /// The advice in words:
    /// `By the mean latency of this run, rounds of 2 s instead of 10 s would give 0.6 times the width of the
    /// intervals in the same time.`
    pub fn sentence(&self) -> String {
        let seconds = |value: f64| digits::value(value, Some(value * 0.05));
        format!(
            "By the mean latency of this run, rounds of {} s instead of {} s would give {} times \
             the width of the intervals in the same time.",
            seconds(self.load_s_best),
            seconds(self.load_s),
            digits::value(self.width, Some(0.1))
        )
    }
}

/// The length of the load of a round, in seconds. `None` for a search, for slices, and for a load that ends
/// after a number of requests.
fn load_seconds(recording: &Recording) -> Option<f64> {
    let load = &recording.load;
    if load.capacity.is_some() || recording.rounds.iter().any(|round| round.slices.is_some()) {
        return None;
    }
    load.model.duration().map(|length| length.as_secs_f64())
}

/// The number of loads of a round that run one after the other.
fn loads_of_round(recording: &Recording) -> f64 {
    match recording.order_measured() {
        Order::InTurn => float(recording.variants.len() as u64),
        Order::SideBySide => float(recording.groups().len().max(1) as u64),
    }
}

/// The differences of the mean latency in each block, in microseconds, for each round with measurements of
/// both variants.
fn differences(own: &[&RoundRecord], of_baseline: &[&RoundRecord]) -> Vec<Vec<f64>> {
    let base: BTreeMap<RoundPart, Vec<f64>> = of_baseline
        .iter()
        .filter_map(|round| Some((round.part(), blocks(round)?)))
        .collect();
    let each = own.iter().filter_map(|round| {
        let both = blocks(round)?.into_iter().zip(base.get(&round.part())?);
        Some(both.map(|(own, base)| own - base).collect())
    });
    each.collect()
}

/// The mean latency of each block of a round, in microseconds. `None` with too few windows, or if a block has
/// no response.
fn blocks(round: &RoundRecord) -> Option<Vec<f64>> {
    let windows = &round.windows;
    let each = windows.completed.len() / BLOCKS;
    if each == 0 || windows.latency_sum_ns.len() != windows.completed.len() {
        return None;
    }
    let counts = windows.completed.chunks_exact(each).take(BLOCKS);
    let sums = windows.latency_sum_ns.chunks_exact(each).take(BLOCKS);
    let mean = |(count, sum): (&[u64], &[u64])| {
        let count: u64 = count.iter().sum();
        (count > 0).then(|| float(sum.iter().sum()) / float(count) / 1e3)
    };
    counts.zip(sums).map(mean).collect()
}

/// The width of an interval with rounds of another length, relative to the current width, in the same total
/// time.
///
/// A shorter round uses the first blocks of each measured round, so it includes the aftereffects of a start.
/// For a longer round, the width follows from the variance components.
fn width(rounds: &[Vec<f64>], load_s: f64, seconds: f64, start_s: f64) -> Option<f64> {
    let blocks = float(BLOCKS as u64);
    let block_s = load_s / blocks;
    if seconds > load_s {
        let components = Components::of(rounds)?;
        return Some(components.width(blocks, seconds / block_s, start_s, block_s));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the blocks"
    )]
    let kept = (blocks * seconds / load_s).round() as usize;
    let half_width = |first: usize| {
        let means = rounds
            .iter()
            .map(|round| sample::mean(&round[..first.max(1)]));
        let means: Vec<f64> = means.collect::<Option<_>>()?;
        Some(paired::location(&means, CONFIDENCE)?.interval?.half_width())
    };
    let (short, whole) = (half_width(kept)?, half_width(BLOCKS)?);
    let more = (start_s + load_s) / (start_s + seconds);
    (whole > 0.0).then(|| short / whole / more.sqrt())
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;
    use crate::summary::Summary;

    /// A recording with latencies that vary by `between_us` between rounds and by `within_us` between
    /// windows.
    fn recording(between_us: f64, within_us: f64) -> Recording {
        let sample = SampleRun::side_by_side().rounds(12);
        let mut recording = sample.variant("a", 700.0).variant("b", 720.0).build();
        // A simple sequence that contains every value once, so that both levels vary evenly.
        let mut place = 0_u32;
        let mut scatter = move || {
            place = (place + 7_919) % 10_007;
            f64::from(place) / 10_007.0 - 0.5
        };
        for round in &mut recording.rounds {
            let own = between_us * scatter();
            for (count, sum) in round
                .windows
                .completed
                .iter()
                .zip(&mut round.windows.latency_sum_ns)
            {
                let mean_us = 700.0 + own + within_us * scatter();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a sum of latencies"
                )]
                let total = (mean_us * 1e3 * float(*count)) as u64;
                *sum = total;
            }
        }
        recording
    }

    #[test]
    fn rounds_whose_starts_differ_should_have_been_shorter() {
        // Each round takes 25 s. In this sample, a round takes as long as its load.
        let recording = recording(100.0, 4.0);
        let summary = Summary::of(&recording);
        let split = summary.split.clone().unwrap();
        assert!(split.load_s_best < split.load_s / 2.0, "{split:?}");
        assert!(split.width < 0.6, "{split:?}");
        let sentence = split.sentence();
        assert!(sentence.contains("s would give 0."), "{sentence}");
    }

    #[test]
    fn rounds_whose_requests_scatter_are_long_enough() {
        let recording = recording(0.0, 200.0);
        let rounds = |name| crate::summary::complete_rounds(&recording, name);
        let rounds = differences(&rounds("b"), &rounds("a"));
        let components = Components::of(&rounds).unwrap();
        assert!(
            components.between < components.within / 8.0,
            "{components:?}"
        );
        assert_eq!(Summary::of(&recording).split, None);
    }
}
