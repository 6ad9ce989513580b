//! Speed of the machine in each round, estimated from the variants that are on neither side of a difference.
//!
//! Side by side, all variants of a round share the machine. If the other variants take longer than in their
//! other rounds, the machine was slower. Differences are adjusted by this pace ([`stats::covariate`]). The
//! other variants must not include the baseline and the variant of the difference.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use model::Metric;
use recording::RoundPart;
use stats::covariate;
use stats::paired::{self, Overhead};

/// The mean logarithm of the other variants' figures in each round, and the number of these variants. It uses
/// only variants with a figure above 0 in all rounds, and is `None` without such variants. If a variant were
/// missing in a round, the mean would depend on the set of variants and not on the machine.
fn told_by<F: Borrow<BTreeMap<RoundPart, f64>>>(
    others: impl Iterator<Item = F>,
    parts: &[RoundPart],
) -> Option<(Vec<f64>, usize)> {
    let whole = |figures: F| -> Option<Vec<f64>> {
        let each = parts.iter().map(|part| figures.borrow().get(part).copied());
        each.map(|figure| figure.filter(|figure| *figure > 0.0))
            .collect()
    };
    let told: Vec<Vec<f64>> = others.filter_map(whole).collect();
    (!told.is_empty()).then(|| (covariate::mean_logarithms(&told), told.len()))
}

/// The rounds, or groups of rounds, with figures of both a variant and its baseline.
struct Pairs {
    parts: Vec<RoundPart>,
    base: Vec<f64>,
    own: Vec<f64>,
    /// Pace of the machine in each round, and the number of variants that it was estimated from. `None`
    /// without other variants, and for a metric that does not depend on the machine's speed.
    told: Option<(Vec<f64>, usize)>,
}

impl Pairs {
    fn of<F: Borrow<BTreeMap<RoundPart, f64>>>(
        metric: Metric,
        of_baseline: &BTreeMap<RoundPart, f64>,
        own: &BTreeMap<RoundPart, f64>,
        others: impl Iterator<Item = F>,
    ) -> Self {
        let both = own
            .iter()
            .filter_map(|(part, value)| Some((*part, *of_baseline.get(part)?, *value)));
        let mut pairs = Self {
            parts: Vec::new(),
            base: Vec::new(),
            own: Vec::new(),
            told: None,
        };
        for (part, of_baseline, value) in both {
            pairs.parts.push(part);
            pairs.base.push(of_baseline);
            pairs.own.push(value);
        }
        let told = metric.is_of_speed().then(|| told_by(others, &pairs.parts));
        pairs.told = told.flatten();
        pairs
    }
}

/// The differences in a metric by round. [`overhead`] computes its estimate from them, and they are adjusted
/// in the same way. `confidence` is the lowest allowed confidence of intervals from them.
pub(crate) fn differences<F: Borrow<BTreeMap<RoundPart, f64>>>(
    metric: Metric,
    of_baseline: &BTreeMap<RoundPart, f64>,
    own: &BTreeMap<RoundPart, f64>,
    others: impl Iterator<Item = F>,
    confidence: f64,
) -> RoundDifferences {
    let pairs = Pairs::of(metric, of_baseline, own, others);
    let (differences, lost) = match &pairs.told {
        Some((pace, _)) => {
            let found = paired::differences_adjusted(&pairs.base, &pairs.own, pace, confidence);
            (found.by_round, found.lost)
        }
        None => {
            let both = pairs.base.iter().zip(&pairs.own);
            (both.map(|(base, own)| Some(own - base)).collect(), 0)
        }
    };
    let each = pairs.parts.into_iter().zip(differences);
    RoundDifferences {
        by_part: each
            .filter_map(|(part, difference)| Some((part, difference?)))
            .collect(),
        is_adjusted: lost > 0,
    }
}

/// The differences between two variants by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundDifferences {
    pub(crate) by_part: BTreeMap<RoundPart, f64>,
    /// True if the differences were adjusted along a line, so that they contain the chance of its slope.
    pub(crate) is_adjusted: bool,
}

/// The overhead in a metric over the rounds, or groups of rounds, that both have a figure for. The other
/// variants adjust it if there are any and the metric is one of speed. `None` if there is no pair.
pub(crate) fn overhead<F: Borrow<BTreeMap<RoundPart, f64>>>(
    metric: Metric,
    of_baseline: &BTreeMap<RoundPart, f64>,
    own: &BTreeMap<RoundPart, f64>,
    others: impl Iterator<Item = F>,
    confidence: f64,
) -> Option<Paired> {
    let Pairs {
        base,
        own: variant,
        told,
        ..
    } = Pairs::of(metric, of_baseline, own, others);
    let told = told.and_then(|(pace, count)| {
        let usual = paired::usual_rounds(&pace, confidence)?;
        Some((
            pace,
            Adjusted {
                by: count,
                over: usual.len(),
            },
        ))
    });
    let (overhead, adjusted) = match told {
        Some((pace, adjusted)) => (
            paired::overhead_adjusted(&base, &variant, &pace, confidence),
            Some(adjusted),
        ),
        None => (paired::overhead(&base, &variant, confidence), None),
    };
    Some(Paired {
        // There is no overhead if there are no pairs, or if a figure is not finite.
        overhead: overhead.ok()?,
        base,
        own: variant,
        adjusted,
    })
}

/// Difference between two variants.
pub(crate) struct Paired {
    pub(crate) overhead: Overhead,
    /// The baseline's figures in the rounds that both have.
    pub(crate) base: Vec<f64>,
    /// The variant's figures in the same rounds.
    pub(crate) own: Vec<f64>,
    /// The adjustment by the other variants. `None` if the difference is not adjusted.
    pub(crate) adjusted: Option<Adjusted>,
}

/// Data on the adjustment of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adjusted {
    /// Number of variants that the pace was estimated from.
    pub(crate) by: usize,
    /// Number of rounds at the machine's usual speed.
    pub(crate) over: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [BTreeMap<RoundPart, f64>; 0] = [];

    fn figures(values: &[f64]) -> BTreeMap<RoundPart, f64> {
        let part = |round| RoundPart { round, group: 0 };
        (0..).map(part).zip(values.iter().copied()).collect()
    }

    #[test]
    fn rounds_in_which_all_are_slow_do_not_widen_the_interval() {
        let slow = [1.0, 1.4, 0.8, 1.1, 1.3, 0.9, 1.2, 0.7];
        let luck = [0.3, -0.2, 0.1, -0.3, 0.2, -0.1, 0.2, -0.2];
        let scaled = |by: f64| -> Vec<f64> { slow.iter().map(|slow| by * slow).collect() };
        let own: Vec<f64> = scaled(300.0)
            .iter()
            .zip(luck)
            .map(|(us, luck)| us + luck)
            .collect();
        let (base, own, other) = (
            figures(&scaled(100.0)),
            figures(&own),
            figures(&scaled(50.0)),
        );
        let plain = overhead(Metric::Typical, &base, &own, NONE.iter(), 0.95).unwrap();
        let adjusted = overhead(Metric::Typical, &base, &own, [&other].into_iter(), 0.95).unwrap();
        let width = |found: &Paired| found.overhead.difference.interval.unwrap().half_width();
        assert!(width(&adjusted) < 0.2 * width(&plain));
        let over_all = Some(Adjusted { by: 1, over: 8 });
        assert_eq!((plain.adjusted, adjusted.adjusted), (None, over_all));
    }

    #[test]
    fn a_difference_in_two_slow_rounds_of_twelve_is_no_claim() {
        // The systems are equal, except for 8 us more in the two rounds on a machine slower by a fifth.
        let luck = [
            0.4, -0.3, 0.1, -0.5, 0.6, -0.2, 0.3, -0.4, 0.5, -0.1, 0.2, -0.6,
        ];
        let slow = |round: usize| round < 2;
        let at = |usual: f64| -> Vec<f64> {
            let rounds = 0..12;
            let factor = |round| if slow(round) { 1.22 } else { 1.0 };
            rounds.map(|round| usual * factor(round)).collect()
        };
        let own = at(127.0).into_iter().zip(luck).enumerate();
        let own: Vec<f64> = own
            .map(|(round, (base, luck))| base + luck + if slow(round) { 8.0 } else { 0.0 })
            .collect();
        let other = at(400.0).into_iter().zip(luck.into_iter().rev());
        let other: Vec<f64> = other.map(|(us, luck)| us + luck).collect();
        let (base, own, other) = (figures(&at(127.0)), figures(&own), figures(&other));
        let found = overhead(Metric::Typical, &base, &own, [&other].into_iter(), 0.95).unwrap();
        assert_eq!(found.adjusted, Some(Adjusted { by: 1, over: 10 }));
        assert_eq!(found.overhead.claim, paired::Claim::NoDifferenceShown);
        let interval = found.overhead.difference.interval.unwrap();
        assert!(interval.half_width() < 0.5, "{interval:?}");
    }

    #[test]
    fn what_no_slow_machine_changes_is_not_adjusted() {
        let (base, own) = (figures(&[1.0; 8]), figures(&[2.0; 8]));
        let others = [figures(&[3.0; 8])];
        let found = overhead(Metric::Memory, &base, &own, others.iter(), 0.95).unwrap();
        assert_eq!(found.adjusted, None);
    }

    #[test]
    fn who_was_not_there_in_a_round_tells_nothing() {
        let (base, own) = (figures(&[1.0; 8]), figures(&[2.0; 8]));
        let others = [figures(&[3.0; 7]), figures(&[0.0; 8]), figures(&[3.0; 8])];
        let found = overhead(Metric::Typical, &base, &own, others.iter(), 0.95).unwrap();
        assert_eq!(found.adjusted.map(|it| it.by), Some(1));
        let nobody = overhead(Metric::Typical, &base, &own, others[..2].iter(), 0.95).unwrap();
        assert_eq!(nobody.adjusted, None);
    }

    #[test]
    fn only_rounds_of_both_are_paired() {
        let found = overhead(
            Metric::Typical,
            &figures(&[1.0, 2.0, 3.0]),
            &figures(&[5.0, 5.0]),
            NONE.iter(),
            0.95,
        )
        .unwrap();
        assert_eq!(found.base, [1.0, 2.0]);
        assert_eq!(found.own, [5.0, 5.0]);
    }
}
