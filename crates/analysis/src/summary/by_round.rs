//! Facts behind a difference that pictures show: the difference of each round, and the part of each system.

use std::collections::BTreeMap;

use model::Metric;
use recording::RoundPart;

use super::figures::{Against, Figures};
use crate::pace;

/// The difference from the baseline in one round, in the unit of the headline metric. It is adjusted like the
/// estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundDifference {
    /// Number of the round, from 1.
    pub round: u32,
    /// Variant minus baseline.
    pub difference: f64,
}

/// The difference in the processor time of one system, in microseconds per complete response. A system that
/// one side lacks has no processor time there.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemDifference {
    /// Name of the system in the lab.
    pub name: String,
    /// Variant minus baseline.
    pub cpu_us: f64,
    /// Ends of the interval. Absent with too few rounds.
    pub ends_us: Option<(f64, f64)>,
}

/// The differences in the headline metric, in the order of the rounds.
pub(super) fn rounds(
    own: &Figures,
    against: &Against<'_>,
    headline: Metric,
) -> Vec<RoundDifference> {
    let found = own.differences(against, headline).by_part;
    let each = found.into_iter().map(|(part, difference)| RoundDifference {
        round: part.round + 1,
        difference,
    });
    each.collect()
}

/// The differences of all systems of both sides, the baseline's systems first. Empty without processor time.
pub(super) fn systems(
    own: &Figures,
    against: &Against<'_>,
    confidence: f64,
) -> Vec<SystemDifference> {
    let baseline = against.baseline;
    let mut names = baseline.system_names();
    names.extend(own.system_names());
    let mut systems: Vec<SystemDifference> = Vec::new();
    for name in names {
        if systems.iter().any(|known| known.name == name) {
            continue;
        }
        let (base, variant) = (baseline.cpu_of(name), own.cpu_of(name));
        // A side without the system has zero in every round.
        let or_zero = |values: &BTreeMap<RoundPart, f64>, figures: &Figures| {
            let rounds = figures.by_part(Metric::Cpu);
            let known = |part| values.get(&part).copied().unwrap_or(0.0);
            rounds.map(|(part, _)| (part, known(part))).collect()
        };
        let others = against.others.iter();
        let found = pace::overhead(
            Metric::Cpu,
            &or_zero(&base, baseline),
            &or_zero(&variant, own),
            others.map(|other| other.by_part(Metric::Cpu).collect::<BTreeMap<_, _>>()),
            confidence,
        );
        if let Some(found) = found {
            let interval = found.overhead.difference.interval;
            systems.push(SystemDifference {
                name: name.to_owned(),
                cpu_us: found.overhead.difference.value,
                ends_us: interval.map(|ends| (ends.low, ends.high)),
            });
        }
    }
    systems
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use crate::Summary;
    use crate::summary::ClaimName;

    #[test]
    fn each_round_has_its_difference_and_the_estimate_lies_among_them() {
        let recording = SampleRun::side_by_side()
            .rounds(9)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let summary = Summary::of(&recording);
        assert_eq!(summary.variants[0].round_differences, []);
        let row = &summary.variants[1];
        let rounds: Vec<u32> = row.round_differences.iter().map(|it| it.round).collect();
        assert_eq!(rounds, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let overhead = row.metric(summary.headline).unwrap().overhead.as_ref();
        let estimate = overhead.unwrap().difference;
        let values = row.round_differences.iter().map(|it| it.difference);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        assert!(low < estimate && estimate < high, "{low} {estimate} {high}");
    }

    #[test]
    fn a_system_of_one_side_costs_nothing_on_the_other() {
        let mut recording = SampleRun::side_by_side()
            .rounds(9)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        for round in recording.rounds.iter_mut().filter(|it| it.variant == "b") {
            let mut cache = round.systems[0].clone();
            cache.name = "cache".to_owned();
            cache.cpu_us = Some(round.outcomes.passed * 30);
            round.systems.push(cache);
        }
        let summary = Summary::of(&recording);
        let row = &summary.variants[1];
        let names: Vec<&str> = row.system_differences.iter().map(|it| &*it.name).collect();
        assert_eq!(names[1..], ["cache"]);
        let cache = &row.system_differences[1];
        assert!((cache.cpu_us - 30.0).abs() < 1e-6, "{cache:?}");
        assert_eq!(ClaimName::of_ends(cache.ends_us), ClaimName::Higher);
        let sum: f64 = row.system_differences.iter().map(|it| it.cpu_us).sum();
        let all = row.metric(model::Metric::Cpu).unwrap().overhead.as_ref();
        let all = all.unwrap().difference;
        assert!((sum - all).abs() < 0.05 * all.abs(), "{sum} and {all}");
    }
}
