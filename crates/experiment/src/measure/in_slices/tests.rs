//! Tests of the counted parts of a load in slices.

use load::{GeneratorCost, Outcomes, SlotTimes, Statuses};
use model::Failed;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Two variants, and four cycles with slices of 130 ms. 100 ms of each slice count.
fn plan() -> SlicePlan {
    plan_for(Duration::ZERO)
}

/// The plan for responses with this latency.
fn plan_for(latency: Duration) -> SlicePlan {
    let lengths = SliceLengths {
        total: 400 * MS,
        slice: 130 * MS,
        gap: 10 * MS,
        latency,
    };
    SlicePlan::new(2, lengths, 7)
}

/// The measurement of a server that responds to one request after the other, each after `latency`.
fn measurement(plan: &SlicePlan, variant: usize, latency: Duration) -> Measurement {
    let mut slots = Vec::new();
    let (mut counted, mut discarded) = (0, 0);
    for slice in plan.slices(variant) {
        let mut at = slice.from;
        while at < slice.to {
            *(if at < slice.count_from {
                &mut discarded
            } else {
                &mut counted
            }) += 1;
            slots.push(SlotTimes {
                index: u32::try_from(slots.len()).unwrap(),
                request: 0,
                status: std::num::NonZeroU16::new(200),
                due_ns: nanoseconds(at),
                sent_ns: nanoseconds(at),
                done_ns: nanoseconds(at + latency),
                first_byte_ns: nanoseconds(at + latency),
                first_event_ns: None,
            });
            at += latency;
        }
    }
    let passed = |passed| Outcomes {
        passed,
        ..Outcomes::default()
    };
    Measurement {
        latency: Histogram::new(),
        service: Histogram::new(),
        lateness: Histogram::new(),
        gaps: Histogram::new(),
        connect: Histogram::new(),
        first_byte: Histogram::new(),
        first_byte_from_due: Histogram::new(),
        events: None,
        outcomes: passed(counted),
        statuses: Statuses::default(),
        bytes_in: 0,
        bytes_in_bodies: 0,
        encodings: std::collections::BTreeMap::new(),
        coded: load::CodedAnswers::default(),
        latency_by_status: std::collections::BTreeMap::new(),
        bytes_out: 0,
        planned: counted,
        sent: counted,
        waited: 0,
        unsolicited: 0,
        sent_again: 0,
        packets: None,
        handshakes: None,
        elapsed: plan.length(),
        sending: plan.length(),
        window_width: 100 * MS,
        windows: Vec::new(),
        generator: GeneratorCost::default(),
        failures: Vec::new(),
        interrupted: false,
        steps: Vec::new(),
        iterations: load::Iterations::default(),
        blocks: Vec::new(),
        slots,
        discarded: passed(discarded),
        began: None,
    }
}

fn rate_per_s(measurement: &Measurement) -> f64 {
    measurement.outcomes.passed as f64 / measurement.elapsed.as_secs_f64()
}

fn folded(latency: Duration, causes: &[Option<Cause>]) -> Measurement {
    let plan = plan();
    let mut measurement = measurement(&plan, 1, latency);
    let in_slices = InSlices {
        plan: &plan,
        causes: Some(causes.to_vec()),
        took: plan.length(),
    };
    in_slices.fold(&mut measurement, 1);
    measurement
}

#[test]
fn the_rate_is_that_of_a_load_without_a_break_and_a_planted_difference_is_in_it() {
    let (fast, slow) = (folded(MS, &[None; 4]), folded(MS * 5 / 4, &[None; 4]));
    assert!(
        (rate_per_s(&fast) - 1_000.0).abs() < 0.1,
        "{}",
        rate_per_s(&fast)
    );
    assert!(
        (rate_per_s(&slow) - 800.0).abs() < 0.1,
        "{}",
        rate_per_s(&slow)
    );
    assert_eq!(fast.elapsed, 400 * MS);
    let windows: Vec<u64> = fast.windows.iter().map(|window| window.completed).collect();
    assert_eq!((windows, fast.window_width), (vec![100; 4], 100 * MS));
    assert_eq!(
        (fast.latency.len(), fast.planned, fast.sent),
        (400, 400, 400)
    );
    assert_eq!(fast.discarded.passed, 120, "30 ms of each slice");
}

#[test]
fn slow_answers_have_their_own_rate_and_not_one_of_whole_steps() {
    for (latency, expected_per_s) in [(45 * MS, 1_000.0 / 45.0), (50 * MS, 20.0)] {
        let plan = plan_for(50 * MS);
        let mut measurement = measurement(&plan, 1, latency);
        let in_slices = InSlices {
            plan: &plan,
            causes: Some(vec![None; plan.cycles()]),
            took: plan.length(),
        };
        in_slices.fold(&mut measurement, 1);
        let found = rate_per_s(&measurement);
        assert!((found / expected_per_s - 1.0).abs() < 1e-4, "{found}");
        let whole = measurement.elapsed.as_nanos() / measurement.window_width.as_nanos();
        assert_eq!(
            whole,
            measurement.windows.len() as u128,
            "no window is lost"
        );
    }
}

#[test]
fn a_cycle_that_is_left_out_takes_its_requests_and_its_time_with_it() {
    let whole = folded(MS, &[None; 4]);
    let part = folded(MS, &[None, Some(Cause::Host), None, Some(Cause::Generator)]);
    assert_eq!(part.elapsed, 200 * MS);
    assert_eq!(part.outcomes.passed, 200);
    assert!((rate_per_s(&part) - rate_per_s(&whole)).abs() < 0.1);
    let all = |one: &Measurement| one.outcomes.total() + one.discarded.total();
    assert_eq!(
        all(&part),
        all(&whole),
        "every request was sent, and is counted once"
    );
    assert_eq!(part.sent, part.outcomes.passed);
}

#[test]
fn answers_of_two_statuses_are_counted_apart_without_the_beginnings_of_slices() {
    let plan = plan();
    let mut measurement = measurement(&plan, 0, MS);
    // Each fourth response is a refusal.
    for slot in measurement.slots.iter_mut().step_by(4) {
        slot.status = std::num::NonZeroU16::new(429);
    }
    measurement.latency_by_status = [200, 429].map(|it| (it, Histogram::new())).into();
    let in_slices = InSlices {
        plan: &plan,
        causes: Some(vec![None; 4]),
        took: plan.length(),
    };
    in_slices.fold(&mut measurement, 0);
    let counts = &measurement.statuses.by_code;
    assert_eq!(counts.values().sum::<u64>(), measurement.outcomes.passed);
    assert_eq!((counts[&200], counts[&429]), (300, 100));
    let latencies = &measurement.latency_by_status;
    assert_eq!((latencies[&200].len(), latencies[&429].len()), (300, 100));
}

#[test]
fn what_failed_stays_whatever_is_left_out() {
    let plan = plan();
    let mut measurement = measurement(&plan, 0, MS);
    measurement.outcomes.failed = Failed {
        timeout: 3,
        ..Failed::default()
    };
    let in_slices = InSlices {
        plan: &plan,
        causes: Some(vec![Some(Cause::Host), None, None, None]),
        took: plan.length(),
    };
    in_slices.fold(&mut measurement, 0);
    assert_eq!(measurement.outcomes.failed.timeout, 3);
    assert_eq!(measurement.planned, 303);
    let left_out = in_slices.left_out().unwrap();
    assert_eq!(
        (left_out.cycles, left_out.host, left_out.generator),
        (4, 1, 0)
    );
}

#[test]
fn a_pause_is_where_its_slice_is_and_no_longer_than_what_counts_of_it() {
    let plan = plan();
    let mut measurement = measurement(&plan, 0, MS);
    let slices = plan.slices(0);
    measurement.generator.pauses = vec![
        // Across the end of the second slice, and completely in the gap after the third.
        Pause {
            at: slices[1].to - 4 * MS,
            length: 9 * MS,
        },
        Pause {
            at: slices[2].to + MS,
            length: 5 * MS,
        },
    ];
    let in_slices = InSlices {
        plan: &plan,
        causes: Some(vec![None; 4]),
        took: plan.length(),
    };
    in_slices.fold(&mut measurement, 0);
    let (at, length) = (196 * MS, 4 * MS);
    assert_eq!(measurement.generator.pauses, [Pause { at, length }]);
}

#[test]
fn the_gap_is_as_long_as_nearly_all_answers_take() {
    let plan = plan();
    let seen = |latency: Duration| {
        let mut seen = measurement(&plan, 0, MS);
        seen.latency.record_n_ns(nanoseconds(latency), 1_000);
        seen
    };
    let gap = |latency| gap_after(&[seen(MS), seen(latency)], 300 * MS);
    assert_eq!(gap(2 * MS), 10 * MS);
    let longer = gap(40 * MS);
    assert!(longer >= 39 * MS && longer <= 41 * MS, "{longer:?}");
    assert_eq!(gap(4_000 * MS), 300 * MS);
}

#[test]
fn requests_are_counted_by_the_age_of_their_slice() {
    let plan = plan();
    let seen = [measurement(&plan, 0, MS), measurement(&plan, 1, MS)];
    assert_eq!(sent_by_age(&plan, &seen), vec![80; 13]);
}

#[test]
fn a_cycle_that_one_generator_leaves_out_counts_for_none() {
    let one = Some(vec![None, Some(true), None]);
    let other = Some(vec![None, None, Some(false)]);
    assert_eq!(
        united(vec![one.clone(), other]),
        Some(vec![None, Some(Cause::Host), Some(Cause::Generator)])
    );
    // A generator without recorded times cannot decide which cycles to leave out.
    assert_eq!(united(vec![one, None]), None);
}
