//! Figures per round, over rounds, and against the baseline.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use stats::{Claim, Histogram, Interval, Overhead, paired, sample, width};

use super::tail;
use crate::confidence::CONFIDENCE;
use crate::describe;
use crate::float::float;
use crate::metric::{Metric, figure};
use crate::recording::{InstanceUsage, RoundPart, RoundRecord, SystemUsage, VariantRecord};

/// One metric of one variant over its rounds, in the unit of the metric's name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricSummary {
    /// Hodges-Lehmann estimate over rounds.
    pub value: f64,
    /// Lower end of its interval; absent with too few rounds.
    pub low: Option<f64>,
    /// Upper end of its interval; absent with too few rounds.
    pub high: Option<f64>,
    /// The figure of each round in which it was measured completely, in the order made. Of a baseline
    /// that was measured in several groups of a round, their mean.
    pub rounds: Vec<f64>,
    /// Against the baseline; absent for the baseline itself.
    pub overhead: Option<OverheadSummary>,
    /// Whether fewer than ten requests of a round lie beyond this percentile. Such a figure is not
    /// printed; what the requests of all rounds together come to is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sparse: bool,
}

/// A variant's metric minus the baseline's, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OverheadSummary {
    /// Rounds in which both were measured, in the same group.
    pub rounds: usize,
    /// Hodges-Lehmann estimate of the difference, in the metric's unit.
    pub difference: f64,
    /// Lower end of its interval; absent with too few rounds.
    pub difference_low: Option<f64>,
    /// Upper end of its interval; absent with too few rounds.
    pub difference_high: Option<f64>,
    /// Variant divided by baseline; absent when a figure is 0.
    pub ratio: Option<f64>,
    /// Lower end of its interval; absent with too few rounds.
    pub ratio_low: Option<f64>,
    /// Upper end of its interval; absent with too few rounds.
    pub ratio_high: Option<f64>,
    /// What may be said about the difference.
    pub claim: ClaimName,
    /// The fewest rounds that could support a claim.
    pub rounds_needed: usize,
    /// The smallest difference that four of five runs like this one would show, in the metric's unit;
    /// absent with too few rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Rounds after which half of it would be shown; absent with too few rounds, and beyond all
    /// measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds_for_half: Option<usize>,
    /// Whether the estimate points one way and the plain difference of medians the other.
    pub is_sign_disputed: bool,
}

/// What may be said about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimName {
    /// The variant's values are higher.
    Higher,
    /// The variant's values are lower.
    Lower,
    /// The interval contains zero, which does not prove that there is no difference.
    NoDifferenceShown,
    /// Too few rounds for any claim.
    TooFewRounds,
}

/// Latency over the requests of all rounds together, from losslessly merged histograms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Complete answers.
    pub requests: u64,
    /// Shortest.
    pub latency_us_min: f64,
    /// Mean over requests.
    pub latency_us_mean: f64,
    /// Standard deviation over requests.
    pub latency_us_stdev: f64,
    /// 50 % of the requests do not exceed it.
    pub latency_us_p50: f64,
    /// 75 % of the requests do not exceed it.
    pub latency_us_p75: f64,
    /// 90 % of the requests do not exceed it.
    pub latency_us_p90: f64,
    /// 95 % of the requests do not exceed it.
    pub latency_us_p95: f64,
    /// 99 % of the requests do not exceed it.
    pub latency_us_p99: f64,
    /// 99.9 % of the requests do not exceed it.
    pub latency_us_p999: f64,
    /// 99.99 % of the requests do not exceed it.
    pub latency_us_p9999: f64,
    /// Longest.
    pub latency_us_max: f64,
}

impl Distribution {
    /// A percentile, as far as enough requests lie beyond it, in microseconds; none of what is no
    /// percentile.
    pub(crate) fn percentile_us(&self, metric: Metric) -> Option<f64> {
        let us = match metric {
            Metric::P50 => self.latency_us_p50,
            Metric::P75 => self.latency_us_p75,
            Metric::P90 => self.latency_us_p90,
            Metric::P95 => self.latency_us_p95,
            Metric::P99 => self.latency_us_p99,
            Metric::P999 => self.latency_us_p999,
            _ => return None,
        };
        let is_sparse = |share| !tail::has_enough(self.requests, share);
        (!tail::share_of(metric).is_some_and(is_sparse)).then_some(us)
    }
}

/// Requests per second in windows within rounds; windows that the end cut short are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateWindows {
    /// Width of a window.
    pub width_us: u64,
    /// Complete windows over all rounds.
    pub windows: usize,
    /// Mean over windows.
    pub requests_per_s_mean: f64,
    /// Standard deviation over windows; absent with fewer than two.
    pub requests_per_s_stdev: Option<f64>,
    /// Highest window.
    pub requests_per_s_max: f64,
}

/// What one system of a variant cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemSummary {
    /// Its name.
    pub name: String,
    /// Its version, as it reports it.
    pub version: Option<String>,
    /// Processor time per complete answer; absent where it could not be read.
    pub cpu_us_per_request: Option<MetricSummary>,
    /// Peak memory; absent where it could not be read.
    pub memory_peak_bytes: Option<MetricSummary>,
    /// Context switches per complete answer, voluntary and not; absent where they could not be read.
    pub context_switches_per_request: Option<MetricSummary>,
    /// Those of them in which others took the core although the thread could have gone on.
    pub context_switches_involuntary_per_request: Option<MetricSummary>,
    /// How long its threads were ready to run while others had the cores, per complete answer.
    pub waited_for_cpu_us_per_request: Option<MetricSummary>,
    /// Its limits in words: none, in force, or not in force and why.
    pub limits: String,
    /// Whether it was asked to be limited and is not, or is limited otherwise.
    pub is_limit_unmet: bool,
    /// Share of scheduler periods in which a limit stopped it; absent without a limit.
    pub throttled_periods_share: Option<f64>,
    /// Where the numbers come from.
    pub source: Option<String>,
    /// What each of its instances did, over all rounds; empty for a system without a balancer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<InstanceSummary>,
}

/// What one instance behind a balancer did, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceSummary {
    /// Its name.
    pub name: String,
    /// Requests that it answered.
    pub answers: u64,
    /// Its share of the answers of all instances; 0 without any.
    pub share: f64,
    /// Processor time for each of its answers; absent where it could not be read, or without an
    /// answer.
    pub cpu_us_per_answer: Option<f64>,
}

/// The figures of one variant, round by round.
pub(crate) struct Figures {
    /// The round, and the group in it, of each entry below.
    parts: Vec<RoundPart>,
    by_metric: BTreeMap<Metric, Vec<Option<f64>>>,
    systems: Vec<SystemFigures>,
    /// Latencies of the round that has the fewest.
    requests_fewest: u64,
    /// Latency of all rounds.
    pub(crate) latency: Histogram,
    /// Lateness of all rounds.
    pub(crate) lateness: Histogram,
}

/// Values with their rounds.
type ByRound = Vec<(u32, f64)>;

struct SystemFigures {
    name: String,
    source: String,
    cpu: ByRound,
    memory: ByRound,
    switches: ByRound,
    switches_involuntary: ByRound,
    waited: ByRound,
    periods: u64,
    throttled_periods: u64,
    instances: Vec<InstanceUsage>,
}

impl Figures {
    pub(crate) fn of(complete: &[&RoundRecord]) -> Self {
        let mut figures = Self {
            parts: complete.iter().map(|round| round.part()).collect(),
            by_metric: BTreeMap::new(),
            systems: Vec::new(),
            // Neutral for the minimum below; without a round there are no figures to mark.
            requests_fewest: u64::MAX,
            latency: Histogram::new(),
            lateness: Histogram::new(),
        };
        for round in complete {
            let latency = round.latency_ns_hdr.histogram();
            for metric in Metric::ALL {
                let values = figures.by_metric.entry(metric).or_default();
                values.push(figure(metric, round, &latency));
            }
            for usage in &round.systems {
                figures.add_system(usage, round);
            }
            figures.requests_fewest = figures.requests_fewest.min(latency.len());
            figures.latency.add(&latency);
            figures.lateness.add(&round.lateness_ns_hdr.histogram());
        }
        figures
    }

    fn add_system(&mut self, usage: &SystemUsage, round: &RoundRecord) {
        // As the variant's own figures: systems work for discarded requests, too.
        let answered = round.answered();
        let known = self
            .systems
            .iter()
            .position(|system| system.name == usage.name);
        let index = known.unwrap_or_else(|| {
            self.systems.push(SystemFigures {
                name: usage.name.clone(),
                source: usage.source.clone(),
                cpu: Vec::new(),
                memory: Vec::new(),
                switches: Vec::new(),
                switches_involuntary: Vec::new(),
                waited: Vec::new(),
                periods: 0,
                throttled_periods: 0,
                instances: Vec::new(),
            });
            self.systems.len() - 1
        });
        let system = &mut self.systems[index];
        if answered > 0 {
            let per_request = |amount: u64| (round.round, float(amount) / float(answered));
            let switches = usage.context_switches.map(per_request);
            let involuntary = usage.context_switches_involuntary.map(per_request);
            system.cpu.extend(usage.cpu_us.map(per_request));
            system.switches.extend(switches);
            system.switches_involuntary.extend(involuntary);
            let waited = usage.waited_for_cpu_us.map(per_request);
            system.waited.extend(waited);
        }
        // Outside of the condition above, because memory is not divided by answers.
        let memory = usage.memory_peak_bytes.map(float);
        system
            .memory
            .extend(memory.map(|bytes| (round.round, bytes)));
        if let Some(throttled) = usage.throttled {
            system.periods += throttled.periods;
            system.throttled_periods += throttled.throttled_periods;
        }
        for instance in &usage.instances {
            system.add_instance(instance);
        }
    }

    pub(crate) fn metrics(
        &self,
        baseline: Option<&Self>,
        confidence: f64,
    ) -> BTreeMap<Metric, MetricSummary> {
        let summarize = |(metric, values): (&Metric, &Vec<Option<f64>>)| {
            let measured = self.parts.iter().zip(values);
            let by_round = measured.filter_map(|(part, value)| Some((part.round, (*value)?)));
            let mut summary = MetricSummary::of(mean_by_round(by_round))?;
            summary.is_sparse = tail::share_of(*metric)
                .is_some_and(|share| !tail::has_enough(self.requests_fewest, share));
            summary.overhead =
                baseline.and_then(|baseline| self.overhead(baseline, *metric, confidence));
            Some((*metric, summary))
        };
        self.by_metric.iter().filter_map(summarize).collect()
    }

    /// Pairs the rounds, or groups of rounds, in which both were measured: the baseline appears once in
    /// each.
    fn overhead(
        &self,
        baseline: &Self,
        metric: Metric,
        confidence: f64,
    ) -> Option<OverheadSummary> {
        let of_baseline: BTreeMap<RoundPart, f64> = baseline.by_part(metric).collect();
        let (base, own): (Vec<f64>, Vec<f64>) = self
            .by_part(metric)
            .filter_map(|(part, value)| Some((*of_baseline.get(&part)?, value)))
            .unzip();
        // Nothing to pair, or a figure that is not finite: then there is no overhead to show.
        let overhead = paired::overhead(&base, &own, confidence).ok()?;
        let needed = paired::rounds_needed(confidence);
        let rounds = base.len();
        Some(OverheadSummary::of(&overhead, rounds, needed).with_power(&overhead))
    }

    /// A figure of each round in which it was measured.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.by_part(metric).map(|(_, value)| value).collect()
    }

    pub(super) fn by_part(&self, metric: Metric) -> impl Iterator<Item = (RoundPart, f64)> {
        let values = self.by_metric.get(&metric).into_iter().flatten();
        let pairs = self.parts.iter().zip(values);
        pairs.filter_map(|(part, value)| Some((*part, (*value)?)))
    }

    pub(crate) fn systems(&self, variant: &VariantRecord) -> Vec<SystemSummary> {
        let record = |name: &str| variant.systems.iter().find(|system| system.name == name);
        let summarize = |system: &SystemFigures| SystemSummary {
            name: system.name.clone(),
            version: record(&system.name).and_then(|record| record.version.clone()),
            cpu_us_per_request: MetricSummary::of(mean_by_round(system.cpu.iter().copied())),
            memory_peak_bytes: MetricSummary::of(mean_by_round(system.memory.iter().copied())),
            context_switches_per_request: MetricSummary::of(mean_by_round(
                system.switches.iter().copied(),
            )),
            context_switches_involuntary_per_request: MetricSummary::of(mean_by_round(
                system.switches_involuntary.iter().copied(),
            )),
            waited_for_cpu_us_per_request: MetricSummary::of(mean_by_round(
                system.waited.iter().copied(),
            )),
            limits: record(&system.name).map_or_else(String::new, describe::limits_in_force),
            is_limit_unmet: record(&system.name).is_some_and(describe::is_limit_unmet),
            throttled_periods_share: (system.periods > 0)
                .then(|| float(system.throttled_periods) / float(system.periods)),
            source: Some(system.source.clone()),
            instances: system.instances(),
        };
        self.systems.iter().map(summarize).collect()
    }

    pub(crate) fn distribution(&self) -> Option<Distribution> {
        let latency = &self.latency;
        let us = |nanoseconds: f64| nanoseconds / 1e3;
        let quantile = |share: f64| latency.quantile_ns(share).map(float).map(us);
        Some(Distribution {
            requests: latency.len(),
            latency_us_min: us(float(latency.min_ns()?)),
            latency_us_mean: us(latency.mean_ns()?),
            latency_us_stdev: us(latency.stddev_ns()?),
            latency_us_p50: quantile(0.5)?,
            latency_us_p75: quantile(0.75)?,
            latency_us_p90: quantile(0.9)?,
            latency_us_p95: quantile(0.95)?,
            latency_us_p99: quantile(0.99)?,
            latency_us_p999: quantile(0.999)?,
            latency_us_p9999: quantile(0.9999)?,
            latency_us_max: us(float(latency.max_ns()?)),
        })
    }
}

impl SystemFigures {
    fn add_instance(&mut self, usage: &InstanceUsage) {
        let known = self.instances.iter_mut().find(|it| it.name == usage.name);
        match known {
            Some(known) => {
                known.answers += usage.answers;
                // Unknown in one round is unknown in sum: a part of it would look like a low cost.
                let cpu = known.cpu_us.zip(usage.cpu_us);
                known.cpu_us = cpu.map(|(known, more)| known + more);
            }
            None => self.instances.push(usage.clone()),
        }
    }

    fn instances(&self) -> Vec<InstanceSummary> {
        let all: u64 = self.instances.iter().map(|it| it.answers).sum();
        let ratio = |part: u64, whole: u64| (whole > 0).then(|| float(part) / float(whole));
        let summary = |it: &InstanceUsage| InstanceSummary {
            name: it.name.clone(),
            answers: it.answers,
            // Where no instance answered, each had nothing of it.
            share: ratio(it.answers, all).unwrap_or(0.0),
            cpu_us_per_answer: it.cpu_us.and_then(|cpu_us| ratio(cpu_us, it.answers)),
        };
        self.instances.iter().map(summary).collect()
    }
}

impl MetricSummary {
    pub(crate) fn of(rounds: Vec<f64>) -> Option<Self> {
        // Not the corrected confidence of overheads: a value by itself is no comparison.
        let estimate = paired::location(&rounds, CONFIDENCE)?;
        Some(Self {
            value: estimate.value,
            low: estimate.interval.map(|interval| interval.low),
            high: estimate.interval.map(|interval| interval.high),
            rounds,
            overhead: None,
            is_sparse: false,
        })
    }

    /// Half of the width of its interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

impl OverheadSummary {
    /// From what statistics found; `rounds` are those of the shorter side, `rounds_needed` those
    /// that an interval takes.
    pub(crate) fn of(overhead: &Overhead, rounds: usize, rounds_needed: usize) -> Self {
        let interval = overhead.difference.interval;
        let ratio_interval = overhead.ratio.and_then(|ratio| ratio.interval);
        Self {
            rounds,
            difference: overhead.difference.value,
            difference_low: interval.map(|interval| interval.low),
            difference_high: interval.map(|interval| interval.high),
            ratio: overhead.ratio.map(|ratio| ratio.value),
            ratio_low: ratio_interval.map(|interval| interval.low),
            ratio_high: ratio_interval.map(|interval| interval.high),
            claim: ClaimName::from(overhead.claim),
            rounds_needed,
            detectable: None,
            rounds_for_half: None,
            is_sign_disputed: overhead.is_sign_disputed(),
        }
    }

    /// With what rounds like these would show; of a paired difference only, since widths of unpaired
    /// ones shrink otherwise.
    #[must_use]
    pub(crate) fn with_power(self, overhead: &Overhead) -> Self {
        let interval = overhead.difference.interval;
        let half = |interval: Interval| {
            width::rounds_expected(&interval, self.rounds, interval.half_width() / 2.0)
        };
        Self {
            detectable: interval.and_then(|interval| width::detectable(&interval, self.rounds)),
            rounds_for_half: interval.and_then(half),
            ..self
        }
    }

    /// Half of the width of the difference's interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.difference_high? - self.difference_low?) / 2.0)
    }
}

impl From<Claim> for ClaimName {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Higher => Self::Higher,
            Claim::Lower => Self::Lower,
            Claim::NoDifferenceShown => Self::NoDifferenceShown,
            Claim::TooFewRounds { .. } => Self::TooFewRounds,
        }
    }
}

/// One value for each round: the mean of what was measured in it. A baseline that was measured in
/// several groups of a round has one value a round all the same, since the round is the unit.
pub(crate) fn mean_by_round(values: impl Iterator<Item = (u32, f64)>) -> Vec<f64> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (round, value) in values {
        rounds.entry(round).or_default().push(value);
    }
    let means = rounds.values().map(|values| sample::mean(values));
    means
        .map(|mean| mean.expect("a round has a value"))
        .collect()
}

/// Answers per second in each window that the end of its round did not cut short.
pub(crate) fn rates(complete: &[&RoundRecord]) -> Vec<f64> {
    let mut rates = Vec::new();
    for round in complete {
        let width_us = round.windows.width_us;
        if width_us == 0 {
            continue;
        }
        let whole = usize::try_from(round.elapsed_us / width_us).expect("a usize has 64 bits");
        let counts = round.windows.completed.iter().take(whole);
        rates.extend(counts.map(|count| float(*count) * 1e6 / float(width_us)));
    }
    rates
}

/// Requests per second in the complete windows of the measurements.
pub(crate) fn rate_windows(complete: &[&RoundRecord]) -> Option<RateWindows> {
    let rates = rates(complete);
    Some(RateWindows {
        width_us: complete.first()?.windows.width_us,
        windows: rates.len(),
        requests_per_s_mean: sample::mean(&rates)?,
        requests_per_s_stdev: sample::stddev(&rates),
        requests_per_s_max: sample::max(&rates)?,
    })
}
