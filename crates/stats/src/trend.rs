//! Test for a trend in a series: Mann-Kendall.
//!
//! Counts the pairs that go up minus the pairs that go down (Mann, "Nonparametric Tests Against Trend",
//! Econometrica 1945, and Kendall, "Rank Correlation Methods"). Only order counts, so a single wild value moves
//! little. The distribution is exact for short series without ties. Otherwise it is the normal distribution
//! with the correction for ties.

use std::cmp::Ordering;

use crate::normal;

/// Largest length of a series with the exact distribution.
const EXACT_MAX: usize = 30;

/// The probability (two-sided) that a series without any trend has a trend at least as clear as this series.
/// `None` for fewer than three values, or a value that is not a number.
pub fn mann_kendall(values: &[f64]) -> Option<f64> {
    if values.len() < 3 || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let score = score(values);
    let ties = tie_lengths(values);
    if ties.is_empty() && values.len() <= EXACT_MAX {
        return Some(exact(values.len(), score.unsigned_abs()));
    }
    let n = count(values.len());
    let term = |n: f64| n * (n - 1.0) * 2.0f64.mul_add(n, 5.0);
    let variance = (term(n) - ties.iter().map(|length| term(count(*length))).sum::<f64>()) / 18.0;
    // All values are equal, so there is no order to test.
    if variance <= 0.0 {
        return Some(1.0);
    }
    // One step towards zero: the continuity correction.
    let z = (signed(score).abs() - 1.0).max(0.0) / variance.sqrt();
    Some((2.0 * normal::cumulative(-z)).min(1.0))
}

/// The change from the first value to the last by the median slope (Theil and Sen). `None` for fewer than two
/// values.
pub fn theil_sen_change(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (later, value) in values.iter().enumerate() {
        for (earlier, before) in values[..later].iter().enumerate() {
            slopes.push((value - before) / count(later - earlier));
        }
    }
    let slope = crate::sample::median(&slopes)?;
    Some(slope * count(values.len() - 1))
}

/// Pairs that go up minus pairs that go down.
fn score(values: &[f64]) -> i64 {
    let mut score = 0;
    for (later, value) in values.iter().enumerate() {
        for before in &values[..later] {
            score += match value.total_cmp(before) {
                Ordering::Greater => 1,
                Ordering::Less => -1,
                Ordering::Equal => 0,
            };
        }
    }
    score
}

/// The number of occurrences of each value that occurs more than once.
fn tie_lengths(values: &[f64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .chunk_by(|one, other| one.total_cmp(other).is_eq())
        .map(<[f64]>::len)
        .filter(|length| *length > 1)
        .collect()
}

/// Share of all orders of `n` values with a score of at least `score`, either way. A score of S takes
/// `(pairs - S) / 2` inversions. The orders with that number of inversions are counted place by place.
fn exact(n: usize, score: u64) -> f64 {
    if score == 0 {
        return 1.0;
    }
    let pairs = n * (n - 1) / 2;
    // The number of orders by inversions: placing the n-th value adds 0 to n - 1 inversions, each
    // equally likely.
    let mut shares = vec![0.0; pairs + 1];
    shares[0] = 1.0;
    for place in 2..=n {
        let before = shares.clone();
        for (inversions, share) in shares.iter_mut().enumerate() {
            let from = inversions.saturating_sub(place - 1);
            *share = before[from..=inversions].iter().sum::<f64>() / count(place);
        }
    }
    let score = usize::try_from(score).expect("a score is at most the number of pairs");
    let most = (pairs - score) / 2;
    (2.0 * shares[..=most].iter().sum::<f64>()).min(1.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "series of one run are far shorter than 2^53"
)]
fn count(count: usize) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a score is below the number of pairs, far below 2^53"
)]
fn signed(score: i64) -> f64 {
    score as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_only_rises_is_one_of_all_orders() {
        // 2 of 6! orders go one way only.
        let p = mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert!((p - 2.0 / 720.0).abs() < 1e-12, "{p}");
        assert_eq!(mann_kendall(&[1.0, 2.0]), None);
    }

    #[test]
    fn the_table_of_kendall_is_met() {
        // n = 4: S of 4 or more has probability 0.167 on one side, 0.333 on both.
        let p = mann_kendall(&[1.0, 2.0, 4.0, 3.0]).unwrap();
        assert!((p - 1.0 / 3.0).abs() < 1e-9, "{p}");
        // n = 10: S of 15 or more has probability 0.108 on one side.
        let values = [1.0, 2.0, 3.0, 4.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0];
        assert_eq!(score(&values), 15);
        let p = mann_kendall(&values).unwrap();
        assert!((p - 2.0 * 0.108).abs() < 0.001, "{p}");
    }

    #[test]
    fn equal_values_show_no_trend_and_long_series_use_the_normal_law() {
        assert_eq!(mann_kendall(&[5.0; 40]), Some(1.0));
        let rising: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(mann_kendall(&rising).unwrap() < 1e-9);
        let alternating: Vec<f64> = (0..41).map(|index| f64::from(index % 2)).collect();
        assert!(mann_kendall(&alternating).unwrap() > 0.5);
    }

    #[test]
    fn one_wild_value_does_not_make_a_slope() {
        let change = theil_sen_change(&[10.0, 11.0, 12.0, 500.0, 14.0, 15.0]).unwrap();
        assert!((4.0..8.0).contains(&change), "{change}");
        assert_eq!(theil_sen_change(&[1.0]), None);
    }
}
