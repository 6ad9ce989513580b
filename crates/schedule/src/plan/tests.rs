//! Tests of open plans.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn rate(per_second: f64) -> Rate {
    Rate::new(per_second).unwrap()
}

fn constant(per_second: f64, duration: Duration) -> Phase {
    Phase::constant(duration, rate(per_second))
}

fn ramp(from: f64, to: f64, duration: Duration) -> Phase {
    Phase {
        duration,
        from: rate(from),
        to: rate(to),
    }
}

fn uniform(phases: &[Phase]) -> OpenPlan {
    OpenPlan::new(phases, Arrival::Uniform, None).unwrap()
}

fn poisson(phases: &[Phase], seed: u64) -> OpenPlan {
    OpenPlan::new(phases, Arrival::Poisson { seed }, None).unwrap()
}

fn dues(plan: &OpenPlan) -> Vec<u64> {
    plan.slots().map(|slot| nanoseconds(slot.due)).collect()
}

fn nanoseconds(due: Duration) -> u64 {
    u64::try_from(due.as_nanos()).unwrap()
}

#[test]
fn a_constant_rate_has_equal_gaps_from_the_start() {
    let plan = uniform(&[constant(4.0, SECOND)]);
    assert_eq!(dues(&plan), [0, 250_000_000, 500_000_000, 750_000_000]);
    assert_eq!(plan.len(), 4);
    assert_eq!(plan.duration(), SECOND);
}

#[test]
fn an_hour_at_20_000_per_second_is_exact_to_the_last_nanosecond() {
    let plan = uniform(&[constant(20_000.0, HOUR)]);
    assert_eq!(plan.len(), 72_000_000);
    // This reaches slots far into the plan quickly, because shard i of n starts at slot i.
    for index in [1, 35_999_999, 71_999_999] {
        let slot = plan.shard(index, 72_000_000).next().unwrap();
        assert_eq!(slot.index, index);
        assert_eq!(nanoseconds(slot.due), index * 50_000);
    }
}

#[test]
fn gaps_that_are_no_whole_nanoseconds_do_not_add_up_errors() {
    let plan = uniform(&[constant(30_000.0, HOUR)]);
    assert_eq!(plan.len(), 108_000_000);
    for index in [1, 2, 3, 29_999, 53_999_998, 107_999_998, 107_999_999] {
        let slot = plan.shard(index, 108_000_000).next().unwrap();
        // 1e9 / 30,000 = 100,000 / 3, rounded to the nearest nanosecond.
        assert_eq!(nanoseconds(slot.due), (index * 200_000 + 3) / 6);
    }
}

#[test]
fn decimal_rates_count_as_people_do() {
    // Each of these rates is slightly inexact in binary. The number of planned requests must still be exact.
    for (per_second, seconds, count) in [
        (0.1, 60, 6),
        (0.3, 60, 18),
        (0.7, 10, 7),
        (1.1, 10, 11),
        (33.3, 10, 333),
        (0.001, 3_000, 3),
        (99.9, 1_000, 99_900),
        (0.1 + 0.2, 10, 3),
    ] {
        let plan = uniform(&[constant(per_second, Duration::from_secs(seconds))]);
        assert_eq!(plan.len(), count, "{per_second}/s for {seconds} s");
        assert_eq!(plan.slots().count() as u64, count);
    }
}

#[test]
fn a_ramp_sends_the_area_under_its_rate() {
    for (from, to) in [(0.0, 500.0), (500.0, 0.0), (100.0, 400.0), (400.0, 100.0)] {
        let plan = uniform(&[ramp(from, to, 10 * SECOND)]);
        let found = dues(&plan);
        assert_eq!(plan.len(), 2_500, "{from} to {to}");
        assert_eq!(found.len(), 2_500);
        for (index, due) in found.into_iter().enumerate() {
            // Planned requests up to `due`: the integral of the rate, in floating point.
            let time = due as f64 / 1e9;
            let planned = from * time + (to - from) * time * time / 20.0;
            assert!(
                (planned - index as f64).abs() < 1e-5,
                "{from} to {to}: slot {index} at {time} s, when {planned} were planned"
            );
        }
    }
}

#[test]
fn a_ramp_up_mirrors_a_ramp_down() {
    let up = uniform(&[ramp(0.0, 1_000.0, SECOND)]);
    let down = uniform(&[ramp(1_000.0, 0.0, SECOND)]);
    let mirrored: Vec<u64> = dues(&up)
        .into_iter()
        .skip(1)
        .rev()
        .map(|due| 1_000_000_000 - due)
        .collect();
    let without_first: Vec<u64> = dues(&down).into_iter().skip(1).collect();
    assert_eq!(mirrored, without_first);
}

#[test]
fn phases_follow_each_other_without_a_jump() {
    let plan = uniform(&[
        constant(2.0, SECOND),
        constant(0.0, SECOND),
        constant(4.0, SECOND),
    ]);
    assert_eq!(
        dues(&plan),
        [
            0,
            500_000_000,
            2_000_000_000,
            2_250_000_000,
            2_500_000_000,
            2_750_000_000
        ]
    );
    assert_eq!(plan.duration(), 3 * SECOND);
}

#[test]
fn a_request_may_be_planned_half_in_one_phase_and_half_in_the_next() {
    // The first phase has 1.5 requests, so the second slot is due half a gap into the second phase.
    let plan = uniform(&[
        constant(1.0, Duration::from_millis(1_500)),
        constant(10.0, SECOND),
    ]);
    assert_eq!(
        dues(&plan)[..4],
        [0, 1_000_000_000, 1_550_000_000, 1_650_000_000]
    );
    assert_eq!(plan.len(), 12);
}

#[test]
fn a_limit_cuts_the_plan_and_its_duration() {
    let endless = [constant(100.0, Duration::MAX)];
    let plan = OpenPlan::new(&endless, Arrival::Uniform, Some(1_000)).unwrap();
    assert_eq!(plan.len(), 1_000);
    assert_eq!(plan.slots().count(), 1_000);
    assert_eq!(plan.duration(), 10 * SECOND);

    let plan = OpenPlan::new(&endless, Arrival::Poisson { seed: 1 }, Some(1_000)).unwrap();
    assert_eq!(plan.len(), 1_000);
    let last = plan.slots().last().unwrap();
    assert_eq!(last.index, 999);
    assert!(plan.duration() > last.due);

    let ample = OpenPlan::new(&[constant(100.0, SECOND)], Arrival::Uniform, Some(1_000)).unwrap();
    assert_eq!(ample.len(), 100);
    assert_eq!(ample.duration(), SECOND);
}

#[test]
fn a_plan_without_requests_is_refused() {
    let none = |phases: &[Phase], requests_max| {
        OpenPlan::new(phases, Arrival::Uniform, requests_max).unwrap_err()
    };
    assert_eq!(none(&[], None), PlanError::NothingToSend);
    assert_eq!(
        none(&[constant(0.0, SECOND)], None),
        PlanError::NothingToSend
    );
    assert_eq!(
        none(&[constant(5.0, Duration::ZERO)], None),
        PlanError::NothingToSend
    );
    assert_eq!(
        none(&[constant(5.0, SECOND)], Some(0)),
        PlanError::NothingToSend
    );
}

#[test]
fn what_cannot_be_told_to_the_nanosecond_is_refused_by_phase() {
    let refused = |phase| {
        OpenPlan::new(&[constant(1.0, SECOND), phase], Arrival::Uniform, None)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(ramp(2e9, 1.0, SECOND)),
        "expected a rate of at most 1000000000/s, found 2000000000/s in phase 1"
    );
    assert_eq!(
        refused(ramp(1.0, 2.0, Duration::from_secs(900_000))),
        "expected a ramp of at most 10 days, found 900000s in phase 1. Split it into several phases"
    );
    // The fastest possible plan.
    let plan = uniform(&[constant(1e9, Duration::from_micros(1))]);
    assert!(dues(&plan).into_iter().eq(0..1_000));
}

#[test]
fn the_same_seed_gives_the_same_plan_on_every_machine() {
    // These constants reveal any change of the random generator or of its arithmetic. Recordings of old
    // versions contain only their seed.
    let plan = poisson(&[constant(1_000.0, SECOND)], 7);
    assert_eq!(dues(&plan)[..4], FIRST_OF_SEED_7);
    assert_eq!(dues(&plan), dues(&poisson(&[constant(1_000.0, SECOND)], 7)));
    assert_ne!(dues(&plan), dues(&poisson(&[constant(1_000.0, SECOND)], 8)));
}

const FIRST_OF_SEED_7: [u64; 4] = [301_840, 5_491_638, 5_998_997, 6_345_854];

/// Anderson-Darling's statistic for gaps against the exponential distribution with this mean (known, not
/// estimated): Anderson and Darling, "A Test of Goodness of Fit", 1954. Its 1 % point is 3.857.
fn anderson_darling(mut gaps: Vec<f64>, mean: f64) -> f64 {
    gaps.sort_unstable_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let sum: f64 = gaps
        .iter()
        .zip(gaps.iter().rev())
        .enumerate()
        .map(|(index, (low, high))| {
            let log_share_below = (-(-low / mean).exp_m1()).ln();
            let log_share_above = -high / mean;
            (2.0 * index as f64 + 1.0) * (log_share_below + log_share_above)
        })
        .sum();
    -count - sum / count
}

/// Gaps of a plan after mapping each due time through `planned`, which removes the effect of the rate.
fn gaps(plan: &OpenPlan, planned: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut last = 0.0;
    plan.slots()
        .map(|slot| {
            let now = planned(slot.due.as_secs_f64());
            let gap = now - last;
            last = now;
            gap
        })
        .collect()
}

#[test]
fn poisson_gaps_are_exponential() {
    let statistics: Vec<f64> = (0..50)
        .map(|seed| {
            let plan = poisson(&[constant(1_000.0, 5 * SECOND)], seed);
            anderson_darling(gaps(&plan, |time| time), 0.001)
        })
        .collect();
    // At the 1 % point, 50 correct plans fail 0.5 times on average. The probability of 4 or more failures is
    // 0.2 %. The mean of the statistic is 1, its standard deviation 0.76.
    let failed = statistics.iter().filter(|value| **value > 3.857).count();
    let mean = statistics.iter().sum::<f64>() / 50.0;
    assert!(failed < 4, "{failed} of 50: {statistics:?}");
    assert!((mean - 1.0).abs() < 0.45, "{mean}: {statistics:?}");
}

#[test]
fn uniform_gaps_are_not_taken_for_exponential_ones() {
    let plan = uniform(&[constant(1_000.0, 5 * SECOND)]);
    assert!(anderson_darling(gaps(&plan, |time| time).split_off(1), 0.001) > 100.0);
}

#[test]
fn poisson_ramps_are_poisson_after_undoing_the_rate() {
    let statistics: Vec<f64> = (0..20)
        .map(|seed| {
            let plan = poisson(
                &[
                    ramp(0.0, 1_000.0, 5 * SECOND),
                    ramp(1_000.0, 200.0, 5 * SECOND),
                ],
                seed,
            );
            let unit = gaps(&plan, |time| {
                let up = time.min(5.0);
                let down = (time - 5.0).max(0.0);
                100.0 * up * up + 1_000.0 * down - 80.0 * down * down
            });
            anderson_darling(unit, 1.0)
        })
        .collect();
    let failed = statistics.iter().filter(|value| **value > 3.857).count();
    assert!(failed < 3, "{failed} of 20: {statistics:?}");
}

#[test]
fn poisson_plans_send_the_planned_number_on_average() {
    let counts: Vec<f64> = (0..200)
        .map(|seed| poisson(&[constant(1_000.0, SECOND)], seed).len() as f64)
        .collect();
    let mean = counts.iter().sum::<f64>() / 200.0;
    let variance = counts
        .iter()
        .map(|count| (count - mean).powi(2))
        .sum::<f64>()
        / 199.0;
    // The mean is 1,000 with a standard error of 2.2. The variance is 1,000 with a standard error of 100.
    assert!((mean - 1_000.0).abs() < 9.0, "{mean}");
    assert!((variance - 1_000.0).abs() < 400.0, "{variance}");
}

#[test]
fn a_poisson_plan_is_not_cut_by_where_its_phases_are() {
    let whole = poisson(&[constant(1_000.0, 2 * SECOND)], 3);
    let halves = poisson(&[constant(1_000.0, SECOND), constant(1_000.0, SECOND)], 3);
    assert_eq!(dues(&whole), dues(&halves));
}

fn arb_phase() -> impl Strategy<Value = Phase> {
    let arb_rate = prop_oneof![
        Just(0.0),
        0.01_f64..2_000.0,
        (1_u32..2_000).prop_map(f64::from)
    ];
    (
        arb_rate.clone(),
        arb_rate,
        any::<bool>(),
        0_u64..3_000_000_000,
    )
        .prop_map(|(from, to, is_constant, length)| Phase {
            duration: Duration::from_nanos(length),
            from: rate(from),
            to: rate(if is_constant { from } else { to }),
        })
}

fn arb_plan() -> impl Strategy<Value = (Vec<Phase>, OpenPlan)> {
    let arb_arrival = prop_oneof![
        Just(Arrival::Uniform),
        any::<u64>().prop_map(|seed| Arrival::Poisson { seed })
    ];
    let phases = prop::collection::vec(arb_phase(), 1..5);
    (phases, arb_arrival, prop::option::of(1_u64..5_000)).prop_filter_map(
        "a plan that sends something",
        |(phases, arrival, requests_max)| {
            let plan = OpenPlan::new(&phases, arrival, requests_max).ok()?;
            Some((phases, plan))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_sorted_counted_and_inside((phases, plan) in arb_plan()) {
        let slots: Vec<Slot> = plan.slots().collect();
        prop_assert!(slots.is_sorted_by_key(|slot| slot.due));
        prop_assert!(slots.iter().map(|slot| slot.index).eq(0..slots.len() as u64));
        prop_assert_eq!(plan.len(), slots.len() as u64);
        prop_assert_eq!(plan.is_empty(), slots.is_empty());
        let end: Duration = phases.iter().map(|phase| phase.duration).sum();
        let lasts = plan.duration();
        prop_assert!(lasts <= end);
        prop_assert!(slots.iter().all(|slot| slot.due <= lasts && slot.due < end));
    }

    #[test]
    fn a_uniform_plan_has_as_many_slots_as_the_rate_adds_up_to(phase in arb_phase()) {
        let area = phase.duration.as_secs_f64()
            * f64::midpoint(phase.from.per_second(), phase.to.per_second());
        if let Ok(plan) = OpenPlan::new(&[phase], Arrival::Uniform, None) {
            let count = plan.len() as f64;
            prop_assert!(area - 1e-6 <= count && count < area + 1.0 + 1e-6, "{} for {}", count, area);
        }
    }

    #[test]
    fn shards_are_disjoint_and_together_the_plan((_, plan) in arb_plan(), shards in 1_u64..9) {
        let mut all: Vec<Slot> = (0..shards).flat_map(|shard| plan.shard(shard, shards)).collect();
        for shard in 0..shards {
            prop_assert!(plan.shard(shard, shards).all(|slot| slot.index % shards == shard));
        }
        all.sort_unstable_by_key(|slot| slot.index);
        prop_assert_eq!(all, plan.slots().collect::<Vec<_>>());
    }
}
