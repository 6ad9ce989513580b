//! Record of the machine on which a recording was made.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine. A property that could not be read is absent, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The model name of the processor.
    pub cpu_model: Option<String>,
    /// Number of cores online.
    pub cores: Option<u32>,
    /// Cores of the load generator. Absent if it was not pinned to cores.
    pub generator_cpus: Option<Vec<usize>>,
    /// Name and release of the kernel.
    pub kernel: Option<String>,
    /// The operating system's release name.
    pub os: Option<String>,
    /// The hypervisor or the container, if a sign of virtualization was found.
    pub virtualization: Option<String>,
    /// Size of the main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The frequency governor, if readable.
    pub governor: Option<String>,
    /// True if the processor may clock above its nominal frequency. Absent if it could not be read.
    pub boost: Option<bool>,
    /// The accounting and limits of processor time and memory: `cgroup v2`, `cgroup v1` or `/proc`.
    pub accounting: Option<String>,
    /// True if cores run two threads each.
    pub smt: Option<bool>,
    /// True if `weigh` kept idle cores from sleeping. Absent in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_awake: Option<bool>,
    /// True if systems and generator had priority over other programs on their cores. Absent in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Share of the time of all cores that was busy before the run started a system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share_before: Option<f64>,
    /// Load average over 1, 5 and 15 minutes before the first round.
    pub load_average_before: Option<[f64; 3]>,
    /// Load average over 1, 5 and 15 minutes after the last round.
    pub load_average_after: Option<[f64; 3]>,
    /// Processor time taken by other guests of the host during the run, in milliseconds.
    pub steal_ms: Option<u64>,
    /// The noise floor that `weigh tare` measured on this machine before. Absent without such a measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_floor: Option<NoiseFloor>,
    /// Other properties of the machine, by name.
    #[serde(default)]
    pub other: BTreeMap<String, String>,
}

/// The noise floor of a machine, from a comparison of the null server with itself. A smaller overhead on this
/// machine is no finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseFloor {
    /// Time of the measurement, RFC 3339 in UTC.
    pub made_at: String,
    /// Requests per second that the null server received.
    pub requests_per_s: f64,
    /// Number of rounds. Each round has two equal measurements.
    pub rounds: usize,
    /// The floor of an overhead of the mean latency, in microseconds.
    pub latency_us_mean: f64,
    /// The floor of an overhead of the median latency, in microseconds.
    pub latency_us_p50: f64,
    /// The floor of an overhead of the 99th percentile of latency, in microseconds.
    pub latency_us_p99: f64,
}
