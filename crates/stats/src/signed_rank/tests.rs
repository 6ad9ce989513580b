//! Tests of the signed-rank distribution.

use super::*;

/// Largest rank sum `c` with a lower tail of at most 2.5 %, for 6 to 30 rounds. From the tables of Wilcoxon's
/// signed rank test (two-sided 5 %).
const CRITICAL_AT_5_PERCENT: [usize; 25] = [
    0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52, 58, 65, 73, 81, 89, 98, 107, 116, 126,
    137,
];

#[test]
fn critical_values_are_those_of_the_tables() {
    for (rounds, critical) in (6..).zip(CRITICAL_AT_5_PERCENT) {
        assert_eq!(
            cut(rounds, 0.95).unwrap().rank,
            critical + 1,
            "{rounds} rounds"
        );
    }
}

#[test]
fn too_few_rounds_have_no_cut() {
    for rounds in 0..6 {
        assert_eq!(cut(rounds, 0.95), None, "{rounds} rounds");
    }
    assert_eq!(cut(7, 0.99), None);
    assert_eq!(cut(8, 0.99).map(|cut| cut.rank), Some(1));
    // The highest confidence of six rounds is exactly 1 - 2/64.
    assert_eq!(cut(6, 0.968_75).map(|cut| cut.rank), Some(1));
    assert_eq!(cut(6, 0.968_76), None);
}

#[test]
fn no_cut_for_what_is_no_confidence() {
    for confidence in [0.0, 1.0, -0.5, 1.5, f64::NAN] {
        assert_eq!(cut(10, confidence), None, "{confidence}");
    }
}

#[test]
fn ends_lie_between_two_ranks_in_proportion_to_their_confidences() {
    // Of 64 sign patterns one has a rank sum of 0, and two have one of 1 or less.
    let found = cut(6, 0.95).unwrap();
    assert!(
        (found.inward - (0.025 * 64.0 - 1.0)).abs() < 1e-12,
        "{found:?}"
    );
    // A confidence that a rank has is at its value, or at the last part of the way to it.
    let exact = cut(6, 0.968_75).unwrap();
    assert_eq!((exact.rank, exact.inward), (1, 0.0));
    for rounds in 6..300 {
        let found = cut(rounds, 0.95).unwrap();
        assert!(
            (0.0..=1.0).contains(&found.inward),
            "{rounds} rounds: {found:?}"
        );
    }
}

#[test]
fn the_exact_distribution_is_that_of_all_sign_patterns() {
    let rounds = 8;
    let mut counts = vec![0.0; 37];
    for signs in 0..1_usize << rounds {
        let sum: usize = (0..rounds)
            .filter(|rank| signs >> rank & 1 == 1)
            .map(|rank| rank + 1)
            .sum();
        counts[sum] += 1.0 / 256.0;
    }
    assert_eq!(lower_half(rounds), counts[..=18]);
}

#[test]
fn the_approximation_joins_the_exact_distribution() {
    for confidence in [0.9, 0.95, 0.99, 0.999] {
        for rounds in [60, 80, EXACT_ROUNDS_MAX] {
            let found = approximate(rounds, (1.0 - confidence) / 2.0).unwrap();
            let half = lower_half(rounds);
            let below = |rank: usize| -> f64 { half[..rank].iter().sum() };
            let [outer, inner] = [found.rank, found.rank + 1].map(below);
            let really = 1.0 - 2.0 * (outer + found.inward * (inner - outer));
            assert!(
                (confidence - really).abs() < 0.001,
                "{rounds} rounds at {confidence}: {found:?}, but really {really}"
            );
        }
    }
}
