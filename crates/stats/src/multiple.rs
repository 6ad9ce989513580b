//! Several variants against one baseline.
//!
//! With ten variants that all equal the baseline, ten intervals of 95 % together are wrong about once in
//! three labs. Bonferroni's correction gives each interval more confidence, so that *all* of them hold
//! together with the overall confidence. It is a little conservative here, because all comparisons share the
//! baseline, and it needs no assumption at all.

use crate::paired;

/// Confidence that each of `comparisons` intervals needs so that all hold together with `overall`
/// confidence: `1 - (1 - overall) / comparisons`.
#[must_use]
pub fn per_comparison_confidence(overall: f64, comparisons: usize) -> f64 {
    // No comparison needs no correction, and a division by 0 would give a confidence of minus
    // infinity.
    let comparisons = comparisons.max(1) as f64;
    1.0 - (1.0 - overall) / comparisons
}

/// The fewest rounds that allow this number of comparisons at this overall confidence. For 0.95 it is 6 for
/// any number.
#[must_use]
pub fn rounds_needed(overall: f64, comparisons: usize) -> usize {
    paired::rounds_needed(per_comparison_confidence(overall, comparisons))
}

/// The fewest rounds that give this number of comparisons intervals by their signed ranks. These are narrower
/// than intervals by Student's t and need no normal differences. For 0.95: 6 for one comparison, 7 for two or
/// three, 8 for four to six.
#[must_use]
pub fn rounds_by_ranks(overall: f64, comparisons: usize) -> usize {
    paired::rounds_by_ranks(per_comparison_confidence(overall, comparisons))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comparison_needs_no_correction() {
        assert_eq!(
            per_comparison_confidence(0.95, 1).to_bits(),
            0.95_f64.to_bits()
        );
        assert_eq!(rounds_needed(0.95, 1), 6);
    }

    #[test]
    fn the_chances_of_error_add_up_to_the_overall_one() {
        for comparisons in 2_u32..50 {
            let each = per_comparison_confidence(0.95, comparisons as usize);
            let sum = (1.0 - each) * f64::from(comparisons);
            assert!((sum - 0.05).abs() < 1e-12, "{comparisons}: {sum}");
        }
    }

    #[test]
    fn six_rounds_are_enough_for_many_comparisons() {
        for comparisons in [1, 2, 8, 50] {
            assert_eq!(rounds_needed(0.95, comparisons), 6, "{comparisons}");
        }
        assert_eq!(rounds_needed(0.9, 1), 5);
    }

    #[test]
    fn signed_ranks_take_more_rounds_for_more_comparisons() {
        let needed: Vec<usize> = (1..=7)
            .map(|comparisons| rounds_by_ranks(0.95, comparisons))
            .collect();
        assert_eq!(needed, [6, 7, 7, 8, 8, 8, 9]);
    }
}
