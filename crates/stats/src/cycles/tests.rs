//! Claims about what is left out of a side-by-side round.

use super::*;

/// Two variants, ten cycles of 10 ms, requests of 1 ms; the second variant sits in the middle.
fn quiet() -> (Vec<Vec<CycleSlot>>, Vec<u64>) {
    let dues: Vec<u64> = (0..=10).map(|cycle| cycle * 10_000_000).collect();
    let slots = |offset: u64| {
        let own = dues[..10].iter();
        own.map(|due_ns| CycleSlot {
            due_ns: due_ns + offset,
            end_ns: due_ns + offset + 1_000_000,
        })
        .collect()
    };
    (vec![slots(0), slots(5_000_000)], dues)
}

fn counted(validity: &Validity, variant: usize) -> Vec<usize> {
    (0..10)
        .filter(|cycle| validity.counts(variant, *cycle))
        .collect()
}

#[test]
fn a_quiet_round_counts_whole() {
    let (variants, dues) = quiet();
    let validity = Validity::of(&variants, &dues, &[]);
    assert_eq!(counted(&validity, 0).len(), 10);
    assert_eq!(validity.left_out(1), LeftOut::default());
}

#[test]
fn what_the_host_took_is_left_out_for_all_alike() {
    let (variants, dues) = quiet();
    let stolen = Disturbance {
        from_ns: 42_000_000,
        to_ns: 55_000_000,
        cause: Cause::Host,
    };
    let validity = Validity::of(&variants, &dues, &[stolen]);
    // It begins in cycle 4 and ends in cycle 5; answers of cycle 3 may have been under way.
    for variant in [0, 1] {
        assert_eq!(counted(&validity, variant), [0, 1, 2, 6, 7, 8, 9]);
        assert_eq!(validity.left_out(variant).host, 3);
    }
}

#[test]
fn the_variant_that_overruns_keeps_its_overrun_and_the_others_lose_what_it_disturbed() {
    let (mut variants, dues) = quiet();
    variants[1][2].end_ns = 48_000_000;
    let validity = Validity::of(&variants, &dues, &[]);
    assert_eq!(counted(&validity, 0), [0, 1, 5, 6, 7, 8, 9]);
    assert_eq!(validity.left_out(0).overrun, 3);
    assert_eq!(counted(&validity, 1).len(), 10);
}

#[test]
fn a_request_that_ends_within_a_gap_overruns_nothing() {
    let (mut variants, dues) = quiet();
    variants[1][2].end_ns = variants[1][2].due_ns + 10_000_000;
    let validity = Validity::of(&variants, &dues, &[]);
    assert_eq!(validity.left_out(0).total(), 0);
}

#[test]
fn a_cycle_is_counted_once_whatever_happened_to_it() {
    let (mut variants, dues) = quiet();
    variants[1][4].end_ns = 65_000_000;
    let of = |cause| Disturbance {
        from_ns: 45_000_000,
        to_ns: 46_000_000,
        cause,
    };
    let both = [of(Cause::Generator), of(Cause::Host)];
    let left_out = Validity::of(&variants, &dues, &both).left_out(0);
    assert_eq!(
        left_out,
        LeftOut {
            host: 2,
            generator: 0,
            overrun: 2
        }
    );
    assert_eq!(left_out.total(), 4);
}

#[test]
fn disturbances_outside_of_the_plan_leave_its_borders() {
    let (variants, dues) = quiet();
    let of = |from_ns, to_ns| Disturbance {
        from_ns,
        to_ns,
        cause: Cause::Host,
    };
    let after = Validity::of(&variants, &dues, &[of(200_000_000, 300_000_000)]);
    // The last answers may still be under way when a plan is over.
    assert_eq!(counted(&after, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    let whole = Validity::of(&variants, &dues, &[of(0, 100_000_000)]);
    assert_eq!(whole.left_out(0).total(), 10);
}
