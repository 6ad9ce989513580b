//! Checks on the measurements of a variant: everything that `weigh` watched, and its limits.
//!
//! A check is ok, weak or failed. If it is weak, the figures stand but need care. If it failed, the verdict
//! is withheld. Figures of checks are over all complete measurements of a variant.
//!
//! Each check covers one cause and leaves out the effects of other causes. A send that a pause of the
//! generator delayed is not late. If the generator does not run during a window, the window is not a stall of
//! the target. A stall is not drift. So a fault raises its own check and no other.

mod arrival;
mod beside;
mod cause;
mod facts;
mod generator;
mod machine;
mod network;
mod placement;
mod steady;
mod stopped;

mod little;

use std::fmt;

use beside::Beside;
pub(super) use cause::root;
use model::{Load, Order, Outcomes, micros};
use recording::{LeftOut, Recording, RoundRecord, VariantRecord, float};
use schemars::JsonSchema;
use serde::Serialize;

use super::figures::Figures;
use super::left_out;
use little::littles_law;

pub use facts::{CheckFacts, CheckNote, GeneratorName, LongestStall};
pub use generator::{PAUSED_SHARE_MAX, STARVED_SHARE_MAX, is_disturbed};

/// One check on the measurements of a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name of the check, which documents its unit.
    pub name: CheckName,
    /// Result of the check: ok, weak or failed.
    pub state: CheckState,
    /// The figure of the check, in the unit that the check's name documents.
    pub figure: f64,
    /// Beyond this limit the check is weak.
    pub weak_beyond: f64,
    /// Beyond this limit the check fails. Absent if it can only be weak.
    pub failed_beyond: Option<f64>,
    /// The facts behind the figure.
    pub facts: CheckFacts,
    /// Circumstances that a reader must know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<CheckNote>,
}

/// Result of a check, in rising order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// The figure is within all limits.
    Ok,
    /// The figures stand but need care.
    Weak,
    /// The figures are not trusted, so the verdict is withheld.
    Failed,
}

/// The name of a check, with the meaning of its figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckName {
    /// Share of intended sends without a complete response.
    Failures,
    /// Share of intended sends that were never sent (open loop).
    Missed,
    /// Difference between the number of connections and throughput times mean latency, as a share (closed
    /// loop).
    LittlesLaw,
    /// Share of the cycles of rounds side by side that were left out because they show no property of the
    /// variants.
    LeftOut,
    /// Increase of the mean latency if it included the requests that were left out because the generator did
    /// not run. As a share of the mean latency (side by side).
    LeftOutSlower,
    /// Shortfall of the achieved rate below the planned rate, as a share (open loop).
    Rate,
    /// Lateness in microseconds that 99 % of the sends with a free connection did not exceed (open loop).
    Lateness,
    /// Smallest difference in microseconds between the mean lateness of a variant and of its baseline,
    /// according to the interval (open loop, side by side).
    LatenessApart,
    /// Busy time of the generator, as a share of its threads' time.
    GeneratorCpu,
    /// Share of the time during which the generator did not run although work was due.
    GeneratorPauses,
    /// Distance of the measured overhead of the mean latency below the noise floor of the machine, in
    /// microseconds. Negative if the overhead exceeds the noise floor.
    NoiseFloor,
    /// Share of its threads' time during which the generator was ready to run while other programs had the
    /// core.
    GeneratorStarved,
    /// Share of the mean latency during which the systems' threads were ready to run while other threads had
    /// the cores. If several threads waited at once, each of them counts (open loop).
    SystemsStarved,
    /// Deviation of the actual gaps between sends from the planned law (open loop). For Poisson arrivals, it
    /// is the largest difference of the distributions. For equal gaps, it is the share of gaps that differ
    /// from the planned gap.
    ArrivalLaw,
    /// Share of the time without any response, although requests were in flight and the generator ran.
    TargetStalls,
    /// Share of the time at the end of the load during which every request failed. It counts only if it is
    /// long enough to show that the target had stopped.
    StoppedAnswering,
    /// Smallest change of latency from the first to the last third of a round, as a share.
    DriftWithinRounds,
    /// Change of the mean latency over all rounds, as a share. For the baseline, it is the latency itself.
    /// For a variant, it is the latency relative to the baseline.
    DriftAcrossRounds,
    /// Share of scheduler periods during which a processor limit stopped a system, or all programs.
    Throttling,
    /// Share of the requested processor time that the host gave to other guests.
    Steal,
    /// Share of all cores that other programs kept busy, before or during the measurement.
    MachineLoad,
    /// Share of a variant's pods that ran on other nodes of a cluster than the pods of its baseline.
    Placement,
    /// Maximum difference in microseconds between the sends of several generators and the plan.
    ClockOffset,
    /// Lateness in microseconds that 99 % of the sends did not exceed, for the latest of several generators
    /// (open loop).
    GeneratorLateness,
    /// Spread of the median latency between several generators, as a share of it.
    GeneratorSpread,
    /// Share of TCP segments that were sent again, if the target is on another machine.
    PacketLoss,
    /// Variation of the round-trip time to the target, as a share of the median latency.
    NetworkJitter,
}

impl fmt::Display for CheckName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Failures => "failures",
            Self::Missed => "missed sends",
            Self::LittlesLaw => "Little's law",
            Self::LeftOut => "cycles left out",
            Self::LeftOutSlower => "left out and slower",
            Self::Rate => "achieved rate",
            Self::Lateness => "lateness",
            Self::LatenessApart => "lateness apart",
            Self::GeneratorCpu => "generator CPU",
            Self::GeneratorPauses => "generator pauses",
            Self::NoiseFloor => "noise floor",
            Self::GeneratorStarved => "generator starved",
            Self::SystemsStarved => "systems starved",
            Self::ArrivalLaw => "arrival law",
            Self::TargetStalls => "target stalls",
            Self::StoppedAnswering => "target stopped answering",
            Self::DriftWithinRounds => "drift within rounds",
            Self::DriftAcrossRounds => "drift across rounds",
            Self::Throttling => "throttling",
            Self::Steal => "steal time",
            Self::MachineLoad => "machine load",
            Self::Placement => "placement",
            Self::ClockOffset => "clock offset",
            Self::GeneratorLateness => "generator lateness",
            Self::GeneratorSpread => "generator spread",
            Self::PacketLoss => "packet loss",
            Self::NetworkJitter => "network jitter",
        })
    }
}

impl fmt::Display for CheckState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ok => "ok",
            Self::Weak => "weak",
            Self::Failed => "failed",
        })
    }
}

/// Limits between ok, weak and failed.
pub(super) struct Limits {
    weak_beyond: f64,
    failed_beyond: Option<f64>,
}

impl Limits {
    /// Limits of a check that is weak beyond `weak_beyond` and never failed.
    pub(super) const fn only_weak(weak_beyond: f64) -> Self {
        Self {
            weak_beyond,
            failed_beyond: None,
        }
    }

    const fn new(weak_beyond: f64, failed_beyond: f64) -> Self {
        Self {
            weak_beyond,
            failed_beyond: Some(failed_beyond),
        }
    }

    pub(super) fn judge(self, name: CheckName, figure: f64, facts: CheckFacts) -> Check {
        let state = if self.failed_beyond.is_some_and(|limit| figure > limit) {
            CheckState::Failed
        } else if figure > self.weak_beyond {
            CheckState::Weak
        } else {
            CheckState::Ok
        };
        Check {
            name,
            state,
            figure,
            weak_beyond: self.weak_beyond,
            failed_beyond: self.failed_beyond,
            facts,
            notes: Vec::new(),
        }
    }
}

impl Check {
    /// At the highest rate, generator and systems use up the machine together. Delays of the generator are
    /// then a part of the result, and they are inside the latencies that decide. So the check becomes weak
    /// and does not withhold the verdict.
    fn shared_with_generator(&mut self) {
        let is_shared = matches!(
            self.name,
            CheckName::Lateness | CheckName::GeneratorStarved | CheckName::GeneratorPauses
        );
        if is_shared && self.state == CheckState::Failed {
            self.state = CheckState::Weak;
            self.failed_beyond = None;
            self.notes.push(CheckNote::WithGenerator);
        }
    }
}

/// Sums over the complete measurements of a variant.
struct Totals {
    outcomes: Outcomes,
    planned: f64,
    elapsed_us: f64,
}

/// Input of the checks.
pub(crate) struct Watched<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) variant: &'a VariantRecord,
    /// Complete measurements of the variant.
    pub(crate) complete: &'a [&'a RoundRecord],
    pub(crate) figures: &'a Figures,
}

/// Results of all checks that apply to this load.
pub(crate) fn all(watched: &Watched<'_>) -> Vec<Check> {
    let (load, complete) = (&watched.recording.load, watched.complete);
    // Without a measurement there are no checks. The verdict contains the reason.
    if complete.is_empty() {
        return Vec::new();
    }
    let totals = Totals::of(complete);
    let beside = Beside::of(watched);
    let mut checks = vec![failures(&totals)];
    // The rounds of a search end at different rates.
    if load.capacity.is_none() {
        checks.extend(stopped::stopped(&load.model, complete));
    }
    // While an iteration pauses, its connection is idle and no latency counts.
    let rests = load.requests.iter().any(|request| request.pause_us > 0);
    match &load.model {
        Load::Closed { .. } if rests => {}
        Load::Closed { connections, .. } => {
            let connections = load.shard.connections(*connections);
            let protocol = watched.variant.protocol.or(load.protocol);
            // A server may allow fewer streams than requested, and the recording does not contain their
            // number.
            if protocol.is_none_or(|protocol| protocol.streams <= 1) {
                checks.extend(littles_law(connections, load.model.duration(), complete));
            }
            checks.extend(left_out(complete));
        }
        Load::Open { .. } => {
            checks.push(missed(&totals));
            checks.extend(rate(&load.model, complete));
            checks.extend(lateness(complete, watched.figures));
            checks.extend(beside.as_ref().and_then(Beside::lateness));
            let is_side_by_side = watched.recording.order_measured() == Order::SideBySide;
            // Side by side, each cycle draws a variant's place between two due times again.
            if load.capacity.is_none() && !is_side_by_side {
                checks.extend(arrival::law(load, complete));
            }
            // A search sends at many rates. The plan contains only the first.
            if load.capacity.is_none() {
                checks.extend(machine::starved(complete));
            }
            checks.extend(left_out(complete));
            checks.extend(left_out_slower(complete));
        }
    }
    checks.extend(generator::cpu(complete));
    checks.push(generator::pauses(complete, totals.elapsed_us));
    checks.extend(generator::starved(complete));
    if !rests {
        checks.extend(steady::stalls(&load.model, complete));
    }
    checks.extend(steady::within_rounds(&load.model, complete));
    // Each round of a search ends at a different rate, and the latency depends on the rate.
    if load.capacity.is_none() {
        checks.extend(steady::across_rounds(watched));
    }
    checks.extend(machine::throttling(complete));
    checks.extend(machine::steal(complete));
    checks.extend(machine::load(watched));
    checks.extend(between(watched));
    if load.capacity.is_some() {
        checks.iter_mut().for_each(Check::shared_with_generator);
    }
    if let Some(beside) = beside {
        beside.excuse(&mut checks);
    }
    excuse_busy_machine(&mut checks);
    checks
}

/// Excuses the generator if other programs kept the cores busy. They stop the generator too, but its lost
/// time does not make the variant's requests slow.
fn excuse_busy_machine(checks: &mut [Check]) {
    let is_busy = |it: &Check| it.name == CheckName::MachineLoad && it.state != CheckState::Ok;
    if !checks.iter().any(is_busy) {
        return;
    }
    let failed = checks
        .iter_mut()
        .find(|it| it.name == CheckName::LeftOutSlower && it.state == CheckState::Failed);
    if let Some(check) = failed {
        check.state = CheckState::Weak;
        check.failed_beyond = None;
        check.notes.push(CheckNote::BusyCores);
    }
}

/// Checks of the network between generators and targets, and of the clocks of the generators.
fn between(watched: &Watched<'_>) -> Vec<Check> {
    let complete = watched.complete;
    let latency_us = watched.figures.latency.quantile_ns(0.5);
    let latency_us = latency_us.map_or(0.0, |ns| float(ns) / 1e3);
    let all = [
        placement::placement(watched),
        network::clock_offset(complete),
        network::generators(complete).filter(|_| watched.recording.load.model.is_open()),
        network::spread(complete),
        network::packet_loss(complete),
        network::jitter(complete, latency_us),
    ];
    all.into_iter().flatten().collect()
}

impl Totals {
    fn of(complete: &[&RoundRecord]) -> Self {
        let mut totals = Self {
            outcomes: Outcomes::default(),
            planned: 0.0,
            elapsed_us: 0.0,
        };
        for round in complete {
            totals.outcomes.add(&round.outcomes);
            totals.planned += float(round.planned);
            totals.elapsed_us += float(round.elapsed_us);
        }
        totals
    }
}

fn failures(totals: &Totals) -> Check {
    let share = ratio(float(totals.outcomes.failed.total()), totals.planned);
    let facts = CheckFacts::Failures {
        kinds: totals.outcomes.failed.by_name().to_vec(),
    };
    Limits::new(0.0, 0.01).judge(CheckName::Failures, share, facts)
}

/// Cycles of side-by-side rounds that are in no latency. They are the same for all variants.
fn left_out(complete: &[&RoundRecord]) -> Option<Check> {
    let rounds: Vec<LeftOut> = complete.iter().filter_map(|round| round.left_out).collect();
    let sum = |of: fn(&LeftOut) -> u64| -> u64 { rounds.iter().map(of).sum() };
    let cycles = sum(|one| one.cycles);
    let left_out = sum(LeftOut::total);
    let share = ratio(float(left_out), float(cycles));
    let facts = CheckFacts::LeftOut {
        cycles: left_out,
        host: sum(|one| one.host),
        generator: sum(|one| one.generator),
        neighbor: sum(|one| one.neighbor),
        overrun: sum(|one| one.overrun.unwrap_or(0)),
        is_sliced: complete.iter().any(|round| round.slices.is_some()),
    };
    // In turn there are no cycles. If times were not kept, cycles were not counted.
    (cycles > 0).then(|| Limits::new(0.1, 0.5).judge(CheckName::LeftOut, share, facts))
}

/// Latency of the requests that were left out, compared with the requests that count. If a variant takes the
/// generator's core for its slow requests, exactly these would be left out.
fn left_out_slower(complete: &[&RoundRecord]) -> Option<Check> {
    let rise = left_out::rise(complete)?;
    Some(Limits::new(0.1, 0.5).judge(CheckName::LeftOutSlower, rise, CheckFacts::Figure))
}

fn missed(totals: &Totals) -> Check {
    let share = ratio(float(totals.outcomes.missed), totals.planned);
    let facts = CheckFacts::Missed {
        requests: totals.outcomes.missed,
    };
    Limits::new(0.0, 0.001).judge(CheckName::Missed, share, facts)
}

/// Requests sent per second, compared with the plan. The last send left at the planned end plus its lateness.
/// The latency of its response does not matter.
fn rate(load: &Load, complete: &[&RoundRecord]) -> Option<Check> {
    let planned_us = float(micros(load.duration()?));
    let (mut sent, mut planned, mut sending_us) = (0.0, 0.0, 0.0);
    for round in complete {
        let late_us = round
            .lateness_ns_hdr
            .histogram()
            .max_ns()
            .map_or(0.0, float)
            / 1e3;
        // A count can end the plan before its phases end.
        let length_us = planned_us.min(float(round.elapsed_us));
        sending_us += float(round.elapsed_us)
            .min(length_us + late_us)
            .max(length_us);
        planned += float(round.planned) / length_us;
        sent += float(round.planned - round.outcomes.missed.min(round.planned));
    }
    let rounds = float(complete.len() as u64);
    let planned_per_s = planned / rounds * 1e6;
    let achieved_per_s = ratio(sent, sending_us) * 1e6;
    if !(planned_per_s > 0.0 && planned_per_s.is_finite()) {
        return None;
    }
    let figure = (1.0 - achieved_per_s / planned_per_s).max(0.0);
    let facts = CheckFacts::Rate {
        achieved_per_s,
        planned_per_s,
    };
    Some(Limits::new(0.01, 0.1).judge(CheckName::Rate, figure, facts))
}

/// Lateness compared with latency. Every latency includes it, so it must be small. Sends that waited for a
/// free connection are caused by the target. Sends that a pause held up have their own check. Both are the
/// latest sends of all, so they are cut off.
fn lateness(complete: &[&RoundRecord], figures: &Figures) -> Option<Check> {
    let waited: u64 = complete.iter().map(|round| round.waited).sum();
    let sent = float(figures.lateness.len());
    let paused = generator::paused_share(complete);
    let punctual = (1.0 - ratio(float(waited), sent) - paused).max(0.0);
    let late_us = float(figures.lateness.quantile_ns(0.99 * punctual)?) / 1e3;
    let latency_us = float(figures.latency.quantile_ns(0.5)?) / 1e3;
    // The limits are at least 100 us and 1 ms. Even a thread that only waits is late by some time, however
    // fast the target is.
    let limits = Limits::new((0.1 * latency_us).max(100.0), latency_us.max(1000.0));
    let mut check = limits.judge(
        CheckName::Lateness,
        late_us,
        CheckFacts::Lateness { waited },
    );
    if check.state != CheckState::Ok {
        let had_it = |round: &&RoundRecord| round.realtime_share() >= 0.5;
        if !complete.iter().all(|round| round.generator.realtime) {
            check.notes.push(CheckNote::NoRealtime);
        } else if !complete.iter().all(had_it) {
            check.notes.push(CheckNote::RealtimeLost);
        }
    }
    Some(check)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests;
