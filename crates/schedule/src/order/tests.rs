//! Tests of the order of rounds.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// Number of times that each variant had each position.
fn positions(order: &[Vec<usize>]) -> HashMap<(usize, usize), usize> {
    let mut counts = HashMap::new();
    for round in order {
        for (position, variant) in round.iter().enumerate() {
            *counts.entry((*variant, position)).or_default() += 1;
        }
    }
    counts
}

/// Number of times that each variant directly followed each other variant inside a round.
fn followers(order: &[Vec<usize>]) -> HashMap<(usize, usize), usize> {
    let mut counts = HashMap::new();
    for pair in order.iter().flat_map(|round| round.windows(2)) {
        *counts.entry((pair[0], pair[1])).or_default() += 1;
    }
    counts
}

#[test]
fn two_variants_change_places_at_random_but_evenly() {
    let order = round_order(2, 400, 1);
    for block in order.chunks(2) {
        assert_ne!(block[0], block[1], "a block has both orders");
    }
    // The order does not strictly alternate, because the first order of a block is random.
    let first = order.chunks(2).filter(|block| block[0] == [0, 1]).count();
    assert!((70..=130).contains(&first), "{first} of 200");
    let repeats = order.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((70..=130).contains(&repeats), "{repeats} of 199");
}

#[test]
fn a_block_of_an_even_number_of_variants_balances_followers_too() {
    for variants in [2, 4, 6, 10] {
        let counts = followers(&round_order(variants, variants, 5));
        assert_eq!(
            counts.len(),
            variants * (variants - 1),
            "{variants} variants"
        );
        assert!(counts.values().all(|count| *count == 1));
    }
}

#[test]
fn with_an_odd_number_nobody_follows_another_more_than_twice_a_block() {
    for variants in [3, 5, 7, 11] {
        for seed in 0..20 {
            let counts = followers(&round_order(variants, variants, seed));
            assert!(
                counts.values().all(|count| *count <= 2),
                "{variants} variants"
            );
        }
    }
}

#[test]
fn every_order_of_three_variants_occurs() {
    let mut seen = HashMap::new();
    for round in round_order(3, 600, 9) {
        *seen.entry(round).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 6);
    assert!(
        seen.values().all(|count| (60..=140).contains(count)),
        "{seen:?}"
    );
}

#[test]
fn the_seed_decides() {
    assert_eq!(round_order(5, 20, 7), round_order(5, 20, 7));
    assert_ne!(round_order(5, 20, 7), round_order(5, 20, 8));
    // A longer run with an equal seed begins like a shorter one, so that rounds can be added.
    assert_eq!(round_order(5, 20, 7)[..7], round_order(5, 7, 7));
}

#[test]
fn nothing_to_order_is_no_error() {
    assert_eq!(round_order(0, 2, 1), vec![Vec::<usize>::new(); 2]);
    assert_eq!(round_order(1, 3, 1), vec![vec![0]; 3]);
    assert!(round_order(3, 0, 1).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_round_has_every_variant_and_every_block_every_position(
        variants in 1_usize..12, rounds in 0_usize..40, seed: u64
    ) {
        let order = round_order(variants, rounds, seed);
        prop_assert_eq!(order.len(), rounds);
        for round in &order {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..variants));
        }
        for block in order.chunks(variants) {
            // In a whole block each count is exactly 1, because there are as many rounds as positions.
            prop_assert!(positions(block).values().all(|count| *count == 1));
        }
    }
}
