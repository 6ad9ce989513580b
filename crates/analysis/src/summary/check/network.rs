//! Checks that the network and the clocks of the generators did not affect the figures.

use recording::{GeneratorRecord, RoundRecord, float};

use super::{Check, CheckFacts, CheckName, CheckState, GeneratorName, Limits, ratio};

/// The largest distance of the sends of two generators from the plan. It contains the error of their clocks
/// and the delay of a late start. `None` if there is one generator.
pub(super) fn clock_offset(complete: &[&RoundRecord]) -> Option<Check> {
    let worst = worst(complete, |one| one.clock_error_us + one.began_late_us)?;
    let facts = CheckFacts::Starts {
        worst: named(worst.1),
        clock_ahead_us: worst.1.clock_ahead_us,
    };
    Some(Limits::new(500.0, 10_000.0).judge(CheckName::ClockOffset, worst.0, facts))
}

/// Lateness of the latest of several generators. Its late sends would be hidden among the sends of the other
/// generators. The figure is the mean over its rounds, like the lateness of a single generator. The latest
/// round would be later with every additional round.
pub(super) fn generators(complete: &[&RoundRecord]) -> Option<Check> {
    let (late_us, worst) = latest(complete)?;
    let typical: Vec<f64> = each(complete)
        .filter_map(|one| one.latency_us_p50)
        .collect();
    let latency_us = typical.iter().sum::<f64>() / float(typical.len().max(1) as u64);
    let facts = CheckFacts::Latest {
        generator: named(worst),
    };
    // The limits are the same as for a single generator.
    let limits = Limits::new((0.1 * latency_us).max(100.0), latency_us.max(1000.0));
    Some(limits.judge(CheckName::GeneratorLateness, late_us, facts))
}

/// The generator with the largest mean lateness over its rounds, and this mean. The record is from its latest
/// round. `None` if there is one generator.
fn latest<'a>(complete: &'a [&'a RoundRecord]) -> Option<(f64, &'a GeneratorRecord)> {
    let late_us = |one: &GeneratorRecord| one.lateness_us_p99.unwrap_or(0.0);
    let of_shard = |first: &'a GeneratorRecord| {
        let its: Vec<&GeneratorRecord> = each(complete)
            .filter(|one| one.shard == first.shard)
            .collect();
        let mean_us = its.iter().map(|one| late_us(one)).sum::<f64>() / float(its.len() as u64);
        let worst = its
            .into_iter()
            .max_by(|one, other| late_us(one).total_cmp(&late_us(other)))?;
        Some((mean_us, worst))
    };
    let round = complete.iter().find(|round| round.generators.len() > 1)?;
    let each_shard = round.generators.iter().filter_map(of_shard);
    each_shard.max_by(|one, other| one.0.total_cmp(&other.0))
}

/// The difference of the generators' median latencies of one variant, as a share of the typical latency. A
/// generator with another route to the target, or on a busier node, measures another latency.
pub(super) fn spread(complete: &[&RoundRecord]) -> Option<Check> {
    let of_round = |round: &&RoundRecord| {
        let seen = round.generators.iter().filter_map(|one| one.latency_us_p50);
        let seen: Vec<f64> = seen.collect();
        let (least, most) = (
            seen.iter().copied().fold(f64::INFINITY, f64::min),
            seen.iter().copied().fold(0.0, f64::max),
        );
        (seen.len() > 1).then(|| ratio(most - least, (most + least) / 2.0))
    };
    let mut spreads: Vec<f64> = complete.iter().filter_map(of_round).collect();
    spreads.sort_by(f64::total_cmp);
    // The median round is used, because a single round is as noisy as its machine.
    let middle = *spreads.get(spreads.len() / 2)?;
    Some(Limits::only_weak(SPREAD_WEAK).judge(
        CheckName::GeneratorSpread,
        middle,
        CheckFacts::Figure,
    ))
}

/// Smallest spread that makes the check weak.
const SPREAD_WEAK: f64 = 0.2;

/// Retransmitted TCP segments. Each delays its request by at least 200 ms, which the system does not cause.
/// `None` if generator and target were on one machine.
pub(super) fn packet_loss(complete: &[&RoundRecord]) -> Option<Check> {
    let (mut sent, mut again) = (0, 0);
    for network in complete.iter().filter_map(|round| round.network.as_ref()) {
        sent += network.segments?;
        again += network.retransmitted?;
    }
    // Without network traffic there is no packet loss.
    if sent == 0 {
        return None;
    }
    let share = ratio(float(again), float(sent));
    let facts = CheckFacts::Segments { again, sent };
    Some(Limits::new(0.000_1, 0.01).judge(CheckName::PacketLoss, share, facts))
}

/// The variation of the round trip during the load, as a share of the typical latency. A large variation may
/// be mistaken for the tail of a system.
pub(super) fn jitter(complete: &[&RoundRecord], latency_us_p50: f64) -> Option<Check> {
    let mut all = stats::Histogram::new();
    let mut unanswered = 0;
    for network in complete.iter().filter_map(|round| round.network.as_ref()) {
        all.add(&network.round_trip_ns_hdr.histogram());
        unanswered += network.unanswered;
    }
    let quantile_us = |share: f64| all.quantile_ns(share).map(|ns| float(ns) / 1e3);
    let (middle, high) = (quantile_us(0.5)?, quantile_us(0.95)?);
    let share = ratio(high - middle, latency_us_p50);
    let facts = CheckFacts::RoundTrips {
        p50_us: middle,
        p95_us: high,
        unanswered,
    };
    let mut check = Limits::only_weak(0.5).judge(CheckName::NetworkJitter, share, facts);
    if unanswered > 0 {
        check.state = check.state.max(CheckState::Weak);
    }
    Some(check)
}

fn each<'a>(complete: &'a [&'a RoundRecord]) -> impl Iterator<Item = &'a GeneratorRecord> {
    complete.iter().flat_map(|round| &round.generators)
}

/// The generator with the largest figure, from rounds with several generators.
fn worst<'a>(
    complete: &'a [&'a RoundRecord],
    of: impl Fn(&GeneratorRecord) -> f64,
) -> Option<(f64, &'a GeneratorRecord)> {
    let several = complete.iter().filter(|round| round.generators.len() > 1);
    let each = several.flat_map(|round| &round.generators);
    each.map(|one| (of(one), one))
        .max_by(|one, other| one.0.total_cmp(&other.0))
}

fn named(one: &GeneratorRecord) -> GeneratorName {
    GeneratorName {
        shard: one.shard.to_string(),
        pod: one.pod.clone(),
        node: one.node.clone(),
    }
}

#[cfg(test)]
mod tests {
    use model::Shard;
    use recording::sample::SampleRun;
    use recording::{Hdr, NetworkRecord};

    use super::*;

    fn generator(number: u32, late_us: f64, p50_us: f64) -> GeneratorRecord {
        GeneratorRecord {
            shard: Shard::new(number, 2).expect("a shard"),
            pod: format!("g-{number}"),
            node: format!("node{number}"),
            clock_ahead_us: 4_000.0,
            clock_error_us: 30.0,
            began_late_us: 0.0,
            planned: 100,
            completed: 100,
            latency_us_p50: Some(p50_us),
            lateness_us_p99: Some(late_us),
        }
    }

    fn round(generators: Vec<GeneratorRecord>) -> RoundRecord {
        let mut round = SampleRun::open().variant("a", 700.0).build().rounds[0].clone();
        round.generators = generators;
        round
    }

    #[test]
    fn a_generator_that_lags_withholds_the_verdict_and_is_named_with_its_node() {
        let lagging = round(vec![
            generator(1, 20.0, 500.0),
            generator(2, 5_000.0, 500.0),
        ]);
        let check = generators(&[&lagging]).expect("there are two");
        assert_eq!(check.state, CheckState::Failed);
        let CheckFacts::Latest { generator: latest } = &check.facts else {
            panic!("{check:?}");
        };
        assert_eq!(latest.shard, "2/2");
        assert_eq!((&*latest.pod, &*latest.node), ("g-2", "node2"));
        let well = round(vec![generator(1, 20.0, 500.0), generator(2, 30.0, 500.0)]);
        assert_eq!(generators(&[&well]).expect("two").state, CheckState::Ok);
        assert!(generators(&[&round(vec![generator(1, 9e9, 1.0)])]).is_none());
    }

    #[test]
    fn a_generator_is_judged_over_its_rounds_and_named_as_in_its_worst() {
        let well = || round(vec![generator(1, 20.0, 500.0), generator(2, 40.0, 500.0)]);
        let mut moment = well();
        moment.generators[1].lateness_us_p99 = Some(1_100.0);
        moment.generators[1].pod = "late".to_owned();
        let rounds = [well(), moment, well(), well(), well(), well()];
        let rounds: Vec<&RoundRecord> = rounds.iter().collect();
        let check = generators(&rounds).expect("there are two");
        assert_eq!(check.state, CheckState::Weak, "a sixth of the time");
        assert!((check.figure - 1_300.0 / 6.0).abs() < 0.01);
        let CheckFacts::Latest { generator: latest } = &check.facts else {
            panic!("{check:?}");
        };
        assert_eq!(latest.pod, "late");
        assert_eq!(
            generators(&rounds[1..2]).expect("two").state,
            CheckState::Failed
        );
    }

    #[test]
    fn generators_that_see_other_latencies_are_told_of() {
        let far = round(vec![generator(1, 1.0, 500.0), generator(2, 1.0, 900.0)]);
        assert_eq!(spread(&[&far]).expect("two").state, CheckState::Weak);
        let near = round(vec![generator(1, 1.0, 500.0), generator(2, 1.0, 510.0)]);
        assert_eq!(spread(&[&near]).expect("two").state, CheckState::Ok);
    }

    #[test]
    fn a_clock_that_is_off_and_known_does_no_harm() {
        let mut two = round(vec![generator(1, 1.0, 500.0), generator(2, 1.0, 500.0)]);
        assert_eq!(clock_offset(&[&two]).expect("two").state, CheckState::Ok);
        two.generators[1].began_late_us = 20_000.0;
        assert_eq!(
            clock_offset(&[&two]).expect("two").state,
            CheckState::Failed
        );
    }

    #[test]
    fn what_was_lost_and_how_the_way_varies_is_judged_only_where_there_is_a_way() {
        let mut far = round(Vec::new());
        assert!(packet_loss(&[&far]).is_none() && jitter(&[&far], 500.0).is_none());
        let mut way = stats::Histogram::new();
        (0..100).for_each(|n| way.record_ns(40_000 + n * 10));
        far.network = Some(NetworkRecord {
            round_trip_ns_hdr: Hdr::of(&way),
            unanswered: 0,
            segments: Some(1_000),
            retransmitted: Some(20),
        });
        assert_eq!(
            packet_loss(&[&far]).expect("a way").state,
            CheckState::Failed
        );
        assert_eq!(jitter(&[&far], 500.0).expect("a way").state, CheckState::Ok);
    }
}
