//! Intervals that hold all at once, for several figures of the same rounds.
//!
//! Ten intervals of 95 % for ten quantiles are not a band of 95 %, because each may miss. Quantiles of the
//! same round rise and fall together, though, so Bonferroni's correction would be wasteful.
//!
//! Main idea: if only chance moved a round, its differences could as well have had the other sign, *all of
//! them together*. Flips of whole rounds show the largest deviation of any figure by chance. The intervals
//! are widened until they contain that worst figure as often as promised. It is the "max-T" of Westfall and
//! Young, "Resampling-Based Multiple Testing", 1993, here with Wilcoxon's signed ranks. For one figure it is
//! Wilcoxon's interval.

use crate::multiple::per_comparison_confidence;
use crate::paired::{self, Estimate};
use crate::random::Random;
use crate::sample;
use crate::signed_rank::{self, Cut};

/// Up to this many rounds, all sign patterns are tried. Above, the same number of random patterns is tried.
const EXACT_ROUNDS_MAX: usize = 13;

/// With more rounds, the confidence of comparisons is not found by flips.
const FLIPPED_ROUNDS_MAX: usize = 100;

/// Estimates of several figures, with intervals that contain all true values together with the given
/// confidence. `figures` contains a row of per-round differences for each figure, all of the same rounds.
///
/// Intervals are `None` if there are too few rounds for this many figures. The result is `None` if there is
/// no figure or no round, if rows differ in length, or if a value is not finite.
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
    // One cut for all figures, because a common rank makes the intervals hold together.
    let cut = cut(&ranked, rounds, confidence);
    let estimates = rows.iter().map(|(averages, center)| Estimate {
        value: *center,
        interval: cut.and_then(|cut| paired::cut_averages(averages, cut, confidence)),
    });
    Some(estimates.collect())
}

/// The confidence that each of several comparisons needs so that all of them hold together with `overall`
/// confidence. It lies between `overall` and the confidence of Bonferroni's correction
/// ([`per_comparison_confidence`]).
///
/// `comparisons` contains a row for each comparison, with its difference in each round. A difference is
/// `None` if the round is not in the comparison. Variants that share a baseline rise and fall together with
/// it, so they need less than unrelated ones. Flips of whole rounds show how often the least likely rank sum
/// of all rows is as unlikely as some chance. Each comparison may have the chance that the share
/// `1 - overall` of the flips reaches.
///
/// The result is Bonferroni's confidence for rows of unequal length, values that are not finite, and more
/// than 100 rounds.
#[must_use]
pub fn confidence_each(comparisons: &[Vec<Option<f64>>], overall: f64) -> f64 {
    let corrected = per_comparison_confidence(overall, comparisons.len());
    // One comparison needs no correction. Flips of many rounds take long, and a run calls this after each
    // round.
    let is_long = comparisons.iter().any(|row| row.len() > FLIPPED_ROUNDS_MAX);
    if comparisons.len() < 2 || is_long {
        return corrected;
    }
    let Some(chance) = common_chance(comparisons, 1.0 - overall) else {
        return corrected;
    };
    (1.0 - chance).clamp(overall, corrected)
}

/// The chance that each comparison may have to be outside of its interval, so that all have `allowed`
/// together. `None` without rounds.
fn common_chance(comparisons: &[Vec<Option<f64>>], allowed: f64) -> Option<f64> {
    let rounds = comparisons.first().filter(|row| !row.is_empty())?.len();
    let rows: Vec<Ranked> = comparisons
        .iter()
        .map(|row| {
            Some(row)
                .filter(|row| row.len() == rounds)
                .and_then(|row| Ranked::of(row))
        })
        .collect::<Option<_>>()?;
    let mut least: Vec<f64> = patterns(rounds)
        .map(|flips| {
            let chances = rows.iter().map(|row| row.chance(&flips));
            chances.fold(1.0, f64::min)
        })
        .collect();
    least.sort_unstable_by(f64::total_cmp);
    let count = least.len() as f64;
    let share = |patterns: usize| patterns as f64 / count;
    // The first chance that more patterns reach than are allowed, and the chance before it.
    let is_allowed = |chance: f64| share(least.partition_point(|it| *it <= chance)) <= allowed;
    let reached = least.iter().copied().find(|chance| !is_allowed(*chance))?;
    let below = least.partition_point(|it| *it < reached);
    let before = below.checked_sub(1).map_or(0.0, |last| least[last]);
    let outside = [below, least.partition_point(|it| *it <= reached)].map(share);
    // Chances between two rank sums are in proportion, as for the ends of intervals.
    let inward = Cut::between(1, outside, allowed).inward;
    Some(before + inward * (reached - before))
}

/// A comparison by its signed ranks.
struct Ranked {
    /// In the order of the rounds. `None` for rounds that are not in the comparison.
    signed: Vec<Option<SignedRank>>,
    /// The chance of a rank sum of 0, 1, 2 … or less, at either end.
    chances: Vec<f64>,
    /// The sum of all ranks.
    total: usize,
}

impl Ranked {
    fn of(row: &[Option<f64>]) -> Option<Ranked> {
        let values: Vec<f64> = row.iter().copied().flatten().collect();
        let center = paired::hodges_lehmann(&values)?;
        let mut ranks = signed_ranks(&values, center).into_iter();
        Some(Ranked {
            signed: row
                .iter()
                .map(|value| value.and_then(|_| ranks.next()))
                .collect(),
            chances: signed_rank::chances(values.len()),
            total: values.len() * (values.len() + 1) / 2,
        })
    }

    /// The chance of a rank sum that is as far from the middle as this one after some flips.
    fn chance(&self, flips: &[bool]) -> f64 {
        let each = self.signed.iter().zip(flips);
        let above = each.filter_map(|(signed, flip)| {
            signed
                .as_ref()
                .filter(|it| it.is_above != *flip)
                .map(|it| it.rank)
        });
        let above: usize = above.sum();
        let smaller = above.min(self.total - above);
        self.chances.get(smaller).copied().unwrap_or(1.0)
    }
}

/// Rank of a round by its distance from the center, and its side.
struct SignedRank {
    rank: usize,
    is_above: bool,
}

/// The signed ranks, in the order of the rounds.
fn signed_ranks(values: &[f64], center: f64) -> Vec<SignedRank> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| {
        let distance = |round: usize| (values[round] - center).abs();
        distance(*one).total_cmp(&distance(*other))
    });
    // A value at the center counts as below. One such value moves a rank sum only by its rank, the smallest.
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

/// The common cut that the worst figure passes with this confidence.
fn cut(figures: &[Vec<SignedRank>], rounds: usize, confidence: f64) -> Option<Cut> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let mut worst: Vec<usize> = patterns(rounds)
        .map(|flips| {
            figures
                .iter()
                .map(|figure| smaller_sum(figure, &flips))
                // The figure with the most uneven ranks determines the width of the intervals.
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
    // Rounded down, so that the confidence is never less than requested.
    let allowed = ((1.0 - confidence) * count) as usize;
    let rank = *worst.get(allowed)?;
    // Patterns may tie at the cut. Patterns below are outside of it, and patterns at it are outside of the
    // next one.
    let outside = [
        worst.partition_point(|sum| *sum < rank),
        worst.partition_point(|sum| *sum <= rank),
    ];
    let outside = outside.map(|patterns| patterns as f64 / count);
    (rank > 0).then(|| Cut::between(rank, outside, 1.0 - confidence))
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
    // Two-sided, because the sums above and below are equally surprising.
    above.min(total - above)
}

/// The rounds to flip: all patterns of few rounds, else random patterns from a fixed seed. The first round is
/// never flipped, because flipping all rounds has no effect here.
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
    }

    #[test]
    fn too_few_rounds_have_estimates_without_intervals() {
        let one = vec![3.1, -0.4, 2.2, 5.9, 1.3, 0.8];
        let other = vec![0.3, 1.9, -2.2, 0.1, 4.2, -1.1];
        let both = locations(&[one.clone(), other], 0.95).unwrap();
        assert!(both.iter().all(|estimate| estimate.interval.is_none()));
        assert!(locations(&[one], 0.95).unwrap()[0].interval.is_some());
    }

    const ONE: [f64; 10] = [3.1, -0.4, 2.2, 5.9, 1.3, 0.8, 4.4, 2.6, -1.2, 3.7];
    const OTHER: [f64; 10] = [0.3, 1.9, -2.2, 0.1, 4.2, -1.1, 0.9, 2.1, 3.3, -0.6];

    fn row(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_comparison_made_twice_needs_no_more_confidence() {
        assert!((confidence_each(&[row(&ONE)], 0.95) - 0.95).abs() < 1e-12);
        let twice = confidence_each(&[row(&ONE), row(&ONE)], 0.95);
        assert!((twice - 0.95).abs() < 1e-9, "{twice}");
        let unrelated = confidence_each(&[row(&ONE), row(&OTHER)], 0.95);
        assert!((0.965..=0.975).contains(&unrelated), "{unrelated}");
    }

    #[test]
    fn rounds_without_a_difference_are_in_no_rank() {
        let mut some = row(&OTHER);
        some[3] = None;
        let found = confidence_each(&[row(&ONE), some], 0.95);
        assert!((0.95..=0.975).contains(&found), "{found}");
        // Without ranks, the result is the correction that makes no assumptions.
        let bonferroni = per_comparison_confidence(0.95, 2);
        for odd in [
            vec![],
            vec![Some(1.0)],
            vec![Some(f64::NAN); 10],
            vec![None; 10],
        ] {
            let found = confidence_each(&[row(&ONE), odd], 0.95);
            assert!((found - bonferroni).abs() < 1e-12, "{found}");
        }
    }

    #[test]
    fn rows_that_do_not_fit_have_no_estimates() {
        assert_eq!(locations(&[], 0.95), None);
        assert_eq!(locations(&[vec![]], 0.95), None);
        assert_eq!(locations(&[vec![1.0], vec![1.0, 2.0]], 0.95), None);
        assert_eq!(locations(&[vec![f64::NAN; 8]], 0.95), None);
    }
}
