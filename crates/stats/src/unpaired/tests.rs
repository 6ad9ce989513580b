//! Tests of series that were not measured together.

use super::*;
use crate::random::Random;
use crate::signed_rank::Cut;

/// Permeability constants of a membrane at term and at 12 to 26 weeks of pregnancy, the example of
/// Hollander, Wolfe and Chicken, table 4.1.
const AT_TERM: [f64; 10] = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
const EARLIER: [f64; 5] = [1.15, 0.88, 0.90, 0.74, 1.21];

#[test]
fn the_estimate_is_that_of_the_textbook() {
    let found = shift(&AT_TERM, &EARLIER, 0.95).unwrap();
    assert!((found.value - -0.305).abs() < 1e-9, "{}", found.value);
    // Five values are fewer than 6.
    assert_eq!(found.interval, None);
}

#[test]
fn the_interval_is_that_of_the_textbook() {
    // The book's 96 % interval leaves out the 8 lowest and the 8 highest of the 50 differences.
    let cut = rank_sum::cut(10, 5, 0.95).unwrap();
    assert_eq!(cut.rank, 9);
    let mut differences: Vec<f64> = AT_TERM
        .iter()
        .flat_map(|base| EARLIER.iter().map(move |value| value - base))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    let whole = Cut { inward: 0.0, ..cut };
    let interval = cut_averages(&differences, whole, 0.95).unwrap();
    assert!((interval.low - -0.76).abs() < 1e-9, "{}", interval.low);
    assert!((interval.high - 0.15).abs() < 1e-9, "{}", interval.high);
}

#[test]
fn fewer_than_six_rounds_on_either_side_never_support_95_percent() {
    let rounds: Vec<f64> = (0..30).map(f64::from).collect();
    for (few, many) in [(5, 30), (30, 5), (1, 1)] {
        let found = overhead(&rounds[..few], &rounds[..many], 0.95).unwrap();
        assert_eq!(found.claim, Claim::TooFewRounds { needed: 6 });
    }
    let found = overhead(&rounds[..6], &rounds[..6], 0.95).unwrap();
    assert_eq!(found.claim, Claim::NoDifferenceShown);
}

#[test]
fn six_rounds_on_both_sides_support_a_correction_for_many_comparisons() {
    for (confidence, rounds) in [(0.95, 6), (0.975, 6), (0.995, 6), (0.999, 7), (0.5, 2)] {
        assert_eq!(rounds_needed(confidence), rounds, "{confidence}");
    }
    assert_eq!(rounds_needed(1.0), usize::MAX);
    let rounds: Vec<f64> = (0..6).map(f64::from).collect();
    assert!(shift(&rounds, &rounds, 0.975).unwrap().interval.is_some());
}

#[test]
fn the_ratio_is_that_of_values_and_only_of_positive_ones() {
    let base: Vec<f64> = (10..20).map(f64::from).collect();
    let tripled: Vec<f64> = base.iter().map(|value| value * 3.0).collect();
    let found = overhead(&base, &tripled, 0.95).unwrap();
    assert_eq!(found.claim, Claim::Higher);
    assert!((found.ratio.unwrap().value - 3.0).abs() < 0.05);
    let with_zero = overhead(&[0.0, 1.0], &[1.0, 2.0], 0.95).unwrap();
    assert_eq!(with_zero.ratio, None);
}

#[test]
fn what_is_not_a_number_is_refused() {
    let good = [1.0, 2.0];
    assert_eq!(overhead(&[], &good, 0.95), Err(PairError::NoRounds));
    assert_eq!(overhead(&good, &[], 0.95), Err(PairError::NoRounds));
    assert!(matches!(
        overhead(&good, &[1.0, f64::INFINITY], 0.95),
        Err(PairError::NotFinite { round: 1, .. })
    ));
    assert_eq!(
        overhead(&good, &good, 1.0),
        Err(PairError::Confidence { confidence: 1.0 })
    );
}

#[test]
fn intervals_contain_the_true_shift_as_often_as_they_say() {
    let mut random = Random::new(11);
    // A sum of uniforms is bell-shaped enough, and needs no logarithm.
    let mut draw = |center: f64| {
        let uniform = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        let sum: f64 = (0..6).map(|_| uniform(random.next())).sum();
        center + sum - 3.0
    };
    for (first, second) in [(6, 6), (10, 8), (20, 20)] {
        let labs = 1500;
        let hits = (0..labs).filter(|_| {
            let base: Vec<f64> = (0..first).map(|_| draw(10.0)).collect();
            let own: Vec<f64> = (0..second).map(|_| draw(10.4)).collect();
            let found = overhead(&base, &own, 0.95).unwrap();
            found.difference.interval.unwrap().contains(0.4)
        });
        let share = hits.count() as f64 / f64::from(labs);
        assert!(
            (share - 0.95).abs() < 0.02,
            "{first} and {second} rounds: {share}"
        );
    }
}
