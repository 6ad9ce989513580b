//! Tests of paired overhead.

use proptest::prelude::*;

use super::*;

const TEN: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
        "{found} instead of {expected}"
    );
}

#[test]
fn the_estimate_is_the_median_of_walsh_averages() {
    assert_eq!(hodges_lehmann(&[]), None);
    assert_eq!(hodges_lehmann(&[3.0]), Some(3.0));
    assert_eq!(hodges_lehmann(&[1.0, 2.0]), Some(1.5));
    // Averages 1, 1.5, 2, 5.5, 6, 10: the median is 3.75, neither the median nor the mean.
    assert_eq!(hodges_lehmann(&[1.0, 2.0, 10.0]), Some(3.75));
    assert_eq!(hodges_lehmann(&[1.0, f64::NAN]), None);
    assert_eq!(hodges_lehmann(&[1.0, f64::INFINITY]), None);
}

#[test]
fn six_rounds_at_95_percent_give_nearly_their_whole_range() {
    let values = [5.0, 1.0, 4.0, 2.0, 9.0, 3.0];
    let interval = wilcoxon_interval(&values, 0.95).unwrap();
    // The whole range has 1 - 2/64, and from the second average to the last but one it is 1 - 4/64. The
    // confidence of 0.95 is 0.6 of the way. The averages at the ends are 1, 1.5 and 7, 9.
    assert_near(interval.low, 1.3);
    assert_near(interval.high, 7.8);
    assert_near(interval.confidence, 0.95);
}

#[test]
fn ranks_that_do_not_support_the_confidence_leave_it_to_student() {
    let values = [5.0, 1.0, 4.0, 2.0, 9.0, 3.0];
    assert_eq!(wilcoxon_interval(&values, 0.99), None);
    // By R: t.test(c(5, 1, 4, 2, 9, 3), conf.level = 0.99).
    let interval = location(&values, 0.99).unwrap().interval.unwrap();
    assert!((interval.low - -0.655_9).abs() < 1e-3, "{interval:?}");
    assert!((interval.high - 8.655_9).abs() < 1e-3, "{interval:?}");
    assert_eq!(location(&values[..5], 0.99).unwrap().interval, None);
    for confidence in [1.0, 0.0, f64::NAN] {
        assert_eq!(location(&values, confidence).unwrap().interval, None);
    }
}

#[test]
fn ten_rounds_at_95_percent_cut_eight_averages_at_either_end() {
    // Walsh averages of 1 to 10 are 1, 1.5, 2, 2, 2.5, 2.5, 3, 3, 3, 3.5, ...: the ninth is 3. Of the 1,024
    // sign patterns, 25 have a rank sum of 8 or less, and 33 have one of 9 or less.
    let interval = wilcoxon_interval(&TEN, 0.95).unwrap();
    let inward = 0.5 * (0.025 * 1024.0 - 25.0) / 8.0;
    assert_near(interval.low, 3.0 + inward);
    assert_near(interval.high, 8.0 - inward);
    assert!(interval.contains(3.1) && interval.contains(7.9) && !interval.contains(8.0));
}

#[test]
fn fewer_than_six_rounds_never_claim_95_percent() {
    for rounds in 1..6 {
        let baseline = &TEN[..rounds];
        let variant: Vec<f64> = baseline.iter().map(|value| value + 1_000.0).collect();
        let overhead = overhead(baseline, &variant, 0.95).unwrap();
        assert_near(overhead.difference.value, 1_000.0);
        assert_eq!(overhead.difference.interval, None);
        assert_eq!(overhead.ratio.unwrap().interval, None);
        assert_eq!(overhead.claim, Claim::TooFewRounds { needed: 6 });
    }
}

#[test]
fn rounds_needed_follow_from_the_number_of_sign_patterns() {
    for (confidence, rounds) in [(0.5, 2), (0.9, 5), (0.95, 6), (0.968_75, 6)] {
        assert_eq!(rounds_needed(confidence), rounds, "{confidence}");
        assert!(signed_rank::cut(rounds, confidence).is_some());
        assert!(signed_rank::cut(rounds - 1, confidence).is_none());
    }
    // By Student's t.
    assert_eq!([0.98, 0.99, 0.999].map(rounds_needed), [6; 3]);
    assert_eq!(rounds_needed(1.0), usize::MAX);
    assert_eq!(rounds_needed(f64::NAN), usize::MAX);
}

#[test]
fn a_claim_says_on_which_side_the_interval_is() {
    let shifted = |by: f64| -> Claim {
        // Differences of `by` -0.4, -0.3 ... +0.5.
        let variant: Vec<f64> = TEN
            .iter()
            .enumerate()
            .map(|(round, value)| value + by + (round as f64 - 4.0) / 10.0)
            .collect();
        overhead(&TEN, &variant, 0.95).unwrap().claim
    };
    assert_eq!(shifted(1.0), Claim::Higher);
    assert_eq!(shifted(-1.0), Claim::Lower);
    assert_eq!(shifted(0.0), Claim::NoDifferenceShown);
}

#[test]
fn equal_series_show_no_difference() {
    let overhead = overhead(&TEN, &TEN, 0.95).unwrap();
    assert_near(overhead.difference.value, 0.0);
    assert_near(overhead.ratio.unwrap().value, 1.0);
    assert_eq!(overhead.claim, Claim::NoDifferenceShown);
}

#[test]
fn a_ratio_is_found_where_rounds_differ_by_a_factor() {
    // The machine is ten times slower in the last round. The variant always costs 3 %.
    let variant: Vec<f64> = TEN.iter().map(|value| value * 1.03).collect();
    let overhead = overhead(&TEN, &variant, 0.95).unwrap();
    let ratio = overhead.ratio.unwrap();
    let interval = ratio.interval.unwrap();
    assert_near(ratio.value, 1.03);
    assert_near(interval.low, 1.03);
    assert_near(interval.high, 1.03);
}

#[test]
fn no_ratio_where_a_value_is_not_positive() {
    let with_zero = [0.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let compared = overhead(&with_zero, &TEN[..6], 0.95).unwrap();
    assert_eq!(compared.ratio, None);
    assert!(compared.difference.interval.is_some());
}

#[test]
fn one_spoiled_round_hardly_moves_the_estimate() {
    // Ten rounds of about +2 %, then one of them +300 %.
    let baseline = [100.0; 10];
    let mut variant = [
        101.2, 102.9, 101.6, 102.4, 101.8, 102.1, 101.4, 102.6, 102.2, 101.9,
    ];
    let clean = overhead(&baseline, &variant, 0.95).unwrap();
    let clean_mean = sample::mean(&variant).unwrap();
    variant[4] = 400.0;
    let spoiled = overhead(&baseline, &variant, 0.95).unwrap();
    let moved = spoiled.difference.value - clean.difference.value;
    let half_width = clean.difference.interval.unwrap().half_width();
    assert!(moved.abs() < half_width, "{moved} of {half_width}");
    assert!(sample::mean(&variant).unwrap() - clean_mean > 10.0 * half_width);
    assert_eq!(spoiled.claim, Claim::Higher);
}

#[test]
fn a_disputed_sign_is_noticed() {
    // The plain difference of medians is +1, although most rounds, by far, were lower.
    let baseline = [0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.0];
    let variant = [-9.0, -9.0, -9.0, -1.0, 11.0, 11.0, 11.0];
    let compared = overhead(&baseline, &variant, 0.95).unwrap();
    assert!(compared.difference.value < 0.0, "{compared:?}");
    assert!(compared.difference_of_medians < 0.0);
    assert!(!compared.is_sign_disputed());

    let variant = [-9.0, -9.0, -9.0, 10.5, 10.5, 11.0, 11.0];
    let compared = overhead(&baseline, &variant, 0.95).unwrap();
    assert!(compared.difference.value < 0.0, "{compared:?}");
    assert!(compared.difference_of_medians > 0.0);
    assert!(compared.is_sign_disputed());
}

#[test]
fn series_that_make_no_pairs_are_refused() {
    let refused = |baseline: &[f64], variant: &[f64], confidence| {
        overhead(baseline, variant, confidence)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(&TEN, &TEN[..9], 0.95),
        "expected 10 rounds of the variant, the number of the baseline, found 9"
    );
    assert_eq!(
        refused(&[], &[], 0.95),
        "expected at least one round, found none"
    );
    assert_eq!(
        refused(&[1.0, 2.0], &[1.0, f64::NAN], 0.95),
        "expected finite values, found NaN in round 1"
    );
    assert_eq!(
        refused(&[-1e308], &[1e308], 0.95),
        "expected finite values, found inf in round 0"
    );
    assert_eq!(
        refused(&TEN, &TEN, 95.0),
        "expected a confidence between 0 and 1, such as 0.95, found 95"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_interval_is_that_of_the_test_it_inverts(
        values in prop::collection::vec(-100.0_f64..100.0, 6..25)
    ) {
        let averages = walsh_averages(&values).unwrap();
        let cut = signed_rank::cut(values.len(), 0.95).unwrap();
        let at = |inward| cut_averages(&averages, Cut { inward, ..cut }, 0.95).unwrap();
        let (interval, next) = (at(0.0), at(1.0));
        let between = wilcoxon_interval(&values, 0.95).unwrap();
        prop_assert!(interval.low <= between.low && between.low <= next.low);
        prop_assert!(next.high <= between.high && between.high <= interval.high);
        let critical = cut.rank - 1;
        let middle = f64::midpoint(interval.low, interval.high);
        let reach = interval.half_width() + 1e-9;
        // Wilcoxon's test rejects centers just outside, and does not reject centers inside.
        for (center, is_rejected) in [
            (middle, false),
            (interval.low + 1e-9, false),
            (interval.high - 1e-9, false),
            (middle - reach, true),
            (middle + reach, true),
        ] {
            prop_assert_eq!(rank_sum(&values, center) <= critical, is_rejected, "{}", center);
        }
    }

    #[test]
    fn swapping_variant_and_baseline_turns_the_sign(
        pairs in prop::collection::vec((0.1_f64..100.0, 0.1_f64..100.0), 6..15)
    ) {
        let (baseline, variant): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let there = overhead(&baseline, &variant, 0.95).unwrap();
        let back = overhead(&variant, &baseline, 0.95).unwrap();
        prop_assert!((there.difference.value + back.difference.value).abs() < 1e-9);
        let (there_ratio, back_ratio) = (there.ratio.unwrap(), back.ratio.unwrap());
        prop_assert!((there_ratio.value * back_ratio.value - 1.0).abs() < 1e-9);
        let turned = match there.claim {
            Claim::Higher => Claim::Lower,
            Claim::Lower => Claim::Higher,
            other => other,
        };
        prop_assert_eq!(back.claim, turned);
    }
}

/// Wilcoxon's statistic by its definition: the smaller sum of the ranks of the distances from
/// `center` on either side.
fn rank_sum(values: &[f64], center: f64) -> usize {
    let mut distances: Vec<f64> = values.iter().map(|value| value - center).collect();
    distances.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let sum = |is_above: bool| -> usize {
        distances
            .iter()
            .enumerate()
            .filter(|(_, distance)| (**distance > 0.0) == is_above)
            .map(|(index, _)| index + 1)
            .sum()
    };
    sum(true).min(sum(false))
}

#[test]
fn the_interval_of_adjusted_values_is_wider_by_the_ratio_of_students_quantiles() {
    let values: Vec<f64> = [3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0].to_vec();
    let plain = location(&values, 0.95).unwrap();
    let of = |lost| {
        let adjusted = Adjustment {
            values: values.clone(),
            lost,
        };
        location_of(&adjusted, 0.95).unwrap()
    };
    assert_eq!(of(0), plain);
    // Printed tables of Student's distribution have 2.447 for 6 degrees of freedom, and 2.365 for 7.
    let by = 2.446_912 / 2.364_624;
    let found = of(1);
    assert_eq!(found.value, plain.value);
    let (wide, narrow) = (found.interval.unwrap(), plain.interval.unwrap());
    for (wide, narrow) in [(wide.low, narrow.low), (wide.high, narrow.high)] {
        let expected = plain.value + by * (narrow - plain.value);
        assert!((wide - expected).abs() < 1e-5, "{wide} {expected}");
    }
}

#[test]
fn an_interval_by_students_t_gets_exactly_its_degrees_of_freedom() {
    // Six rounds do not have 99 % by their signed ranks. The mean is 0 and the sum of squares is 28.
    let values = vec![-3.0, -2.0, -1.0, 1.0, 2.0, 3.0];
    let adjusted = Adjustment { values, lost: 1 };
    let found = location_of(&adjusted, 0.99).unwrap().interval.unwrap();
    // 4.604 is the quantile for 4 degrees of freedom, and 28 / 5 / 6 is the variance of the mean.
    let half_width = 4.604_095 * (28.0_f64 / 5.0 / 6.0).sqrt();
    assert!((found.half_width() - half_width).abs() < 1e-4, "{found:?}");
}
