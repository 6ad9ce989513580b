//! The distribution of the Mann-Whitney statistic, cut at a confidence.
//!
//! The statistic counts the pairs, one value of each series, with the larger value in the second series.
//! Under the null hypothesis every order of the values is equally likely. The largest value of all belongs to
//! the first series or to the second. So the distribution follows from the distributions of series shorter by
//! one value. The source is Mann and Whitney, "On a Test of Whether one of Two Random Variables is
//! Stochastically Larger than the Other", 1947.

use crate::normal;
use crate::signed_rank::{Cut, cut_of};

/// Up to this many pairs the distribution is exact. Above, the confidence of the normal
/// approximation is right to a tenth of a percentage point.
const EXACT_PAIRS_MAX: usize = 2500;

/// The cut of the sorted differences of all pairs with this confidence. `None` if even the whole range of the
/// differences does not have it.
pub(crate) fn cut(first: usize, second: usize, confidence: f64) -> Option<Cut> {
    if first == 0 || second == 0 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    if first * second <= EXACT_PAIRS_MAX {
        cut_of(&lower_half(first, second), tail)
    } else {
        approximate(first, second, tail)
    }
}

/// Probabilities of the counts 0, 1, 2 … up to the middle of the distribution.
fn lower_half(first: usize, second: usize) -> Vec<f64> {
    // The distribution is symmetric, so half of it is enough.
    let middle = first * second / 2;
    let certain = || {
        let mut none_larger = vec![0.0; middle + 1];
        none_larger[0] = 1.0;
        none_larger
    };
    // For series of `own` values and of 0, 1, 2 … `second` values.
    let mut by_second: Vec<Vec<f64>> = vec![certain(); second + 1];
    for own in 1..=first {
        by_second[0] = certain();
        for other in 1..=second {
            let share = own as f64 / (own + other) as f64;
            let shorter = by_second[other - 1].clone();
            let fewer = &mut by_second[other];
            // Downwards, because `fewer[count - other]` must still belong to the series shorter by one value.
            for count in (0..=middle).rev() {
                // If the largest value belongs to the first series, it is above all values of the second.
                let with_own = if count >= other {
                    fewer[count - other]
                } else {
                    0.0
                };
                fewer[count] = share * with_own + (1.0 - share) * shorter[count];
            }
        }
    }
    by_second.swap_remove(second)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "counts are whole, not negative here and far below 2^53"
)]
fn approximate(first: usize, second: usize, tail: f64) -> Option<Cut> {
    let (m, n) = (first as f64, second as f64);
    let mean = m * n / 2.0;
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    // Half a step, because the statistic is a whole number and the normal distribution is continuous.
    let count = (mean + normal::quantile(tail) * deviation - 0.5).floor();
    let below = |count: f64| normal::cumulative((count + 0.5 - mean) / deviation);
    (count >= 0.0).then(|| Cut::between(count as usize + 1, [count, count + 1.0].map(below), tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of the Mann-Whitney test, two-sided 5 %, as statistics books print them. The first
    /// series has 4 to 10 values, the second from that number up to 20.
    const CRITICAL_AT_5_PERCENT: [&[usize]; 7] = [
        &[0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 11, 12, 13, 14],
        &[2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 17, 18, 19, 20],
        &[5, 6, 8, 10, 11, 13, 14, 16, 17, 19, 21, 22, 24, 25, 27],
        &[8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34],
        &[13, 15, 17, 19, 22, 24, 26, 29, 31, 34, 36, 38, 41],
        &[17, 20, 23, 26, 28, 31, 34, 37, 39, 42, 45, 48],
        &[23, 26, 29, 33, 36, 39, 42, 45, 48, 52, 55],
    ];

    #[test]
    fn critical_values_are_those_of_the_tables() {
        for (first, row) in (4..).zip(CRITICAL_AT_5_PERCENT) {
            for (second, critical) in (first..).zip(row) {
                let found = cut(first, second, 0.95).unwrap();
                assert_eq!(found.rank, critical + 1, "{first} and {second} values");
                let swapped = cut(second, first, 0.95).unwrap();
                assert_eq!(swapped.rank, found.rank, "either way round");
            }
        }
        assert_eq!(cut(20, 20, 0.95).unwrap().rank, 128);
    }

    #[test]
    fn too_few_values_have_no_cut() {
        assert_eq!(cut(3, 3, 0.95), None);
        assert_eq!(cut(2, 7, 0.95), None);
        assert_eq!(cut(1, 30, 0.95), None);
        assert_eq!(cut(0, 30, 0.95), None);
        assert_eq!(cut(4, 4, 0.95).map(|cut| cut.rank), Some(1));
        for confidence in [0.0, 1.0, f64::NAN] {
            assert_eq!(cut(9, 9, confidence), None, "{confidence}");
        }
    }

    #[test]
    fn probabilities_of_the_smallest_counts_are_those_of_counting() {
        // Of the C(9, 4) = 126 orders of 4 and 5 values, 1, 1, 2 and 3 have the counts 0 to 3.
        let found = lower_half(4, 5);
        for (count, orders) in [1.0, 1.0, 2.0, 3.0].into_iter().enumerate() {
            assert!((found[count] - orders / 126.0).abs() < 1e-15, "{count}");
        }
        // The sum over both halves is 1. 20 pairs have a middle that belongs to neither half.
        let sum: f64 = 2.0 * found.iter().sum::<f64>() - found[10];
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn the_approximation_continues_what_is_exact() {
        for (first, second) in [(50, 50), (25, 100), (10, 250)] {
            let exact = cut_of(&lower_half(first, second), 0.025).unwrap();
            let approximate = approximate(first, second, 0.025).unwrap();
            assert!(
                exact.rank.abs_diff(approximate.rank) <= 2,
                "{first} {second}"
            );
        }
    }
}
