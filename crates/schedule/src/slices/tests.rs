//! Tests of loads that move from variant to variant.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use crate::{PlannedSlice, SliceLengths, SlicePlan};

const MS: Duration = Duration::from_millis(1);

fn plan(variants: usize, total: Duration, slice: Duration, seed: u64) -> SlicePlan {
    let lengths = SliceLengths {
        total,
        slice,
        gap: 10 * MS,
        latency: Duration::ZERO,
    };
    SlicePlan::new(variants, lengths, seed)
}

/// A plan for responses with this latency.
fn for_answers(latency: Duration, total: Duration) -> SlicePlan {
    let lengths = SliceLengths {
        total,
        slice: 300 * MS,
        gap: 10 * MS,
        latency,
    };
    SlicePlan::new(2, lengths, 1)
}

#[test]
fn a_slice_holds_twenty_latencies_of_slow_answers() {
    let plan = for_answers(50 * MS, 4_000 * MS);
    assert_eq!((plan.cycles(), plan.counted()), (4, 1_000 * MS));
    assert_eq!(plan.uncounted(), 100 * MS);
    assert_eq!(plan.slice(), 1_200 * MS);
    for slice in plan.slices(0) {
        assert!(slice.count_from - slice.from >= 100 * MS);
        assert!(slice.to - slice.count_to >= 50 * MS);
        assert_eq!(slice.count_to - slice.count_from, 1_000 * MS);
    }
    // A short latency does not change the plan.
    let fast = for_answers(MS / 2, 3_000 * MS);
    assert_eq!((fast.cycles(), fast.counted()), (12, 250 * MS));
}

#[test]
fn a_round_that_is_too_short_for_its_answers_is_one_longer_slice() {
    let short = for_answers(50 * MS, 375 * MS);
    assert_eq!((short.cycles(), short.counted()), (1, 375 * MS));
    let longer = for_answers(400 * MS, 375 * MS);
    assert_eq!((longer.cycles(), longer.counted()), (1, 2_000 * MS));
}

#[test]
fn the_phases_of_slices_are_spread_over_a_latency() {
    let plan = for_answers(10 * MS, 40_000 * MS);
    let phase = |slice: PlannedSlice| slice.count_from - slice.from - plan.uncounted();
    let phases: Vec<Duration> = plan.slices(0).into_iter().map(phase).collect();
    assert!(phases.len() > 100);
    for quarter in 0..4 {
        let bounds = (quarter * 10 * MS / 4, (quarter + 1) * 10 * MS / 4);
        let inside = phases
            .iter()
            .filter(|phase| (bounds.0..bounds.1).contains(*phase));
        let share = inside.count() as f64 / phases.len() as f64;
        assert!((0.1..0.4).contains(&share), "quarter {quarter}: {share}");
    }
}

/// For each cycle, the variants in the order of their slices.
fn orders(plan: &SlicePlan, variants: usize) -> Vec<Vec<usize>> {
    let slices: Vec<_> = (0..variants).map(|variant| plan.slices(variant)).collect();
    let order = |cycle: usize| {
        let mut order: Vec<usize> = (0..variants).collect();
        order.sort_by_key(|variant| slices[*variant][cycle].from);
        order
    };
    (0..plan.cycles()).map(order).collect()
}

#[test]
fn a_round_of_three_seconds_in_slices_of_300_ms() {
    let plan = plan(2, 3_000 * MS, 300 * MS, 1);
    // At most 270 ms of a slice count, so there are 12 cycles. Each of them counts 250 ms.
    assert_eq!(plan.cycles(), 12);
    assert_eq!(plan.counted(), 250 * MS);
    assert_eq!(plan.slice(), 280 * MS);
    assert_eq!(plan.length(), 24 * 290 * MS);
    let first = plan.slices(0)[0].from.min(plan.slices(1)[0].from);
    assert_eq!(first, Duration::ZERO);
}

#[test]
fn a_slice_that_is_short_counts_for_two_thirds() {
    let plan = plan(2, 600 * MS, 60 * MS, 1);
    assert_eq!((plan.uncounted(), plan.counted()), (20 * MS, 40 * MS));
}

#[test]
fn a_load_shorter_than_a_slice_is_one_slice() {
    let plan = plan(3, 100 * MS, 300 * MS, 1);
    assert_eq!((plan.cycles(), plan.slice()), (1, 130 * MS));
}

#[test]
fn every_variant_has_every_place_and_every_predecessor_alike() {
    for variants in [2, 3, 4, 9] {
        let cycles = 400 * variants;
        let total = 270 * MS * u32::try_from(cycles).unwrap();
        let orders = orders(&plan(variants, total, 300 * MS, 5), variants);
        assert_eq!(orders.len(), cycles);
        let mut places = vec![vec![0; variants]; variants];
        let mut followers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for order in &orders {
            for (place, variant) in order.iter().enumerate() {
                places[*variant][place] += 1;
            }
            for pair in order.windows(2) {
                *followers.entry((pair[0], pair[1])).or_default() += 1;
            }
        }
        assert!(places.iter().flatten().all(|count| *count == 400));
        for (pair, count) in followers {
            let share = f64::from(u32::try_from(count).unwrap()) / 400.0;
            assert!((0.8..=1.2).contains(&share), "{pair:?}: {share}");
        }
        let drawn: std::collections::BTreeSet<_> = orders.into_iter().collect();
        assert!(
            drawn.len() > 1,
            "{variants} variants: always the same order"
        );
    }
}

proptest! {
    #[test]
    fn slices_are_disjoint_equally_long_and_come_to_what_was_asked_for(
        variants in 1..10_usize,
        total_ms in 1..20_000_u32,
        slice_ms in 1..2_000_u32,
        gap_ms in 0..100_u32,
        latency_ms in prop_oneof![Just(0_u32), 1..500_u32],
        seed in any::<u64>(),
    ) {
        let total = total_ms * MS;
        let lengths = SliceLengths {
            total,
            slice: slice_ms * MS,
            gap: gap_ms * MS,
            latency: latency_ms * MS,
        };
        let plan = SlicePlan::new(variants, lengths, seed);
        let total = total.max(5 * latency_ms * MS);
        let mut all: Vec<PlannedSlice> = Vec::new();
        for variant in 0..variants {
            let slices = plan.slices(variant);
            let counted: Duration = slices.iter().map(|one| one.count_to - one.count_from).sum();
            // Rounding loses one nanosecond per cycle.
            let lost = total - counted;
            prop_assert!(lost.as_nanos() <= plan.cycles() as u128, "{:?} lost", lost);
            prop_assert!(slices.iter().all(|one| one.to - one.from == plan.slice()));
            prop_assert!(slices.iter().all(|one| one.from < one.count_from.max(one.count_to)));
            prop_assert!(slices.iter().all(|one| one.count_to <= one.to));
            all.extend(slices);
        }
        prop_assert!(latency_ms > 0 || plan.slice() <= slice_ms * MS);
        all.sort_by_key(|one| one.from);
        for pair in all.windows(2) {
            prop_assert_eq!(pair[1].from - pair[0].to, gap_ms * MS);
        }
        let last = all.last().expect("a slice");
        prop_assert_eq!(last.to + gap_ms * MS, plan.length());
        // The slices of a cycle end before the slices of the next one begin.
        let cycles: Vec<Vec<PlannedSlice>> = (0..variants).map(|one| plan.slices(one)).collect();
        for cycle in 1..plan.cycles() {
            let ended = cycles.iter().map(|own| own[cycle - 1].to).max();
            let begun = cycles.iter().map(|own| own[cycle].from).min();
            prop_assert!(ended <= begun);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_plan(seed in any::<u64>()) {
        let one = plan(4, 3_000 * MS, 300 * MS, seed);
        let other = plan(4, 3_000 * MS, 300 * MS, seed);
        prop_assert_eq!(orders(&one, 4), orders(&other, 4));
    }
}
