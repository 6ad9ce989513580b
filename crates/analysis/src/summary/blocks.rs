//! Intervals of a single load, computed from its blocks.
//!
//! A lab has rounds, and the round is the unit of statistics. A single load has no rounds. Its blocks show
//! the precision of its own figures, and they do not cover the variation between starts of the target.

use std::collections::BTreeMap;

use model::Metric;
use recording::RoundRecord;
use stats::{Histogram, blocks, sample};

use super::estimate::MetricSummary;
use super::{rate_windows, tail};
use crate::confidence::CONFIDENCE;

/// Numbers of blocks into which a load may be divided, the largest first, because a tail percentile needs
/// long blocks. Each number divides the recorded number, and six is the minimum for an interval.
const NUMBERS: [usize; 4] = [24, 12, 8, 6];

/// Adds intervals to the figures of a load, if its blocks allow it. The shortest and the longest latency, and
/// figures that are counted once, have no interval.
pub(super) fn give_intervals(round: &RoundRecord, metrics: &mut BTreeMap<Metric, MetricSummary>) {
    let recorded: Vec<Histogram> = round
        .blocks_latency_ns_hdr
        .iter()
        .map(recording::Hdr::histogram)
        .collect();
    if recorded.is_empty() {
        return;
    }
    for (metric, summary) in metrics {
        summary.has_blocks = true;
        let Some(values) = values(*metric, round, &recorded) else {
            continue;
        };
        let found = blocks::estimate(&values, CONFIDENCE);
        let Some(interval) = found.and_then(|found| found.interval) else {
            continue;
        };
        // A block that was much slower than the other blocks moves the figure of the load, but hardly the
        // estimate from the blocks. So the interval is extended to the figure of the load.
        summary.low = Some(interval.low.min(summary.value));
        summary.high = Some(interval.high.max(summary.value));
        summary.blocks = Some(values.len());
    }
}

/// The figure of each block, with the largest number of blocks that have enough requests for it. `None` with
/// fewer than six blocks.
fn values(metric: Metric, round: &RoundRecord, recorded: &[Histogram]) -> Option<Vec<f64>> {
    if metric == Metric::Requests {
        return rates(round);
    }
    let of = latency(metric)?;
    let divided = |number: usize| -> Option<Vec<f64>> {
        let parts = recorded.len() / number;
        let blocks = recorded.chunks(parts.max(1)).map(|parts| {
            let mut whole = Histogram::new();
            parts.iter().for_each(|part| whole.add(part));
            whole
        });
        let is_enough = |block: &Histogram| match tail::share_of(metric) {
            Some(share) => tail::has_enough(block.len(), share),
            None => tail::has_enough(block.len(), 0.5),
        };
        let values = blocks.map(|block| is_enough(&block).then(|| of(&block)).flatten());
        values.collect()
    };
    NUMBERS.into_iter().find_map(divided)
}

/// The function that computes a metric from latencies, in microseconds. `None` for a metric that blocks
/// cannot estimate.
fn latency(metric: Metric) -> Option<fn(&Histogram) -> Option<f64>> {
    fn us(ns: f64) -> f64 {
        ns / 1e3
    }
    fn quantile(of: &Histogram, share: f64) -> Option<f64> {
        of.quantile_ns(share).map(recording::float).map(us)
    }
    Some(match metric {
        Metric::Mean => |of| of.mean_ns().map(us),
        Metric::Typical => |of| of.trimmed_mean_ns(Histogram::TYPICAL_SHARE).map(us),
        Metric::SlowQuarter => |of| {
            let typical = of.trimmed_mean_ns(Histogram::TYPICAL_SHARE)?;
            let kept = Histogram::TYPICAL_SHARE;
            Some(us((of.mean_ns()? - kept * typical) / (1.0 - kept)))
        },
        Metric::Stdev => |of| of.stddev_ns().map(us),
        Metric::P50 => |of| quantile(of, 0.5),
        Metric::P75 => |of| quantile(of, 0.75),
        Metric::P90 => |of| quantile(of, 0.9),
        Metric::P95 => |of| quantile(of, 0.95),
        Metric::P99 => |of| quantile(of, 0.99),
        Metric::P999 => |of| quantile(of, 0.999),
        _ => return None,
    })
}

/// Passed responses per second, from the windows of the load.
fn rates(round: &RoundRecord) -> Option<Vec<f64>> {
    let rates = rate_windows::passed(round);
    let number = NUMBERS.into_iter().find(|number| rates.len() >= *number)?;
    // The remainder at the end has less than one window per block.
    let blocks = rates.chunks_exact(rates.len() / number).take(number);
    blocks.map(sample::mean).collect()
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;
    use recording::{Hdr, Recording};

    use super::*;
    use crate::Summary;
    use crate::gate::{Grounds, Ruling, Undecided};

    /// A load with blocks of these latencies in microseconds. Each block has `requests` requests.
    fn load(requests: u64, blocks: [u64; 24]) -> Recording {
        let mut recording = SampleRun::load_alone(true);
        let round = &mut recording.rounds[0];
        let mut whole = Histogram::new();
        round.blocks_latency_ns_hdr = blocks
            .into_iter()
            .map(|us| {
                let mut block = Histogram::new();
                (0..requests).for_each(|at| block.record_ns(us * 1_000 + at));
                whole.add(&block);
                Hdr::of(&block)
            })
            .collect();
        round.latency_ns_hdr = Hdr::of(&whole);
        recording
    }

    fn restless() -> [u64; 24] {
        std::array::from_fn(|at| 1_000 + 10 * (at as u64 * 7 % 12))
    }

    fn ruled(recording: &Recording, gate: &str) -> (Ruling, String) {
        let gates = [gate.parse().unwrap()];
        let summary = Summary::of(recording).judged(&gates, Undecided::Fails);
        let [judgement] = &summary.gates[..] else {
            panic!("{gate}: {:?}", summary.gates);
        };
        let reason = match &judgement.grounds {
            Grounds::Figure(reason) => reason.clone(),
            other => format!("{other:?}"),
        };
        (judgement.ruling, reason)
    }

    #[test]
    fn a_gate_on_a_load_is_judged_on_its_blocks() {
        let recording = load(2_000, restless());
        for (gate, ruling) in [
            ("p99 value < 2ms", Ruling::Holds),
            ("p99 value < 1ms", Ruling::Broken),
            ("p50 value < 1.055ms", Ruling::Undecided),
            ("requests/s value > 3900/s", Ruling::Holds),
        ] {
            let (found, reason) = ruled(&recording, gate);
            assert_eq!(found, ruling, "{gate}: {reason}");
            assert!(reason.contains("24 blocks of one load"), "{reason}");
        }
    }

    #[test]
    fn a_tail_takes_fewer_and_longer_blocks_and_at_last_has_none() {
        let blocks = |requests: u64, metric: Metric| {
            let summary = Summary::of(&load(requests, restless()));
            summary.variants[0].metric(metric).unwrap().blocks
        };
        assert_eq!(blocks(1_000, Metric::P99), Some(24));
        assert_eq!(blocks(500, Metric::P99), Some(12));
        assert_eq!(blocks(250, Metric::P99), Some(6));
        assert_eq!(blocks(240, Metric::P99), None);
        assert_eq!(blocks(240, Metric::P90), Some(24));
        assert_eq!(blocks(1_000, Metric::Max), None);
        let (ruling, reason) = ruled(&load(240, restless()), "p99 value < 2ms");
        assert_eq!(ruling, Ruling::Undecided);
        assert!(reason.contains("Load for longer"), "{reason}");
    }

    #[test]
    fn one_slow_block_is_no_part_of_a_gate_that_holds() {
        let mut blocks = restless();
        blocks[11] = 90_000;
        let (ruling, reason) = ruled(&load(2_000, blocks), "p99 value < 2ms");
        assert_eq!(ruling, Ruling::Undecided, "{reason}");
    }

    #[test]
    fn what_was_counted_is_compared_as_it_is() {
        let mut recording = load(2_000, restless());
        let longest = ruled(&recording, "max value < 2ms");
        assert_eq!(longest.0, Ruling::Holds, "{}", longest.1);
        assert_eq!(
            ruled(&recording, "failures value < 1%"),
            (Ruling::Holds, "0 % (0 of 100,000)".to_owned())
        );
        let round = &mut recording.rounds[0];
        round.outcomes.passed = 98_000;
        round.outcomes.mismatched.status = 2_000;
        for (gate, ruling) in [
            ("failures value < 1%", Ruling::Broken),
            ("failures value <= 2%", Ruling::Holds),
            ("failures value < 2%", Ruling::Broken),
            // Latencies are not judged if there are wrong responses …
            ("p99 value < 2s", Ruling::Undecided),
        ] {
            let (found, reason) = ruled(&recording, gate);
            assert_eq!(found, ruling, "{gate}: {reason}");
        }
        // … unless a gate allows this many.
        let gates = ["p99 value < 2s", "failures value < 3%"].map(|gate| gate.parse().unwrap());
        let summary = Summary::of(&recording).judged(&gates, Undecided::Fails);
        assert!(
            summary.gates.iter().all(|gate| gate.is_passed),
            "{:?}",
            summary.gates
        );
        assert!(summary.allows_failures());
    }

    #[test]
    fn a_load_without_blocks_has_no_intervals() {
        let (ruling, reason) = ruled(&SampleRun::load_alone(true), "p99 value < 2s");
        assert_eq!(ruling, Ruling::Undecided);
        assert!(
            reason.contains("recorded the load without blocks"),
            "{reason}"
        );
    }
}
