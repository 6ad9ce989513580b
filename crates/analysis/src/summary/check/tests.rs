//! Tests with planted faults. Each fault raises its own check and leaves the other checks in order.

use std::time::Duration;

use model::{Arrival, Load, Outcomes, Pause, Throttled};
use recording::sample::SampleRun;
use recording::{Hdr, LeftOut, LimitsText, Recording, RoundRecord, SlicesRecord};
use stats::Histogram;

use crate::summary::{Check, CheckFacts, CheckName, CheckState, Summary};

/// Two variants. The second one has the fault in every round.
fn planted(sample: SampleRun, fault: impl Fn(&mut RoundRecord)) -> Recording {
    let mut recording = sample.variant("a", 700.0).variant("b", 700.0).build();
    recording
        .rounds
        .iter_mut()
        .filter(|round| round.variant == "b")
        .for_each(fault);
    recording
}

/// The only check of `b` that is not in order. All checks of `a` are in order.
fn only_trouble(recording: &Recording) -> Check {
    let summary = Summary::of(recording);
    let troubles = |variant: &str| -> Vec<Check> {
        let row = summary.variant(variant).unwrap();
        let bad = |check: &&Check| check.state != CheckState::Ok;
        row.checks.iter().filter(bad).cloned().collect()
    };
    assert!(troubles("a").is_empty(), "{:#?}", troubles("a"));
    let mut found = troubles("b");
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn every_check_is_there_in_a_clean_recording() {
    let names = |sample: SampleRun| -> Vec<String> {
        let summary = Summary::of(&sample.variant("a", 700.0).build());
        let checks = summary.variants[0].checks.iter();
        checks.map(|check| check.name.to_string()).collect()
    };
    insta::assert_snapshot!(names(SampleRun::closed()).join(", "), @"failures, Little's law, generator CPU, generator pauses, generator starved, target stalls, drift within rounds, drift across rounds, steal time, machine load");
    insta::assert_snapshot!(names(SampleRun::open()).join(", "), @"failures, missed sends, achieved rate, lateness, arrival law, systems starved, generator CPU, generator pauses, generator starved, target stalls, drift within rounds, drift across rounds, steal time, machine load");
}

#[test]
fn a_generator_without_a_core_is_starved_and_weak_before() {
    let mut recording = planted(SampleRun::closed(), |round| {
        round.generator.waited_for_cpu = Some(Duration::from_micros(round.elapsed_us * 6 / 10));
    });
    let check = only_trouble(&recording);
    assert_eq!(
        (check.name, check.state),
        (CheckName::GeneratorStarved, CheckState::Failed)
    );
    // The same wait is little of the time over which it was counted.
    let mut longer = recording.clone();
    for round in &mut longer.rounds {
        round.generator.counted = Some(Duration::from_micros(round.elapsed_us * 10));
    }
    let checks = &Summary::of(&longer).variants[1].checks;
    assert!(checks.iter().all(|check| check.state == CheckState::Ok));
    for round in &mut recording.rounds {
        round.generator.waited_for_cpu = Some(Duration::from_micros(round.elapsed_us * 3 / 10));
    }
    let summary = Summary::of(&recording);
    assert!(summary.variants[1].has_number());
    for round in &mut recording.rounds {
        round.generator.waited_for_cpu = None;
    }
    let summary = Summary::of(&recording);
    let checks = &summary.variants[1].checks;
    assert!(checks.iter().all(|c| c.name != CheckName::GeneratorStarved));
}

#[test]
fn systems_without_a_core_are_starved_unless_a_limit_is_what_they_wait_for() {
    let waiting = |round: &mut RoundRecord| {
        let all_us = round.windows.latency_sum_ns.iter().sum::<u64>() / 1000;
        round.systems[0].waited_for_cpu_us = Some(all_us * 6 / 10);
    };
    let mut recording = planted(SampleRun::open(), waiting);
    let check = only_trouble(&recording);
    assert_eq!(
        (check.name, check.state),
        (CheckName::SystemsStarved, CheckState::Weak)
    );
    assert!((check.figure - 0.6).abs() < 0.01, "{check:?}");
    // In a closed loop, waiting for a core is intended.
    assert!(
        Summary::of(&planted(SampleRun::closed(), waiting)).variants[1]
            .checks
            .iter()
            .all(|check| check.state == CheckState::Ok)
    );
    for round in &mut recording.rounds {
        round.systems[0].throttled = Some(Throttled {
            periods: 100,
            throttled_periods: 0,
            throttled_time: Duration::ZERO,
        });
    }
    let summary = Summary::of(&recording);
    let checks = &summary.variants[1].checks;
    assert!(checks.iter().all(|c| c.name != CheckName::SystemsStarved));
}

#[test]
fn a_pause_of_the_generator_is_neither_lateness_nor_a_stall_of_the_target() {
    let recording = planted(SampleRun::open(), |round| {
        // The generator stood still for windows 50 to 59. Then it sent all requests that had become due.
        let (from, length) = (50, 10);
        round.generator.pauses = vec![Pause {
            at: Duration::from_micros(50 * round.windows.width_us),
            length: Duration::from_micros(10 * round.windows.width_us),
        }];
        let mut held_up = 0;
        for index in from..from + length {
            held_up += std::mem::take(&mut round.windows.completed[index]);
            round.windows.latency_sum_ns[index] = 0;
        }
        round.windows.completed[from + length] += held_up;
        round.windows.latency_sum_ns[from + length] += held_up * 500_000_000;
        let mut lateness = round.lateness_ns_hdr.histogram();
        lateness.record_n_ns(500_000_000, lateness.len() / 26);
        round.lateness_ns_hdr = Hdr::of(&lateness);
    });
    let check = only_trouble(&recording);
    assert_eq!(check.name, CheckName::GeneratorPauses);
    assert_eq!(check.state, CheckState::Failed);
    let CheckFacts::Pauses { longest_us, .. } = check.facts else {
        panic!("{check:?}");
    };
    assert_eq!(longest_us, 1_000_000);
}

#[test]
fn a_stall_of_the_target_is_told_from_a_pause_of_the_generator() {
    let recording = planted(SampleRun::open(), |round| {
        round.windows.completed[20..23].fill(0);
        round.windows.latency_sum_ns[20..23].fill(0);
        // Requests that waited are slow, which is not drift.
        round.windows.latency_sum_ns[23] *= 300;
    });
    let check = only_trouble(&recording);
    assert_eq!(
        (check.name, check.state),
        (CheckName::TargetStalls, CheckState::Weak)
    );
    let CheckFacts::Stalls { longest, .. } = check.facts else {
        panic!("{check:?}");
    };
    assert_eq!(longest.unwrap().length_us, 300_000);
    assert!(Summary::of(&recording).variants[1].has_number());
}

#[test]
fn a_target_that_slows_down_while_it_is_loaded_has_no_number() {
    let drift = |faster: bool| {
        planted(SampleRun::closed(), move |round| {
            let windows = round.windows.latency_sum_ns.len() as u64;
            for (index, sum_ns) in (0u64..).zip(&mut round.windows.latency_sum_ns) {
                let index = if faster { windows - index } else { index };
                *sum_ns = *sum_ns * (windows + index) / windows;
            }
        })
    };
    let slower = only_trouble(&drift(false));
    assert_eq!(
        (slower.name, slower.state),
        (CheckName::DriftWithinRounds, CheckState::Failed)
    );
    let CheckFacts::LastThird { factor, is_rising } = slower.facts else {
        panic!("{slower:?}");
    };
    assert!(is_rising && (1.55..1.57).contains(&factor), "{factor}");
    // Warming up only makes the check weak.
    let faster = only_trouble(&drift(true));
    assert_eq!(
        (faster.name, faster.state),
        (CheckName::DriftWithinRounds, CheckState::Weak)
    );
    let CheckFacts::LastThird { is_rising, .. } = faster.facts else {
        panic!("{faster:?}");
    };
    assert!(!is_rising);
}

#[test]
fn a_variant_that_gets_slower_from_round_to_round_is_told_from_a_machine_that_does() {
    let slow = |round: &mut RoundRecord| {
        let latency = round.latency_ns_hdr.histogram();
        let mut slower = Histogram::new();
        for (value_ns, count) in latency.recorded() {
            slower.record_n_ns(value_ns * (100 + 5 * u64::from(round.round)) / 100, count);
        }
        round.latency_ns_hdr = Hdr::of(&slower);
        // This keeps Little's law valid.
        round.elapsed_us = round.elapsed_us * (100 + 5 * u64::from(round.round)) / 100;
    };
    let check = only_trouble(&planted(SampleRun::closed(), slow));
    assert_eq!(
        (check.name, check.state),
        (CheckName::DriftAcrossRounds, CheckState::Failed)
    );
    let mut machine = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 700.0)
        .build();
    machine.rounds.iter_mut().for_each(slow);
    let summary = Summary::of(&machine);
    let of = |index: usize| {
        let mut checks = summary.variants[index].checks.iter();
        let check = checks.find(|check| check.name == CheckName::DriftAcrossRounds);
        check.unwrap().state
    };
    assert_eq!((of(0), of(1)), (CheckState::Weak, CheckState::Ok));
}

#[test]
fn a_limit_of_a_system_is_weak_and_one_around_everything_fails() {
    let throttled = Throttled {
        periods: 250,
        throttled_periods: 200,
        throttled_time: Duration::from_secs(9),
    };
    let mut recording = planted(SampleRun::closed(), |round| {
        round.systems[0].throttled = Some(throttled);
    });
    recording.variants[1].systems[0].limits_asked = LimitsText {
        cpus: Some(0.2),
        memory_bytes: None,
    };
    let check = only_trouble(&recording);
    assert_eq!(
        (check.name, check.state),
        (CheckName::Throttling, CheckState::Weak)
    );
    let system = "server".to_owned();
    assert_eq!(check.facts, CheckFacts::LimitOfSystem { system });
    assert!((check.figure - 0.8).abs() < 1e-9);
    let around = planted(SampleRun::closed(), |round| {
        round.machine.as_mut().unwrap().throttled = Some(throttled);
    });
    let check = only_trouble(&around);
    assert_eq!(
        (check.name, check.state),
        (CheckName::Throttling, CheckState::Failed)
    );
}

#[test]
fn other_guests_and_other_programs_are_seen() {
    let check = only_trouble(&planted(SampleRun::closed(), |round| {
        round.machine.as_mut().unwrap().steal_us = round.elapsed_us;
    }));
    assert_eq!(
        (check.name, check.state),
        (CheckName::Steal, CheckState::Failed)
    );
    // The time is much of the requested processor time, but little of all processor time.
    let check = only_trouble(&planted(SampleRun::closed(), |round| {
        let machine = round.machine.as_mut().unwrap();
        machine.cores = 12;
        machine.steal_us = round.elapsed_us;
    }));
    assert_eq!(
        (check.name, check.state),
        (CheckName::Steal, CheckState::Weak)
    );
    let check = only_trouble(&planted(SampleRun::closed(), |round| {
        round.machine.as_mut().unwrap().busy_us += round.elapsed_us / 2;
    }));
    assert_eq!(
        (check.name, check.state),
        (CheckName::MachineLoad, CheckState::Weak)
    );
    let mut before = SampleRun::closed().variant("a", 700.0).build();
    before.environment.busy_share_before = Some(0.5);
    let summary = Summary::of(&before);
    let checks = &summary.variants[0].checks;
    let check = checks.iter().find(|c| c.name == CheckName::MachineLoad);
    let CheckFacts::BusyCores { before, meanwhile } = check.unwrap().facts else {
        panic!("{check:?}");
    };
    assert_eq!(before, Some(0.5));
    assert!(meanwhile.unwrap() < 0.02, "{meanwhile:?}");
}

/// The state of the arrival check for requested Poisson arrivals of 4,000 requests/s.
fn arrivals(threads: u32, gaps: &Histogram) -> CheckState {
    let mut recording = planted(SampleRun::open(), |round| {
        round.generator.threads = threads;
        round.gaps_ns_hdr = Some(Hdr::of(gaps));
    });
    if let Load::Open { arrival, .. } = &mut recording.load.model {
        *arrival = Arrival::Poisson { seed: 7 };
    }
    let summary = Summary::of(&recording);
    let checks = &summary.variants[1].checks;
    let check = checks.iter().find(|c| c.name == CheckName::ArrivalLaw);
    check.unwrap().state
}

#[test]
fn constant_gaps_fail_where_poisson_arrivals_were_asked_for() {
    let mut constant = Histogram::new();
    constant.record_n_ns(250_000, 10_000);
    assert_eq!(arrivals(1, &constant), CheckState::Failed);
    // Quantiles of the exponential distribution with a mean of 250 us.
    let mut exponential = Histogram::new();
    for index in 1..10_000u32 {
        let share = f64::from(index) / 10_000.0;
        let gap = Duration::from_secs_f64(-(1.0 - share).ln() * 250e-6);
        exponential.record_ns(u64::from(gap.subsec_nanos()));
    }
    assert_eq!(arrivals(1, &exponential), CheckState::Ok);
    // With two threads, each sends every second request. These gaps are too irregular for that.
    assert_ne!(arrivals(2, &exponential), CheckState::Ok);
}

#[test]
fn bunched_sends_are_no_equal_gaps() {
    let check = only_trouble(&planted(SampleRun::open(), |round| {
        let mut bunched = Histogram::new();
        bunched.record_n_ns(5_000, 7_500);
        bunched.record_n_ns(1_000_000, 2_500);
        round.gaps_ns_hdr = Some(Hdr::of(&bunched));
    }));
    assert_eq!(
        (check.name, check.state),
        (CheckName::ArrivalLaw, CheckState::Failed)
    );
}

#[test]
fn in_slices_the_generator_works_for_all_variants_and_left_out_cycles_are_told() {
    let recording = planted(SampleRun::closed(), |round| {
        // Ten variants had the load in turns, so the generator's work is ten times as large.
        let took_us = round.elapsed_us * 10;
        round.generator.cpu *= 10;
        round.generator.waited_for_cpu = Some(Duration::from_micros(took_us / 200));
        round.slices = Some(SlicesRecord {
            length_us: 300_000,
            uncounted_us: 30_000,
            gap_us: 10_000,
            took_us,
            discarded: Outcomes::default(),
        });
        round.left_out = Some(LeftOut {
            cycles: 20,
            host: 4,
            ..LeftOut::default()
        });
    });
    let check = only_trouble(&recording);
    assert_eq!(
        (check.name, check.state),
        (CheckName::LeftOut, CheckState::Weak)
    );
    let facts = CheckFacts::LeftOut {
        cycles: 32,
        host: 32,
        generator: 0,
        neighbor: 0,
        overrun: 0,
        is_sliced: true,
    };
    assert_eq!(check.facts, facts);
    assert_eq!(Summary::of(&recording).slice_us, Some(300_000));
}
