//! Tests of merged shards.

use model::{Arrival, Load, Phase, Rate};
use proptest::prelude::*;

use super::*;
use crate::sample::SampleRun;

/// A load with one measurement, which the tests overwrite.
fn load() -> Recording {
    let mut recording = SampleRun::open().rounds(1).variant("target", 700.0).build();
    recording.kind = Kind::Load;
    recording.lab = None;
    recording.load.model = Load::Open {
        phases: vec![Phase::constant(
            Duration::from_secs(1),
            Rate::new(100.0).unwrap(),
        )],
        arrival: Arrival::Uniform,
        connections_max: 10,
        requests_max: None,
    };
    recording
}

/// One generator's share of the slots, with these latencies.
fn shard(number: u32, of: u32, latencies_ns: &[u64]) -> Named {
    let mut recording = load();
    let shard = Shard::new(number, of).unwrap();
    recording.load.shard = shard;
    recording.load.start_at = Some("2026-11-23T20:00:00Z".to_owned());
    let step = usize::try_from(of).unwrap();
    let first = usize::try_from(shard.index()).unwrap();
    let own: Vec<u64> = latencies_ns
        .iter()
        .copied()
        .skip(first)
        .step_by(step)
        .collect();
    let mut latency = Histogram::new();
    own.iter().for_each(|ns| latency.record_ns(*ns));
    let round = &mut recording.rounds[0];
    round.planned = own.len() as u64;
    round.outcomes = Outcomes {
        passed: own.len() as u64,
        ..Outcomes::default()
    };
    round.statuses = [(200, own.len() as u64)].into();
    round.bytes_in = 100 * own.len() as u64;
    round.latency_ns_hdr = Hdr::of(&latency);
    round.elapsed_us = 1_000_000;
    round.windows = Windows {
        width_us: 100_000,
        completed: vec![own.len() as u64],
        errors: vec![0],
        latency_sum_ns: vec![own.iter().sum()],
    };
    (format!("{number}.json"), recording)
}

proptest! {
    #[test]
    fn the_shards_of_a_plan_are_what_one_generator_counts(
        latencies_ns in prop::collection::vec(1_000_u64..100_000_000, 1..300),
        of in 1_u32..9,
    ) {
        let whole = merge(vec![shard(1, 1, &latencies_ns)]).unwrap();
        let mut parts: Vec<Named> = (1..=of).map(|number| shard(number, of, &latencies_ns)).collect();
        // The parts may return in any order.
        parts.rotate_left(usize::try_from(of / 2).unwrap());
        let merged = merge(parts).unwrap();
        let (one, other) = (&whole.rounds[0], &merged.rounds[0]);
        prop_assert_eq!(one.outcomes, other.outcomes);
        prop_assert_eq!(one.planned, other.planned);
        prop_assert_eq!(&one.statuses, &other.statuses);
        prop_assert_eq!(one.bytes_in, other.bytes_in);
        // The histograms are equal, and so are all percentiles.
        prop_assert_eq!(&one.latency_ns_hdr, &other.latency_ns_hdr);
        prop_assert_eq!(&one.windows, &other.windows);
        prop_assert_eq!(one.elapsed_us, other.elapsed_us);
        prop_assert_eq!(merged.load.shard, Shard::WHOLE);
        prop_assert_eq!(other.generator.threads, of * one.generator.threads);
    }
}

#[test]
fn a_shard_that_began_later_is_put_where_its_clock_says() {
    let latencies_ns = [1_000_000; 8];
    let mut parts = [1, 2].map(|number| shard(number, 2, &latencies_ns));
    for ((_, recording), time) in parts.iter_mut().zip(["20:00:00", "20:00:00.25"]) {
        recording.load.start_at = None;
        recording.started_at = format!("2026-11-23T{time}Z");
    }
    let merged = merge(parts.into()).unwrap();
    let round = &merged.rounds[0];
    assert_eq!(round.elapsed_us, 1_250_000);
    assert_eq!(round.windows.completed, [4, 0, 0, 4]);
}

#[test]
fn what_is_not_each_shard_of_one_load_once_is_refused() {
    let parts = || {
        [1, 2, 3]
            .map(|number| shard(number, 3, &[1_000; 9]))
            .to_vec()
    };
    let refused = |parts: Vec<Named>| merge(parts).unwrap_err().to_string();
    let mut told = vec![refused(Vec::new())];
    let mut missing = parts();
    missing.remove(1);
    told.push(refused(missing));
    let mut last = parts();
    last.pop();
    told.push(refused(last));
    let mut twice = parts();
    twice[2] = twice[1].clone();
    told.push(refused(twice));
    let mut other = parts();
    other[2].1.load.timeout_us += 1;
    told.push(refused(other));
    let mut lab = parts();
    lab[0].1.kind = Kind::Lab;
    told.push(refused(lab));
    let mut when = parts();
    for (_, recording) in &mut when {
        recording.load.start_at = Some("soon".to_owned());
    }
    told.push(refused(when));
    insta::assert_snapshot!(told.join("\n"), @r"
    expected the recordings of all shards of a load, found none
    expected each of 3 shards once, but shard 2/3 is missing
    expected each of 3 shards once, but shard 3/3 is missing
    expected each of 3 shards once, but the shard of `2.json` appears twice
    expected shards of one load, found different timeouts in `1.json` and `3.json`
    expected shards of a single load (`weigh load --shard`), found the lab `1.json`
    `1.json` has no valid start time: failed to parse four digit integer as year: invalid digit, expected 0-9 but got s
    ");
}

#[test]
fn a_hundred_shards_with_pauses_stood_still_as_long_as_each() {
    let of = 100;
    // 30 pauses of 0.1 ms in one second are a share of 0.3 %. All lists together are longer than the limit.
    let parts = (1..=of).map(|number| {
        let (name, mut recording) = shard(number, of, &[1_000_000; 200]);
        let pause = |index: u64| Pause {
            at: Duration::from_millis(index * 30),
            length: Duration::from_micros(100),
        };
        recording.rounds[0].generator.pauses = (0..30).map(pause).collect();
        (name, recording)
    });
    let parts: Vec<Named> = parts.collect();
    let share = parts[0].1.rounds[0].paused_share();
    assert!((share - 0.003).abs() < 1e-9, "{share}");
    let merged = merge(parts).unwrap();
    let round = &merged.rounds[0];
    assert_eq!(round.planned, 200);
    assert_eq!(round.generator.pauses.len(), PAUSES_MAX);
    assert!((round.paused_share() - share).abs() < 1e-9, "{round:?}");
}
