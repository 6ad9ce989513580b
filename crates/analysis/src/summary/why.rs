//! Causes of the differences, from the samples of `--why`.
//!
//! The rounds without samplers decide every figure of a variant. The samples only tell the kinds of work and
//! waits apart. Processor time therefore comes from the normal rounds if they have it. Waits come from the
//! sampled loads, as differences between loads of one round.

mod functions;
mod pairs;

use recording::{Recording, SampledSystem, WaitKind, WhyRecord};
use serde::Serialize;
use stats::paired::{Estimate, Interval, location};

use super::VariantSummary;
use super::breakdown::{Activity, BreakdownSummary};
use crate::confidence::CONFIDENCE;

pub use functions::FunctionDifference;
use functions::{Both, leading_function, leading_wait, leading_waiter};
use pairs::Pairs;

/// The causes of the differences of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhySummary {
    /// The sources of the samples, one sentence each, with their limits.
    pub sources: Vec<String>,
    /// Cost of the samplers. Absent without a complete pair of loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<WhyCost>,
    /// The compared variants, in the order of the report.
    pub variants: Vec<VariantWhy>,
}

/// Cost of the samplers: mean latency of loads with samplers, against loads without them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyCost {
    /// Relative difference: 0.02 is 2 % more latency.
    pub relative: f64,
    /// Low end of the 95 % interval. Absent with too few pairs.
    pub low: Option<f64>,
    /// High end of the interval.
    pub high: Option<f64>,
    /// Number of pairs of loads.
    pub pairs: usize,
}

/// The causes of the difference of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantWhy {
    /// Name of the variant.
    pub variant: String,
    /// Name of the variant that it is compared with.
    pub baseline: String,
    /// Difference in mean latency in microseconds, from the normal rounds if they have it.
    pub latency_us: f64,
    /// The named causes, the most important first. Empty if no part is large and certain enough.
    pub causes: Vec<CauseKind>,
    /// All parts, the causes first.
    pub parts: Vec<WhyPart>,
    /// The five functions that differ most in processor time per request.
    pub functions: Vec<FunctionDifference>,
    /// Numbers of runtimes. Empty if no runtime reports its collections without an agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<RuntimeDifference>,
}

/// One number of a runtime per request, over all loads of the extra rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuntimeDifference {
    /// Name of the system.
    pub system: String,
    /// Name of the number, such as `go_collections`.
    pub name: String,
    /// The number per request in the variant.
    pub own: f64,
    /// The number per request in the baseline. Absent if the baseline does not report it.
    pub baseline: Option<f64>,
}

/// One kind of work or wait of one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhyPart {
    /// The kind.
    pub kind: CauseKind,
    /// Name of the system. Absent for the sum over all systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Difference from the baseline in microseconds per complete response, summed over threads. Absent for
    /// connections, because their cost is a part of the burn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference_us: Option<f64>,
    /// Low end of the 95 % interval. Absent with too few rounds.
    pub low_us: Option<f64>,
    /// High end of the interval.
    pub high_us: Option<f64>,
    /// The part's share of the difference in mean latency. Threads work next to each other, so the shares may
    /// add up to more than 1. Absent if the latency does not differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// New connections per response that the baseline does not have. Absent for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<f64>,
    /// The function or system call with the largest part of the difference. Absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The function of the program that waits most. Absent without traces of the scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// True if the part is named as a cause.
    pub is_cause: bool,
    /// The wait. `None` if the part is no wait.
    #[serde(skip)]
    wait: Option<WaitKind>,
    /// True if the wait takes the same share of the time as in the baseline.
    #[serde(skip)]
    is_background: bool,
}

/// A kind of work or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// Processor time.
    Burn,
    /// A wait for a timer.
    Sleep,
    /// A wait for a lock.
    Lock,
    /// New connections.
    Connections,
    /// A wait for the other side of a new connection.
    Connecting,
    /// A wait for a file.
    File,
    /// A wait for another thread. Threads without work wait in the same way.
    Thread,
    /// A wait for input. Servers without work wait in the same way.
    Input,
    /// A wait of another kind.
    Other,
}

/// The smallest share of the difference in latency that a cause has.
const SHARE_MIN: f64 = 0.05;
/// The smallest cause in microseconds per request. Smaller differences are in every run.
const US_MIN: f64 = 2.0;
/// The largest share of the difference in latency that waits of an event loop for its next timer can be.
const TIMED_SHARE_MAX: f64 = 1.5;
/// The fewest extra connections per request of a cause. A slow variant of an open loop needs more connections
/// at once, which gives a smaller number.
const CONNECTIONS_MIN: f64 = 0.2;
/// More microseconds than a connection on one machine costs. A larger part has another cause.
const CONNECTION_US_MAX: f64 = 500.0;

/// Returns the causes. `None` if the run was not asked for them.
pub(super) fn of(recording: &Recording, variants: &[VariantSummary]) -> Option<WhySummary> {
    let why = recording.why.as_ref()?;
    let compared = variants.iter().filter(|row| !row.is_baseline);
    Some(WhySummary {
        sources: sources(why),
        cost: cost(why),
        variants: compared.filter_map(|row| of_variant(why, row)).collect(),
    })
}

/// The sources of the samples, and the systems without samples.
fn sources(why: &WhyRecord) -> Vec<String> {
    let missing = why.systems.iter().filter_map(|it| {
        let (system, variant) = (&it.system, &it.variant);
        let missing = it.missing.as_ref()?;
        Some(format!("`{system}` of `{variant}`: {missing}."))
    });
    why.sources.iter().cloned().chain(missing).collect()
}

/// The relative differences of all pairs, of all variants.
fn cost(why: &WhyRecord) -> Option<WhyCost> {
    let usable = why.pairs.iter().filter(|it| it.plain.latency_us_mean > 0.0);
    let relative = usable.map(|it| it.sampled.latency_us_mean / it.plain.latency_us_mean - 1.0);
    let relative: Vec<f64> = relative.collect();
    let found = location(&relative, CONFIDENCE)?;
    Some(WhyCost {
        relative: found.value,
        low: found.interval.map(|it| it.low),
        high: found.interval.map(|it| it.high),
        pairs: relative.len(),
    })
}

/// `None` if the variant or its baseline was not sampled.
fn of_variant(why: &WhyRecord, row: &VariantSummary) -> Option<VariantWhy> {
    let pairs = Pairs::of(why, &row.name, &row.baseline)?;
    let normal = row.breakdown.as_ref();
    let measured = pairs.difference(|pair| Some(pair.plain.latency_us_mean));
    let latency_us = match (normal, &measured) {
        (Some(normal), _) => normal.latency_us,
        (None, measured) => measured.as_ref()?.value,
    };
    let samples = Samples::of(why, row);
    let mut parts = Vec::new();
    parts.extend(connections(&pairs, measured.as_ref()));
    for system in pairs.systems() {
        let burn = processor_time(&pairs, normal, &system);
        parts.extend(burn.map(|found| part(CauseKind::Burn, Some(&system), &found)));
        for (wait, kind) in WAITS {
            let found = pairs.difference(|pair| pair.wait_us(&system, wait));
            // A kind of wait that neither side has is no row.
            let found = found.filter(|found| found.value != 0.0);
            parts.extend(found.map(|found| WhyPart {
                wait: Some(wait),
                is_background: !pairs.is_share_different(&system, wait),
                ..part(kind, Some(&system), &found)
            }));
        }
    }
    for part in &mut parts {
        part.place = samples.place(part);
        part.function = samples.function(part);
        let us = part.difference_us.filter(|_| latency_us != 0.0);
        part.share = us.map(|us| us / latency_us);
        part.is_cause |= is_cause(part, latency_us);
    }
    without_idle_loops(&mut parts, latency_us);
    order(&mut parts);
    let mut causes: Vec<CauseKind> = Vec::new();
    for part in parts.iter().filter(|part| part.is_cause) {
        if !causes.contains(&part.kind) {
            causes.push(part.kind);
        }
    }
    Some(VariantWhy {
        variant: row.name.clone(),
        baseline: row.baseline.clone(),
        latency_us,
        causes,
        parts,
        functions: samples.functions(),
        runtimes: samples.runtimes(),
    })
}

/// The waits with their kinds.
const WAITS: [(WaitKind, CauseKind); 8] = [
    (WaitKind::Timer, CauseKind::Sleep),
    (WaitKind::TimedInput, CauseKind::Sleep),
    (WaitKind::Lock, CauseKind::Lock),
    (WaitKind::Connect, CauseKind::Connecting),
    (WaitKind::File, CauseKind::File),
    (WaitKind::Thread, CauseKind::Thread),
    (WaitKind::Input, CauseKind::Input),
    (WaitKind::Other, CauseKind::Other),
];

/// The samples of a variant and of its baseline.
struct Samples<'a> {
    baseline: Vec<&'a SampledSystem>,
    own: Vec<&'a SampledSystem>,
}

impl<'a> Samples<'a> {
    fn of(why: &'a WhyRecord, row: &VariantSummary) -> Self {
        let of = |name: &str| why.systems.iter().filter(|it| it.variant == name).collect();
        Self {
            baseline: of(&row.baseline),
            own: of(&row.name),
        }
    }

    fn functions(&self) -> Vec<FunctionDifference> {
        functions::leading(&self.baseline, &self.own)
    }

    fn runtimes(&self) -> Vec<RuntimeDifference> {
        let own = self.own.iter();
        let numbers = own.flat_map(|it| it.runtime.iter().map(move |number| (it, number)));
        let difference = |(it, (name, own)): (&&SampledSystem, (&String, &f64))| {
            let mut baseline = self.baseline.iter();
            let baseline = baseline.find(|before| before.system == it.system);
            RuntimeDifference {
                system: it.system.clone(),
                name: name.clone(),
                own: *own,
                baseline: baseline.and_then(|before| before.runtime.get(name).copied()),
            }
        };
        numbers.map(difference).collect()
    }

    /// The system of a part in the baseline and in the variant.
    fn both(&self, part: &WhyPart) -> Option<Both<'a>> {
        let system = part.system.as_deref()?;
        let find = |all: &[&'a SampledSystem]| all.iter().copied().find(|it| it.system == system);
        Some([find(&self.baseline), find(&self.own)])
    }

    fn function(&self, part: &WhyPart) -> Option<String> {
        let kernel = match part.kind {
            _ if part.wait == Some(WaitKind::TimedInput) => "poll",
            CauseKind::Sleep => "nanosleep",
            CauseKind::Lock | CauseKind::Thread => "futex",
            CauseKind::Connecting => "connect",
            CauseKind::File => "io_schedule",
            CauseKind::Burn | CauseKind::Connections | CauseKind::Input | CauseKind::Other => {
                return None;
            }
        };
        leading_waiter(self.both(part)?, kernel, part.difference_us?)
    }

    fn place(&self, part: &WhyPart) -> Option<String> {
        let both = self.both(part)?;
        if part.kind == CauseKind::Burn {
            return leading_function(both, part.difference_us?);
        }
        leading_wait(both, part.wait?, part.difference_us?)
    }
}

/// The difference of a system's processor time, from the normal rounds if they have it.
fn processor_time(
    pairs: &Pairs<'_>,
    normal: Option<&BreakdownSummary>,
    system: &str,
) -> Option<Estimate> {
    let parts = normal.iter().flat_map(|normal| &normal.parts);
    let own = parts.filter(|part| part.system.as_deref() == Some(system));
    let found = own
        .filter(|part| part.activity != Activity::Waiting)
        .map(|part| {
            let ends = part.low_us.zip(part.high_us);
            Estimate {
                value: part.difference_us,
                interval: ends.map(|(low, high)| Interval {
                    low,
                    high,
                    confidence: CONFIDENCE,
                }),
            }
        });
    found
        .reduce(sum)
        .or_else(|| pairs.difference(|pair| pair.cpu_us(system)))
}

/// The sum of two estimates. The ends are added, so the interval is wide enough.
fn sum(one: Estimate, other: Estimate) -> Estimate {
    let ends = one.interval.zip(other.interval);
    Estimate {
        value: one.value + other.value,
        interval: ends.map(|(one, other)| Interval {
            low: one.low + other.low,
            high: one.high + other.high,
            confidence: CONFIDENCE,
        }),
    }
}

/// The part of new connections per response, of generator and systems together. `None` if their number does
/// not differ. They are a cause unless the latency clearly differs in the other direction.
fn connections(pairs: &Pairs<'_>, latency: Option<&Estimate>) -> Option<WhyPart> {
    let found = pairs.difference(|pair| Some(pair.connections()))?;
    let is_large = found.value.abs() >= CONNECTIONS_MIN;
    let is_opposed =
        latency.is_some_and(|latency| is_certain(latency) && latency.value * found.value < 0.0);
    (is_large && is_certain(&found)).then(|| WhyPart {
        connections: Some(found.value),
        is_cause: !is_opposed,
        difference_us: None,
        low_us: None,
        high_us: None,
        ..part(CauseKind::Connections, None, &found)
    })
}

fn part(kind: CauseKind, system: Option<&str>, found: &Estimate) -> WhyPart {
    WhyPart {
        kind,
        system: system.map(str::to_owned),
        difference_us: Some(found.value),
        low_us: found.interval.map(|it| it.low),
        high_us: found.interval.map(|it| it.high),
        share: None,
        connections: None,
        place: None,
        function: None,
        is_cause: false,
        wait: None,
        is_background: false,
    }
}

/// True if the interval does not contain 0.
fn is_certain(found: &Estimate) -> bool {
    excludes_zero(found.interval.map(|it| (it.low, it.high)))
}

/// True if an interval with these ends does not contain 0. False without an interval.
fn excludes_zero(ends: Option<(f64, f64)>) -> bool {
    ends.is_some_and(|(low, high)| low * high > 0.0)
}

/// True if a part explains a difference of this size. It has the sign of the difference, is large enough, and
/// its interval excludes 0.
fn is_cause(part: &WhyPart, latency_us: f64) -> bool {
    let can_be = matches!(
        part.kind,
        CauseKind::Burn
            | CauseKind::Sleep
            | CauseKind::Lock
            | CauseKind::Connecting
            | CauseKind::File
    );
    let least = (latency_us.abs() * SHARE_MIN).max(US_MIN);
    // An idle event loop with a timer waits in the same way, and much longer than responses take.
    let most = match part.wait {
        Some(WaitKind::TimedInput) => latency_us.abs() * TIMED_SHARE_MAX,
        _ => f64::INFINITY,
    };
    let explains = |us: f64| us * latency_us > 0.0 && (least..=most).contains(&us.abs());
    can_be
        && !part.is_background
        && part.difference_us.is_some_and(explains)
        && excludes_zero(part.low_us.zip(part.high_us))
}

/// Removes the waits of event loops for a timer from the causes, if other causes explain the difference. An
/// idle loop waits in the same way.
fn without_idle_loops(parts: &mut [WhyPart], latency_us: f64) {
    let is_timed = |part: &WhyPart| part.wait == Some(WaitKind::TimedInput);
    let others = parts.iter().filter(|part| part.is_cause && !is_timed(part));
    let explained = others.filter_map(|part| part.difference_us);
    let explained = explained.map(f64::abs).sum::<f64>();
    if explained >= latency_us.abs() / 2.0 {
        let timed = parts.iter_mut().filter(|part| is_timed(part));
        timed.for_each(|part| part.is_cause = false);
    }
}

/// Sorts the parts: causes first, by size.
///
/// A thread that holds a lock works or waits meanwhile, so a lock is in two parts. It is therefore first from
/// half of the largest part on. Connections are first if they can have caused the largest part.
fn order(parts: &mut [WhyPart]) {
    let size = |part: &WhyPart| part.difference_us.unwrap_or(0.0).abs();
    let causes = parts.iter().filter(|part| part.is_cause);
    let largest = causes.map(size).fold(0.0, f64::max);
    let weight = |part: &WhyPart| {
        let is_first = match part.connections {
            Some(count) => count.abs() * CONNECTION_US_MAX >= largest,
            None => part.kind == CauseKind::Lock && size(part) >= largest / 2.0,
        };
        if is_first {
            2.0 * largest + 1.0
        } else {
            size(part)
        }
    };
    parts.sort_by(|one, other| {
        let causes_first = other.is_cause.cmp(&one.is_cause);
        causes_first.then_with(|| weight(other).total_cmp(&weight(one)))
    });
}

#[cfg(test)]
mod tests;
