//! Tests of the cycles that a side-by-side round leaves out.

use super::*;

const MS: u64 = 1_000_000;

/// Ten cycles of 10 ms.
fn dues() -> Vec<u64> {
    (0..=10).map(|cycle| cycle * 10 * MS).collect()
}

fn host(from_ms: u64, to_ms: u64) -> Disturbance {
    Disturbance {
        from_ns: from_ms * MS,
        to_ns: to_ms * MS,
        cause: Cause::Host,
        variant: None,
    }
}

fn counted(validity: &Validity, variant: usize) -> Vec<usize> {
    (0..10)
        .filter(|cycle| validity.counts(variant, *cycle))
        .collect()
}

#[test]
fn a_quiet_round_counts_whole_however_long_its_answers_take() {
    for medians_ms in [[1, 1], [12, 15], [45, 400]] {
        let validity = Validity::of(&medians_ms.map(|ms| ms * MS), &dues(), &[]);
        assert_eq!(counted(&validity, 0).len(), 10);
        assert_eq!(validity.left_out(1), LeftOut::default());
    }
}

#[test]
fn what_the_host_took_is_left_out_for_all_alike() {
    let validity = Validity::of(&[MS, 2 * MS], &dues(), &[host(42, 55)]);
    // It begins in cycle 4 and ends in cycle 5. Requests of cycle 3 may have been in flight.
    for variant in [0, 1] {
        assert_eq!(counted(&validity, variant), [0, 1, 2, 6, 7, 8, 9]);
        assert_eq!(validity.left_out(variant).host, 3);
    }
}

#[test]
fn requests_that_are_expected_to_end_in_a_disturbance_are_left_out() {
    let validity = Validity::of(&[45 * MS, MS], &dues(), &[host(82, 88)]);
    // Requests of 37 to 43 ms end in it. Requests between them wait for a timer and are not affected.
    assert_eq!(counted(&validity, 0), [0, 1, 2, 5, 6, 9]);
    assert_eq!(counted(&validity, 1), [0, 1, 2, 3, 4, 5, 6, 9]);
    // No request can have ended that early.
    let early = Validity::of(&[45 * MS], &dues(), &[host(20, 25)]);
    assert_eq!(counted(&early, 0), [0, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_slower_variant_loses_no_more_cycles_than_a_faster_one() {
    let dues: Vec<u64> = (0..=100_000).map(|cycle| cycle * 10 * MS).collect();
    // Every phase of a cycle is met equally often.
    let at = |number: u64| (1_000 * number + number % 10) * MS + 500_000;
    let disturbances: Vec<Disturbance> = (1..900)
        .map(|number| Disturbance {
            from_ns: at(number),
            to_ns: at(number) + 20 * MS,
            ..host(0, 0)
        })
        .collect();
    let validity = Validity::of(&[45 * MS, 50 * MS, 400 * MS], &dues, &disturbances);
    let lost = [0, 1, 2].map(|variant| validity.left_out(variant).total());
    let (least, most) = (lost.iter().min().unwrap(), lost.iter().max().unwrap());
    assert!(most - least < most / 100, "{lost:?}");
}

#[test]
fn a_neighbor_is_in_the_way_of_the_variant_that_it_disturbed() {
    let burns = Disturbance {
        cause: Cause::Neighbor,
        variant: Some(0),
        ..host(20, 50)
    };
    let validity = Validity::of(&[MS, MS], &dues(), &[burns]);
    assert_eq!(counted(&validity, 0), [0, 5, 6, 7, 8, 9]);
    assert_eq!(validity.left_out(0).neighbor, 4);
    // The burning variant keeps its own requests and shows its cost.
    assert_eq!(counted(&validity, 1).len(), 10);
}

#[test]
fn a_cycle_is_counted_once_whatever_happened_to_it() {
    let of = |cause| Disturbance {
        cause,
        ..host(45, 46)
    };
    let all = [of(Cause::Neighbor), of(Cause::Generator), of(Cause::Host)];
    let left_out = Validity::of(&[MS], &dues(), &all).left_out(0);
    let expected = LeftOut {
        host: 2,
        ..LeftOut::default()
    };
    assert_eq!(left_out, expected);
    assert_eq!(left_out.total(), 2);
}

#[test]
fn disturbances_outside_of_the_plan_leave_its_borders() {
    let after = Validity::of(&[MS], &dues(), &[host(200, 300)]);
    // The last requests may still be in flight when a plan is over.
    assert_eq!(counted(&after, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    let whole = Validity::of(&[MS], &dues(), &[host(0, 100)]);
    assert_eq!(whole.left_out(0).total(), 10);
    let late = Validity::of(&[130 * MS], &dues(), &[host(200, 205)]);
    assert_eq!(counted(&late, 0), [0, 1, 2, 3, 4, 5, 6]);
}
