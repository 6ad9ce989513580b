//! The figures of one measurement, as data: name, unit, and which way is better.

use schemars::JsonSchema;
use serde::Serialize;
use stats::Histogram;

use crate::recording::{RoundRecord, SystemUsage};

/// One kind of figure. Its serialized name carries the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub enum Metric {
    /// Complete answers that met the expectation, per second of the measurement.
    #[serde(rename = "requests_per_s")]
    Requests,
    /// Shortest latency.
    #[serde(rename = "latency_us_min")]
    Min,
    /// Mean latency.
    #[serde(rename = "latency_us_mean")]
    Mean,
    /// Standard deviation of latency over the requests of a round.
    #[serde(rename = "latency_us_stdev")]
    Stdev,
    /// Median latency.
    #[serde(rename = "latency_us_p50")]
    P50,
    /// Latency that 75 % of the requests do not exceed.
    #[serde(rename = "latency_us_p75")]
    P75,
    /// Latency that 90 % of the requests do not exceed.
    #[serde(rename = "latency_us_p90")]
    P90,
    /// Latency that 95 % of the requests do not exceed.
    #[serde(rename = "latency_us_p95")]
    P95,
    /// Latency that 99 % of the requests do not exceed.
    #[serde(rename = "latency_us_p99")]
    P99,
    /// Latency that 99.9 % of the requests do not exceed.
    #[serde(rename = "latency_us_p999")]
    P999,
    /// Longest latency.
    #[serde(rename = "latency_us_max")]
    Max,
    /// Bytes received and sent, in 10^6 bytes per second.
    #[serde(rename = "throughput_mb_per_s")]
    Throughput,
    /// Processor time of all systems per complete answer.
    #[serde(rename = "cpu_us_per_request")]
    Cpu,
    /// Sum of the systems' peak memory.
    #[serde(rename = "memory_peak_bytes")]
    Memory,
    /// Context switches of all systems per complete answer, voluntary and not.
    #[serde(rename = "context_switches_per_request")]
    ContextSwitches,
    /// Those of them in which others took the core although the thread could have gone on.
    #[serde(rename = "context_switches_involuntary_per_request")]
    ContextSwitchesInvoluntary,
    /// How long the systems' threads were ready to run while others had the cores, per complete answer.
    #[serde(rename = "waited_for_cpu_us_per_request")]
    WaitedForCpu,
    /// Processor time of the generator per complete answer.
    #[serde(rename = "generator_cpu_us_per_request")]
    GeneratorCpu,
}

/// How values of a metric are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Recorded in microseconds, shown in milliseconds.
    Milliseconds,
    /// Shown as recorded.
    Microseconds,
    /// Recorded in bytes, shown in MiB.
    Mebibytes,
    /// Shown as recorded.
    PerSecond,
    /// Shown as recorded.
    MegabytesPerSecond,
    /// A number of something; shown as recorded.
    PerRequest,
}

impl Metric {
    /// Every metric, in the order of tables.
    pub const ALL: [Self; 18] = [
        Self::Requests,
        Self::Min,
        Self::Mean,
        Self::Stdev,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Max,
        Self::Throughput,
        Self::Cpu,
        Self::Memory,
        Self::ContextSwitches,
        Self::ContextSwitchesInvoluntary,
        Self::WaitedForCpu,
        Self::GeneratorCpu,
    ];

    /// The name with its unit last, as in JSON and CSV.
    pub fn key(self) -> &'static str {
        match self {
            Self::Requests => "requests_per_s",
            Self::Min => "latency_us_min",
            Self::Mean => "latency_us_mean",
            Self::Stdev => "latency_us_stdev",
            Self::P50 => "latency_us_p50",
            Self::P75 => "latency_us_p75",
            Self::P90 => "latency_us_p90",
            Self::P95 => "latency_us_p95",
            Self::P99 => "latency_us_p99",
            Self::P999 => "latency_us_p999",
            Self::Max => "latency_us_max",
            Self::Throughput => "throughput_mb_per_s",
            Self::Cpu => "cpu_us_per_request",
            Self::Memory => "memory_peak_bytes",
            Self::ContextSwitches => "context_switches_per_request",
            Self::ContextSwitchesInvoluntary => "context_switches_involuntary_per_request",
            Self::WaitedForCpu => "waited_for_cpu_us_per_request",
            Self::GeneratorCpu => "generator_cpu_us_per_request",
        }
    }

    /// The metric of this name in JSON and CSV.
    pub fn named(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.key() == key)
    }

    /// The heading of its column, without the unit.
    pub fn label(self) -> &'static str {
        match self {
            Self::Requests => "requests/s",
            Self::Min => "min",
            Self::Mean => "mean",
            Self::Stdev => "stdev",
            Self::P50 => "p50",
            Self::P75 => "p75",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
            Self::Throughput => "MB/s",
            Self::Cpu => "CPU us/request",
            Self::Memory => "peak memory MiB",
            Self::ContextSwitches => "context switches/request",
            Self::ContextSwitchesInvoluntary => "involuntary switches/request",
            Self::WaitedForCpu => "waited for CPU us/request",
            Self::GeneratorCpu => "generator CPU us/request",
        }
    }

    /// How values are shown.
    pub fn unit(self) -> Unit {
        match self {
            Self::Requests => Unit::PerSecond,
            Self::Throughput => Unit::MegabytesPerSecond,
            Self::Cpu | Self::WaitedForCpu | Self::GeneratorCpu => Unit::Microseconds,
            Self::Memory => Unit::Mebibytes,
            Self::ContextSwitches | Self::ContextSwitchesInvoluntary => Unit::PerRequest,
            _ => Unit::Milliseconds,
        }
    }

    /// Whether less of it is better.
    pub fn is_better_low(self) -> bool {
        !matches!(self, Self::Requests | Self::Throughput)
    }

    /// The figure of one measurement; none when it could not be measured. `latency` is the
    /// decoded histogram of the same measurement.
    pub(crate) fn of(self, round: &RoundRecord, latency: &Histogram) -> Option<f64> {
        let elapsed_s = float(round.elapsed_us) / 1e6;
        let per_second = |amount: f64| (elapsed_s > 0.0).then(|| amount / elapsed_s);
        let completed = round.outcomes.completed();
        let per_request = |amount: u64| (completed > 0).then(|| float(amount) / float(completed));
        let of_systems = |of: fn(&SystemUsage) -> Option<u64>| sum(round.systems.iter().map(of));
        let us = |nanoseconds: f64| nanoseconds / 1e3;
        let quantile = |share: f64| latency.quantile_ns(share).map(float).map(us);
        match self {
            Self::Requests => per_second(float(round.outcomes.passed)),
            Self::Min => latency.min_ns().map(float).map(us),
            Self::Mean => latency.mean_ns().map(us),
            Self::Stdev => latency.stddev_ns().map(us),
            Self::P50 => quantile(0.5),
            Self::P75 => quantile(0.75),
            Self::P90 => quantile(0.9),
            Self::P95 => quantile(0.95),
            Self::P99 => quantile(0.99),
            Self::P999 => quantile(0.999),
            Self::Max => latency.max_ns().map(float).map(us),
            Self::Throughput => per_second(float(round.bytes_in + round.bytes_out) / 1e6),
            Self::Cpu => per_request(of_systems(|system| system.cpu_us)?),
            Self::Memory => of_systems(|system| system.memory_peak_bytes).map(float),
            Self::ContextSwitches => per_request(of_systems(|system| system.context_switches)?),
            Self::ContextSwitchesInvoluntary => {
                per_request(of_systems(|system| system.context_switches_involuntary)?)
            }
            Self::WaitedForCpu => per_request(of_systems(|system| system.waited_for_cpu_us)?),
            Self::GeneratorCpu => per_request(round.generator.cpu_us),
        }
    }
}

impl Unit {
    /// The value as shown.
    pub fn shown(self, value: f64) -> f64 {
        match self {
            Self::Milliseconds => value / 1e3,
            Self::Mebibytes => value / (1024.0 * 1024.0),
            Self::Microseconds | Self::PerSecond | Self::MegabytesPerSecond | Self::PerRequest => {
                value
            }
        }
    }

    /// The unit's sign.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Mebibytes => "MiB",
            Self::PerSecond => "requests/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::PerRequest => "a request",
        }
    }
}

/// A sum over systems is known only when every part is; no systems have no sum.
pub(crate) fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let parts: Vec<u64> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| parts.iter().sum())
}

/// A count as a number to compute with.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of one run stay far below 2^53"
)]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serialized_name_is_the_key() {
        for metric in Metric::ALL {
            let serialized = serde_json::to_value(metric).unwrap();
            assert_eq!(serialized, metric.key());
        }
    }
}
