use std::collections::BTreeMap;

use recording::sample::SampleRun;
use recording::{Recording, SampledSystem, WaitKind, WhyLoad, WhyPair, WhyRecord, WhyUse, float};

use super::*;
use crate::summary::Summary;

/// The amounts of one variant per request, with a little noise by round.
#[derive(Clone, Copy)]
struct Planted {
    /// Time from request to request.
    gap_us: u64,
    latency_us: f64,
    cpu_us: u64,
    waits_us: [(WaitKind, u64); 2],
    connections: u64,
}

const PLAIN: Planted = Planted {
    gap_us: 10_000,
    latency_us: 700.0,
    cpu_us: 40,
    waits_us: [(WaitKind::Input, 9000), (WaitKind::Lock, 0)],
    connections: 0,
};

const ANSWERED: u64 = 1000;

fn load(planted: Planted, noise: u64, is_sampled: bool) -> WhyLoad {
    let waits = planted.waits_us.into_iter().filter(|_| is_sampled);
    let more = if is_sampled { 1.02 } else { 1.0 };
    WhyLoad {
        answered: ANSWERED,
        elapsed_us: planted.gap_us * ANSWERED,
        latency_us_mean: (planted.latency_us + float(noise)) * more,
        connections: 4,
        connections_of_systems: Some(planted.connections * ANSWERED),
        systems: vec![WhyUse {
            name: "server".to_owned(),
            cpu_us: Some((planted.cpu_us + noise) * ANSWERED),
            waits_us: waits
                .map(|(kind, us)| (kind, (us + noise) * ANSWERED))
                .collect(),
        }],
    }
}

/// A run whose variant `b` differs from `a` in the planted amounts.
fn recording(planted: Planted) -> Recording {
    let mut recording = SampleRun::side_by_side()
        .variant("a", PLAIN.latency_us)
        .variant("b", planted.latency_us)
        .build();
    // Without the usage of normal rounds, the pairs supply it.
    for round in &mut recording.rounds {
        round.systems.clear();
    }
    let mut why = WhyRecord {
        sources: vec!["A source.".to_owned()],
        ..WhyRecord::default()
    };
    for (name, planted) in [("a", PLAIN), ("b", planted)] {
        for round in 0..6 {
            let noise = u64::from(round * 3 % 4);
            why.pairs.push(WhyPair {
                variant: name.to_owned(),
                round,
                sampled_first: false,
                plain: load(planted, noise, false),
                sampled: load(planted, noise, true),
            });
        }
        let burn = planted.cpu_us * 2;
        let waits = planted.waits_us.into_iter().map(|(kind, us)| {
            let stacks = BTreeMap::from([(format!("main;{kind:?}"), float(us))]);
            (kind, stacks)
        });
        why.systems.push(SampledSystem {
            variant: name.to_owned(),
            system: "server".to_owned(),
            cpu_us_per_request: Some(float(planted.cpu_us)),
            stacks: BTreeMap::from([
                ("main;write".to_owned(), 80),
                ("main;work".to_owned(), burn - 80),
            ]),
            waits: waits.collect(),
            blocked: BTreeMap::from([(
                "main;rest;clock_nanosleep@GLIBC_2.17;do_nanosleep [kernel]".to_owned(),
                float(planted.waits_us[1].1),
            )]),
            runtime: BTreeMap::new(),
            missing: None,
        });
    }
    recording.why = Some(why);
    recording
}

fn why(planted: Planted) -> WhySummary {
    let summary = Summary::of(&recording(planted));
    summary.why.expect("the recording has samples")
}

#[track_caller]
fn causes(planted: Planted) -> Vec<CauseKind> {
    why(planted).variants[0].causes.clone()
}

#[test]
fn each_planted_cause_is_named() {
    let burn = Planted {
        latency_us: 1200.0,
        cpu_us: 540,
        ..PLAIN
    };
    assert_eq!(causes(burn), [CauseKind::Burn]);
    let sleep = Planted {
        latency_us: 2700.0,
        waits_us: [(WaitKind::Input, 7000), (WaitKind::Timer, 2000)],
        ..PLAIN
    };
    assert_eq!(causes(sleep), [CauseKind::Sleep]);
    let connection = Planted {
        latency_us: 790.0,
        cpu_us: 130,
        connections: 1,
        ..PLAIN
    };
    let expected = [CauseKind::Connections, CauseKind::Burn];
    assert_eq!(causes(connection), expected);
}

#[test]
fn a_lock_comes_before_the_sleep_of_the_thread_that_holds_it() {
    let lock = Planted {
        latency_us: 2700.0,
        waits_us: [(WaitKind::Timer, 2100), (WaitKind::Lock, 2000)],
        ..PLAIN
    };
    assert_eq!(causes(lock), [CauseKind::Lock, CauseKind::Sleep]);
}

#[test]
fn an_equal_variant_has_no_cause() {
    assert_eq!(causes(PLAIN), []);
}

#[test]
fn idle_threads_are_no_cause_however_long_they_wait() {
    let slow = Planted {
        latency_us: 900.0,
        waits_us: [(WaitKind::Input, 20_000), (WaitKind::Thread, 5000)],
        ..PLAIN
    };
    let why = why(slow);
    assert_eq!(why.variants[0].causes, []);
    let kinds: Vec<CauseKind> = why.variants[0].parts.iter().map(|it| it.kind).collect();
    assert_eq!(kinds[..2], [CauseKind::Input, CauseKind::Thread]);
}

#[test]
fn the_samplers_cost_is_the_difference_of_each_pair() {
    let cost = why(PLAIN).cost.expect("there are pairs");
    assert!((cost.relative - 0.02).abs() < 1e-9, "{cost:?}");
    assert_eq!(cost.pairs, 12);
    assert!(cost.low.is_some());
}

#[test]
fn the_functions_that_differ_most_have_their_time_in_both() {
    let burn = Planted {
        latency_us: 1200.0,
        cpu_us: 540,
        ..PLAIN
    };
    let why = why(burn);
    let first = &why.variants[0].functions[0];
    assert_eq!(
        (first.system.as_str(), first.function.as_str()),
        ("server", "work")
    );
    assert!((first.own_us - 500.0).abs() < 1e-9, "{first:?}");
    assert!((first.baseline_us - 0.0).abs() < 1e-9, "{first:?}");
    let part = &why.variants[0].parts[0];
    assert_eq!(part.place.as_deref(), Some("work"));
}

#[test]
fn a_wait_names_its_system_call() {
    let sleep = Planted {
        latency_us: 2700.0,
        waits_us: [(WaitKind::Input, 7000), (WaitKind::Timer, 2000)],
        ..PLAIN
    };
    let why = why(sleep);
    let part = &why.variants[0].parts[0];
    assert_eq!(part.place.as_deref(), Some("Timer"));
    assert_eq!(part.system.as_deref(), Some("server"));
    assert_eq!(part.function.as_deref(), Some("rest"));
}

#[test]
fn a_timer_of_an_event_loop_is_a_sleep_unless_it_is_longer_than_the_difference() {
    let delay = |wait_us| Planted {
        latency_us: 2700.0,
        waits_us: [(WaitKind::Input, 7000), (WaitKind::TimedInput, wait_us)],
        ..PLAIN
    };
    assert_eq!(causes(delay(2000)), [CauseKind::Sleep]);
    assert_eq!(causes(delay(9000)), []);
    let busy = Planted {
        cpu_us: 2040,
        ..delay(2000)
    };
    assert_eq!(causes(busy), [CauseKind::Burn], "the loop was idle");
}

#[test]
fn a_background_thread_sleeps_all_the_time_and_is_no_cause() {
    // In a closed loop, a slow variant has more time per request, and background threads sleep through it.
    let of = |gap_us: u64, cpu_us: u64| Planted {
        gap_us,
        latency_us: float(gap_us),
        cpu_us,
        waits_us: [(WaitKind::Timer, gap_us), (WaitKind::Lock, 0)],
        ..PLAIN
    };
    let mut recording = recording(of(1200, 540));
    let why = recording.why.as_mut().expect("samples");
    let baseline = why.pairs.iter_mut().filter(|pair| pair.variant == "a");
    for pair in baseline {
        let noise = u64::from(pair.round * 3 % 4);
        pair.plain = load(of(700, 40), noise, false);
        pair.sampled = load(of(700, 40), noise, true);
    }
    let why = Summary::of(&recording).why.expect("samples");
    assert_eq!(why.variants[0].causes, [CauseKind::Burn]);
}
