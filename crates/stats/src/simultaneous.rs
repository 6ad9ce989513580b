//! Intervals that hold all at once, for several figures of the same rounds.
//!
//! Ten intervals of 95 % for ten quantiles are not a band of 95 %: each may miss. Quantiles of
//! the same round rise and fall together, though, so Bonferroni's correction would be wasteful.
//! The one idea: if nothing but chance moved a round, its differences could as well have had the
//! other sign, *all of them together*. Flipping whole rounds shows how far the worst of the
//! figures strays by chance, and the intervals are widened until that worst one is caught as
//! often as promised (the "max-T" of Westfall and Young, "Resampling-Based Multiple Testing",
//! 1993, here with Wilcoxon's signed ranks). For one figure it is
//! Wilcoxon's interval.

use crate::paired::{self, Estimate};
use crate::random::Random;
use crate::sample;
use crate::signed_rank::Cut;

/// Up to this many rounds all sign patterns are tried, above as many random ones.
const EXACT_ROUNDS_MAX: usize = 13;

/// Estimates of several figures, with intervals that contain all true values together with the
/// given confidence. `figures` holds a row of per-round differences for each figure, all of the
/// same rounds.
///
/// Intervals are `None` when there are too few rounds for this many figures. The whole is `None` when
/// there is no figure or no round, when rows differ in length, or when a value is not finite.
#[must_use]
pub fn locations(figures: &[Vec<f64>], confidence: f64) -> Option<Vec<Estimate>> {
    let rounds = figures.first()?.len();
    if figures.iter().any(|values| values.len() != rounds) {
        return None;
    }
    let rows: Vec<(Vec<f64>, f64)> = figures
        .iter()
        .map(|values| {
            let averages = paired::walsh_averages(values)?;
            let center = sample::median(&averages)?;
            Some((averages, center))
        })
        .collect::<Option<_>>()?;
    let ranked: Vec<Vec<SignedRank>> = figures
        .iter()
        .zip(&rows)
        .map(|(values, (_, center))| signed_ranks(values, *center))
        .collect();
    // One cut for all figures: a common rank is what makes the intervals hold together.
    let cut = cut(&ranked, rounds, confidence);
    let estimates = rows.iter().map(|(averages, center)| Estimate {
        value: *center,
        interval: cut.and_then(|cut| paired::cut_averages(averages, cut, confidence)),
    });
    Some(estimates.collect())
}

/// A round's place by its distance from the center, and the side it is on.
struct SignedRank {
    rank: usize,
    is_above: bool,
}

/// In the order of the rounds.
fn signed_ranks(values: &[f64], center: f64) -> Vec<SignedRank> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| {
        let distance = |round: usize| (values[round] - center).abs();
        distance(*one).total_cmp(&distance(*other))
    });
    // A value at the center counts as below; one such value moves a rank sum by its rank, the
    // smallest.
    let mut ranks: Vec<SignedRank> = values
        .iter()
        .map(|value| SignedRank {
            rank: 0,
            is_above: *value > center,
        })
        .collect();
    for (place, round) in order.into_iter().enumerate() {
        ranks[round].rank = place + 1;
    }
    ranks
}

/// The narrowest common cut that the worst figure passes with this confidence.
fn cut(figures: &[Vec<SignedRank>], rounds: usize, confidence: f64) -> Option<Cut> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let mut worst: Vec<usize> = patterns(rounds)
        .map(|flips| {
            figures
                .iter()
                .map(|figure| smaller_sum(figure, &flips))
                // The figure whose ranks are most uneven decides how far the intervals must reach.
                .min()
                .unwrap_or(0)
        })
        .collect();
    worst.sort_unstable();
    let count = worst.len() as f64;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a share of the number of patterns"
    )]
    // Rounded down: more confidence than asked, never less.
    let allowed = ((1.0 - confidence) * count) as usize;
    let rank = *worst.get(allowed)?;
    // Patterns may tie at the cut; only those strictly below are missed.
    let missed = worst.partition_point(|sum| *sum < rank);
    (rank > 0).then(|| Cut {
        rank,
        achieved: 1.0 - missed as f64 / count,
    })
}

/// The smaller of the two rank sums after flipping some rounds.
fn smaller_sum(figure: &[SignedRank], flips: &[bool]) -> usize {
    let total = figure.len() * (figure.len() + 1) / 2;
    let above: usize = figure
        .iter()
        .zip(flips)
        .filter(|(signed, flip)| signed.is_above != **flip)
        .map(|(signed, _)| signed.rank)
        .sum();
    // Two-sided: the sums above and below are equally surprising.
    above.min(total - above)
}

/// Which rounds to flip: all patterns of few rounds, else random ones that are always the same.
/// The first round is never flipped, because flipping all rounds changes nothing here.
fn patterns(rounds: usize) -> impl Iterator<Item = Vec<bool>> {
    let is_exact = rounds <= EXACT_ROUNDS_MAX;
    // As many random patterns as the largest exact case has, 4,096.
    let count = 1_u64 << (rounds.min(EXACT_ROUNDS_MAX).saturating_sub(1));
    let mut random = Random::new(0);
    (0..count).map(move |pattern| {
        (0..rounds)
            .map(|round| {
                if is_exact {
                    round > 0 && pattern >> (round - 1) & 1 == 1
                } else {
                    random.next() >> 63 == 1
                }
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paired::{location, wilcoxon_interval};

    #[test]
    fn one_figure_gets_its_wilcoxon_interval() {
        let values = [3.1, -0.4, 2.2, 5.9, 1.3, 0.8, 4.4, 2.6, -1.2, 3.7];
        for rounds in 6..=10 {
            let figure = values[..rounds].to_vec();
            let found = locations(std::slice::from_ref(&figure), 0.95).unwrap();
            assert_eq!(found, [location(&figure, 0.95).unwrap()], "{rounds} rounds");
        }
    }

    #[test]
    fn a_figure_given_twice_costs_nothing() {
        let values = vec![3.1, -0.4, 2.2, 5.9, 1.3, 0.8, 4.4, 2.6];
        let once = locations(std::slice::from_ref(&values), 0.95).unwrap();
        let twice = locations(&[values.clone(), values], 0.95).unwrap();
        assert_eq!(twice, [once[0], once[0]]);
    }

    #[test]
    fn unrelated_figures_get_wider_intervals() {
        let one = vec![3.1, -0.4, 2.2, 5.9, 1.3, 0.8, 4.4, 2.6, -1.2, 3.7];
        let other = vec![0.3, 1.9, -2.2, 0.1, 4.2, -1.1, 0.9, 2.1, 3.3, -0.6];
        let both = locations(&[one.clone(), other], 0.95).unwrap();
        let together = both[0].interval.unwrap();
        let alone = wilcoxon_interval(&one, 0.95).unwrap();
        assert!(together.low < alone.low && together.high > alone.high);
        assert!(together.achieved >= 0.95);
    }

    #[test]
    fn too_few_rounds_have_estimates_without_intervals() {
        let one = vec![3.1, -0.4, 2.2, 5.9, 1.3, 0.8];
        let other = vec![0.3, 1.9, -2.2, 0.1, 4.2, -1.1];
        let both = locations(&[one.clone(), other], 0.95).unwrap();
        assert!(both.iter().all(|estimate| estimate.interval.is_none()));
        assert!(locations(&[one], 0.95).unwrap()[0].interval.is_some());
    }

    #[test]
    fn rows_that_do_not_fit_have_no_estimates() {
        assert_eq!(locations(&[], 0.95), None);
        assert_eq!(locations(&[vec![]], 0.95), None);
        assert_eq!(locations(&[vec![1.0], vec![1.0, 2.0]], 0.95), None);
        assert_eq!(locations(&[vec![f64::NAN; 8]], 0.95), None);
    }
}
