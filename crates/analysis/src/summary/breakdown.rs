//! Parts of a latency difference: processor time by system, waits for a core, and the remainder.
//!
//! A request waits while systems work for it, while their threads wait for a core, and while nobody works:
//! for timers, wake-ups and the network. The kernel counts the first two. The remainder is the rest of the
//! difference in mean latency.

use std::collections::BTreeMap;

use recording::{RoundPart, RoundRecord, SystemUsage, float};
use serde::Serialize;
use stats::paired::{Estimate, location};

use crate::confidence::CONFIDENCE;

/// The parts of a difference in mean latency. The parts and the remainder add up to the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakdownSummary {
    /// Difference in mean latency from the baseline, in microseconds.
    pub latency_us: f64,
    /// The counted parts, in the order of the systems.
    pub parts: Vec<CostPart>,
    /// The difference without the parts, in microseconds. Work after the response or next to the request is in
    /// a part and not in the latency, so the remainder can be negative.
    pub remainder_us: f64,
    /// Other counts that can explain a difference. They are no part of the sum.
    pub counts: Vec<CountChange>,
}

/// Difference of a count per complete response, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountChange {
    /// The counted event.
    pub count: CountName,
    /// Difference from the baseline per complete response.
    pub difference: f64,
    /// Low end of the 95 % interval. Absent with too few rounds.
    pub low: Option<f64>,
    /// High end of the interval.
    pub high: Option<f64>,
}

/// An event that is counted while a variant is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountName {
    /// A thread of a system left a core.
    ContextSwitches,
    /// A thread of a system left a core although it could have continued.
    ForcedSwitches,
    /// A byte that the generator sent.
    BytesSent,
    /// A byte that the generator received.
    BytesReceived,
    /// A connection that the generator opened.
    Connections,
}

/// One part of a difference, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostPart {
    /// The activity.
    pub activity: Activity,
    /// Name of the system. Absent for the sum over all systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Difference from the baseline in microseconds per complete response.
    pub difference_us: f64,
    /// Low end of the 95 % interval. Absent with too few rounds.
    pub low_us: Option<f64>,
    /// High end of the interval.
    pub high_us: Option<f64>,
}

/// Use of time by a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Processor time outside of the kernel.
    Program,
    /// Processor time in the kernel.
    Kernel,
    /// Processor time, if the two modes are not known apart.
    Processor,
    /// Threads that were ready to run waited for a core.
    Waiting,
}

/// Amounts by round, per complete response.
type ByPart = BTreeMap<RoundPart, f64>;

/// Returns the parts of a variant's difference. `None` if no part was counted in both.
pub(super) fn of(
    baseline: &[&RoundRecord],
    own: &[&RoundRecord],
    latency_us: f64,
) -> Option<BreakdownSummary> {
    let mut parts = Vec::new();
    for system in systems(baseline, own) {
        let is_split = [baseline, own].into_iter().flatten().all(|round| {
            let usage = usage_of(round, &system);
            usage.is_none_or(|usage| usage.cpu_kernel_us.is_some())
        });
        let activities: &[Activity] = match is_split {
            true => &[Activity::Program, Activity::Kernel],
            false => &[Activity::Processor],
        };
        for activity in activities {
            let values = |round: &RoundRecord| match usage_of(round, &system) {
                Some(usage) => of_usage(usage, *activity),
                // A variant without this system spends no time there.
                None => Some(0),
            };
            let found = paired([baseline, own], values);
            parts.extend(found.map(|found| part(*activity, Some(system.clone()), &found)));
        }
    }
    let waited = |round: &RoundRecord| -> Option<u64> {
        let systems = round.systems.iter();
        systems
            .map(|usage| of_usage(usage, Activity::Waiting))
            .sum()
    };
    let waited = paired([baseline, own], waited);
    parts.extend(waited.map(|found| part(Activity::Waiting, None, &found)));
    let counted: f64 = parts.iter().map(|part| part.difference_us).sum();
    (!parts.is_empty()).then_some(BreakdownSummary {
        latency_us,
        parts,
        remainder_us: latency_us - counted,
        counts: counts([baseline, own]),
    })
}

/// The differences of all counts that are known in every round of both.
fn counts(both: [&[&RoundRecord]; 2]) -> Vec<CountChange> {
    let names = [
        CountName::ContextSwitches,
        CountName::ForcedSwitches,
        CountName::BytesSent,
        CountName::BytesReceived,
        CountName::Connections,
    ];
    let change = |count: CountName| {
        let found = paired(both, |round| count.of(round))?;
        Some(CountChange {
            count,
            difference: found.value,
            low: found.interval.map(|it| it.low),
            high: found.interval.map(|it| it.high),
        })
    };
    names.into_iter().filter_map(change).collect()
}

impl CountName {
    /// The number of events in a measurement. `None` if it is unknown.
    fn of(self, round: &RoundRecord) -> Option<u64> {
        let over_systems = |of: fn(&SystemUsage) -> Option<u64>| round.systems.iter().map(of).sum();
        match self {
            Self::ContextSwitches => over_systems(|usage| usage.context_switches),
            Self::ForcedSwitches => over_systems(|usage| usage.context_switches_involuntary),
            Self::BytesSent => Some(round.bytes_out),
            Self::BytesReceived => Some(round.bytes_in),
            Self::Connections => Some(round.connect_ns_hdr.histogram().len()),
        }
    }
}

/// Names of the systems of both, in the order of the variant with the further ones of the baseline.
fn systems(baseline: &[&RoundRecord], own: &[&RoundRecord]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let usages = own.iter().chain(baseline).flat_map(|round| &round.systems);
    for usage in usages {
        if !names.contains(&usage.name) {
            names.push(usage.name.clone());
        }
    }
    names
}

fn usage_of<'r>(round: &'r RoundRecord, system: &str) -> Option<&'r SystemUsage> {
    round.systems.iter().find(|usage| usage.name == system)
}

/// Time of a system in microseconds. `None` if it is unknown.
fn of_usage(usage: &SystemUsage, activity: Activity) -> Option<u64> {
    let (all, kernel) = (usage.cpu_us, usage.cpu_kernel_us);
    match activity {
        Activity::Processor => all,
        Activity::Kernel => kernel.filter(|_| all.is_some()),
        // The kernel samples its own part, so it can be a little more than the whole.
        Activity::Program => Some(all?.saturating_sub(kernel?)),
        Activity::Waiting => usage.waited_for_cpu_us,
    }
}

fn part(activity: Activity, system: Option<String>, found: &Estimate) -> CostPart {
    CostPart {
        activity,
        system,
        difference_us: found.value,
        low_us: found.interval.map(|it| it.low),
        high_us: found.interval.map(|it| it.high),
    }
}

/// The difference of the variant from the baseline in an amount per complete response. `None` if the amount is
/// unknown in a round.
fn paired(
    [baseline, own]: [&[&RoundRecord]; 2],
    amount: impl Fn(&RoundRecord) -> Option<u64>,
) -> Option<Estimate> {
    let by_part = |rounds: &[&RoundRecord]| -> Option<ByPart> {
        let answered = rounds.iter().filter(|round| round.answered() > 0);
        let one = |round: &&RoundRecord| {
            let per_request = float(amount(round)?) / float(round.answered());
            Some((round.part(), per_request))
        };
        answered.map(one).collect()
    };
    let (of_baseline, of_own) = (by_part(baseline)?, by_part(own)?);
    let differences = of_own
        .iter()
        .filter_map(|(part, value)| Some(value - of_baseline.get(part)?));
    location(&differences.collect::<Vec<f64>>(), CONFIDENCE)
}
