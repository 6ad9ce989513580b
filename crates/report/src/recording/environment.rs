//! Record of the machine on which a recording was made.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine, as far as it could be read. What could not be read is absent, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The processor's model name.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub cores: Option<u32>,
    /// Cores the load generator was pinned to; absent when it was not pinned.
    pub generator_cpus: Option<Vec<usize>>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// The operating system's release name.
    pub os: Option<String>,
    /// A hint of virtualization: the hypervisor or the container.
    pub virtualization: Option<String>,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The frequency governor, where readable.
    pub governor: Option<String>,
    /// Whether the processor may clock above its nominal frequency, where readable.
    pub boost: Option<bool>,
    /// How CPU and memory were accounted and limited: `cgroup v2`, `cgroup v1` or `/proc`.
    pub accounting: Option<String>,
    /// Whether cores run two threads each.
    pub smt: Option<bool>,
    /// Whether idle cores were kept from sleeping; absent in recordings that are older than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_awake: Option<bool>,
    /// Whether systems and generator went before other programs on the same cores; absent in recordings
    /// that are older than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<bool>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Share of all cores that was busy before anything of the run was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share_before: Option<f64>,
    /// Load average over 1, 5 and 15 minutes before the first round.
    pub load_average_before: Option<[f64; 3]>,
    /// Load average over 1, 5 and 15 minutes after the last round.
    pub load_average_after: Option<[f64; 3]>,
    /// Processor time taken by other guests of the host during the run, in milliseconds.
    pub steal_ms: Option<u64>,
    /// What `weigh tare` found on this machine before; absent when it was never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_floor: Option<NoiseFloor>,
    /// Everything else worth keeping, by name.
    #[serde(default)]
    pub other: BTreeMap<String, String>,
}

/// The noise floor of a machine: the null server weighed against itself. An overhead below it is no
/// finding there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoiseFloor {
    /// When it was found, RFC 3339 in UTC.
    pub made_at: String,
    /// Requests per second that the null server got.
    pub requests_per_s: f64,
    /// Rounds of two equal measurements each.
    pub rounds: usize,
    /// The floor of an overhead of the mean latency, in microseconds.
    pub latency_us_mean: f64,
    /// The floor of an overhead of the median latency, in microseconds.
    pub latency_us_p50: f64,
    /// The floor of an overhead of the 99th percentile of latency, in microseconds.
    pub latency_us_p99: f64,
}
