//! Tests of plans that several variants share.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Arrival, Phase, Rate};
use proptest::prelude::*;

use crate::{OpenPlan, Seat};

fn plan(rate: f64, seconds: u64, arrival: Arrival) -> OpenPlan {
    let rate = Rate::new(rate).expect("a rate");
    let phase = Phase::constant(Duration::from_secs(seconds), rate);
    OpenPlan::new(&[phase], arrival, None).expect("a plan")
}

fn dues(plan: &OpenPlan, variants: usize, seed: u64) -> Vec<Vec<Duration>> {
    let of = |variant| {
        let seat = Seat {
            variant,
            variants,
            seed,
        };
        plan.seated(seat, 0, 1).map(|slot| slot.due).collect()
    };
    (0..variants).map(of).collect()
}

/// Number of times that each variant directly follows each other variant within a cycle.
fn followers(dues: &[Vec<Duration>]) -> BTreeMap<(usize, usize), usize> {
    let mut counts = BTreeMap::new();
    for cycle in 0..dues[0].len() {
        let mut order: Vec<usize> = (0..dues.len()).collect();
        order.sort_by_key(|variant| dues[*variant][cycle]);
        for pair in order.windows(2) {
            *counts.entry((pair[0], pair[1])).or_default() += 1;
        }
    }
    counts
}

#[test]
fn a_variant_alone_has_the_plan_itself() {
    for arrival in [Arrival::Uniform, Arrival::Poisson { seed: 9 }] {
        let plan = plan(1_000.0, 1, arrival);
        let seated: Vec<_> = plan.seated(Seat::ALONE, 0, 1).collect();
        let slots: Vec<_> = plan.slots().collect();
        assert_eq!(seated, slots);
    }
}

#[test]
fn the_requests_of_a_due_time_are_evenly_spread_to_the_next_one() {
    let dues = dues(&plan(100.0, 1, Arrival::Uniform), 4, 7);
    for cycle in 0..100_u64 {
        let mut offsets: Vec<u128> = dues
            .iter()
            .map(|own| {
                (own[usize::try_from(cycle).unwrap()] - Duration::from_millis(10 * cycle))
                    .as_micros()
            })
            .collect();
        offsets.sort_unstable();
        for (offset, seat) in offsets.iter().zip([0, 2_500, 5_000, 7_500]) {
            let phase = offset.checked_sub(seat);
            assert!(
                phase.is_some_and(|phase| phase < 1_250),
                "cycle {cycle}: {offset} us is not in the first half of its seat"
            );
        }
    }
}

#[test]
fn an_answer_after_a_multiple_of_the_time_between_seats_meets_no_request() {
    // 100/s to two variants leave 5 ms between two seats. A response after exactly 5 ms would meet the other
    // variant's request in half of the cycles.
    let dues = dues(&plan(100.0, 20, Arrival::Uniform), 2, 7);
    let sends: Vec<i128> = dues
        .iter()
        .flatten()
        .map(|due| i128::try_from(due.as_micros()).unwrap())
        .collect();
    let meets = |answer: i128| sends.iter().any(|send| (send - answer).abs() < 100);
    let answers = dues[0]
        .iter()
        .map(|due| i128::try_from(due.as_micros()).unwrap() + 5_000);
    let share = answers.filter(|answer| meets(*answer)).count() as f64 / dues[0].len() as f64;
    // By chance it would be 4 %, which is 200 us of 5 ms.
    assert!(share < 0.12, "{share}");
}

#[test]
fn seats_begin_at_phases_that_are_spread_evenly() {
    let dues = dues(&plan(100.0, 20, Arrival::Uniform), 2, 7);
    let first = |cycle: usize| dues[0][cycle].min(dues[1][cycle]);
    let phase_us = |cycle: usize| (first(cycle).as_micros() % 10_000) as f64;
    let phases: Vec<f64> = (0..2_000).map(phase_us).collect();
    let mean = phases.iter().sum::<f64>() / 2_000.0;
    assert!((1_190.0..1_310.0).contains(&mean), "{mean}");
    let late = phases.iter().filter(|phase| **phase >= 1_875.0).count();
    assert!((420..580).contains(&late), "a quarter of 2000: {late}");
    assert!(phases.iter().all(|phase| *phase < 2_500.0));
}

#[test]
fn seats_are_drawn_anew_and_evenly_shared() {
    for variants in [2, 3, 4, 9] {
        let dues = dues(&plan(1_000.0, 9, Arrival::Uniform), variants, 3);
        let mut seats = vec![vec![0_usize; variants]; variants];
        let mut orders = std::collections::BTreeSet::new();
        let cycles = dues[0].len() / variants * variants;
        let order_of = |cycle: usize| {
            let mut order: Vec<usize> = (0..variants).collect();
            order.sort_by_key(|variant| dues[*variant][cycle]);
            order
        };
        for order in (0..cycles).map(order_of) {
            for (seat, variant) in order.iter().enumerate() {
                seats[*variant][seat] += 1;
            }
            orders.insert(order);
        }
        for own in &seats {
            assert!(
                own.iter().all(|count| *count == cycles / variants),
                "{own:?}"
            );
        }
        assert!(
            orders.len() > 1,
            "{variants} variants: always the same order"
        );
        let followed = followers(&dues);
        let even = (cycles / variants) as f64;
        for ((_, _), count) in followed {
            let share = count as f64 / even;
            assert!((0.8..=1.2).contains(&share), "{variants} variants: {share}");
        }
    }
}

#[test]
fn no_seat_follows_from_the_seat_before() {
    // With strict alternation of two variants, one would always follow its own slot of the previous cycle
    // (the slot effect of BABA…).
    let dues = dues(&plan(1_000.0, 4, Arrival::Uniform), 2, 11);
    let first: Vec<bool> = dues[0].iter().zip(&dues[1]).map(|(a, b)| a < b).collect();
    let repeats = first.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((700..=1_300).contains(&repeats), "{repeats} of 3999");
}

proptest! {
    #[test]
    fn due_times_rise_within_the_gap_of_their_cycle(
        rate in 1.0..2_000.0_f64,
        seed in any::<u64>(),
        variants in 1..7_usize,
        poisson in any::<bool>(),
    ) {
        let arrival = if poisson { Arrival::Poisson { seed } } else { Arrival::Uniform };
        let rate = Rate::new(rate).expect("a rate");
        let phase = Phase::constant(Duration::from_millis(100), rate);
        let plan = OpenPlan::new(&[phase], arrival, None).expect("a plan");
        let mut ends: Vec<Duration> = plan.slots().skip(1).map(|slot| slot.due).collect();
        ends.push(plan.duration());
        for variant in 0..variants {
            let seated: Vec<_> = plan.seated(Seat { variant, variants, seed }, 0, 1).collect();
            prop_assert_eq!(seated.len(), plan.slots().count());
            for ((own, slot), end) in seated.iter().zip(plan.slots()).zip(&ends) {
                prop_assert_eq!(own.index, slot.index);
                prop_assert!(own.due >= slot.due && (own.due < *end || slot.due == *end));
            }
        }
    }

    #[test]
    fn shards_of_a_seat_are_the_seat(seed in any::<u64>(), shards in 1..5_u64) {
        let plan = plan(500.0, 1, Arrival::Poisson { seed });
        let seat = Seat { variant: 1, variants: 3, seed };
        let mut parts: Vec<_> = (0..shards)
            .flat_map(|shard| plan.seated(seat, shard, shards))
            .collect();
        parts.sort_by_key(|slot| slot.index);
        let whole: Vec<_> = plan.seated(seat, 0, 1).collect();
        prop_assert_eq!(parts, whole);
    }
}
