//! Tests of plans that several variants share.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{Arrival, Phase, Rate};
use proptest::prelude::*;

use crate::{OpenPlan, Seat, Spread};

fn plan(rate: f64, seconds: u64, arrival: Arrival) -> OpenPlan {
    let rate = Rate::new(rate).expect("a rate");
    let phase = Phase::constant(Duration::from_secs(seconds), rate);
    OpenPlan::new(&[phase], arrival, None).expect("a plan")
}

fn dues(plan: &OpenPlan, variants: usize, seed: u64) -> Vec<Vec<Duration>> {
    dues_in(plan, variants, seed, Spread::Seats)
}

fn dues_in(plan: &OpenPlan, variants: usize, seed: u64, spread: Spread) -> Vec<Vec<Duration>> {
    let of = |variant| {
        let seat = Seat {
            variant,
            variants,
            seed,
            spread,
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
fn the_requests_of_a_due_time_have_one_seat_each_until_the_next_one() {
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
                phase.is_some_and(|phase| phase < 2_500),
                "cycle {cycle}: {offset} us is not in its seat"
            );
        }
    }
}

/// Share of the requests in `own` that have one of the requests in `sends` within 100 us of a later time.
fn share_met(own: &[Duration], sends: &[Duration], later_us: i128) -> f64 {
    let in_us = |due: &Duration| i128::try_from(due.as_micros()).unwrap();
    let is_met = |at: i128| {
        let next = sends.partition_point(|send| in_us(send) <= at - 100);
        sends.get(next).is_some_and(|send| in_us(send) < at + 100)
    };
    let met = own.iter().filter(|due| is_met(in_us(due) + later_us));
    met.count() as f64 / own.len() as f64
}

#[test]
fn a_response_of_any_length_meets_requests_equally_often() {
    // 400/s to two variants leave 1.25 ms between two seats. Multiples of it and values between them have
    // the same share: 200 us of 1.25 ms, less the rare times with two requests.
    let dues = dues(&plan(400.0, 100, Arrival::Uniform), 2, 7);
    let mut sends = dues.concat();
    sends.sort_unstable();
    let shares = [1_400, 1_900, 2_500, 3_125, 24_400, 25_000, 25_500, 100_000]
        .map(|response_us| share_met(&dues[0], &sends, response_us));
    for share in shares {
        // Of 40,000 responses, three standard errors are 0.55 %.
        assert!((share - 0.158).abs() < 0.006, "{shares:?}");
    }
}

#[test]
fn without_seats_another_variant_leaves_at_any_distance_equally_often() {
    let plan = plan(400.0, 100, Arrival::Uniform);
    let near = |spread: Spread, distance_us: i128| {
        let dues = dues_in(&plan, 2, 7, spread);
        share_met(&dues[0], &dues[1], distance_us)
    };
    for distance_us in [0, 150, 500, 1_250, 2_000] {
        // 200 us of 2.5 ms, less the rare times with two requests.
        let share = near(Spread::Gap, distance_us);
        assert!((share - 0.079).abs() < 0.005, "{distance_us} us: {share}");
    }
    // With seats, two variants rarely leave at the same time.
    assert!(near(Spread::Seats, 0) < 0.03);
}

#[test]
fn requests_leave_at_all_times_of_their_seat_equally_often() {
    let dues = dues(&plan(100.0, 20, Arrival::Uniform), 2, 7);
    let first = |cycle: usize| dues[0][cycle].min(dues[1][cycle]);
    let phase_us = |cycle: usize| (first(cycle).as_micros() % 10_000) as f64;
    let phases: Vec<f64> = (0..2_000).map(phase_us).collect();
    let mean = phases.iter().sum::<f64>() / 2_000.0;
    assert!((2_380.0..2_620.0).contains(&mean), "{mean}");
    let late = phases.iter().filter(|phase| **phase >= 3_750.0).count();
    assert!((420..580).contains(&late), "a quarter of 2000: {late}");
    assert!(phases.iter().all(|phase| *phase < 5_000.0));
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
        is_free in any::<bool>(),
    ) {
        let spread = if is_free { Spread::Gap } else { Spread::Seats };
        let arrival = if poisson { Arrival::Poisson { seed } } else { Arrival::Uniform };
        let rate = Rate::new(rate).expect("a rate");
        let phase = Phase::constant(Duration::from_millis(100), rate);
        let plan = OpenPlan::new(&[phase], arrival, None).expect("a plan");
        let mut ends: Vec<Duration> = plan.slots().skip(1).map(|slot| slot.due).collect();
        ends.push(plan.duration());
        for variant in 0..variants {
            let seated: Vec<_> = plan.seated(Seat { variant, variants, seed, spread }, 0, 1).collect();
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
        let seat = Seat { variant: 1, variants: 3, seed, spread: Spread::Gap };
        let mut parts: Vec<_> = (0..shards)
            .flat_map(|shard| plan.seated(seat, shard, shards))
            .collect();
        parts.sort_by_key(|slot| slot.index);
        let whole: Vec<_> = plan.seated(seat, 0, 1).collect();
        prop_assert_eq!(parts, whole);
    }
}
