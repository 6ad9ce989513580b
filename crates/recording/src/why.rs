//! Record of `--why`: pairs of a plain load and a sampled load, in rounds that do not count.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The samples of `--why`. No figure of a variant contains these loads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyRecord {
    /// The sources of the samples, one sentence each. A sentence also names the limits of its source.
    pub sources: Vec<String>,
    /// The pairs of loads, in the order of their measurement.
    pub pairs: Vec<WhyPair>,
    /// The samples of each system, summed over the sampled loads of its variant.
    pub systems: Vec<SampledSystem>,
}

/// Two loads of one start of a variant. They differ only in the samplers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyPair {
    /// The name of the variant.
    pub variant: String,
    /// Index of the round, from 0.
    pub round: u32,
    /// True if the sampled load came first. The order alternates between rounds.
    pub sampled_first: bool,
    /// The load without samplers.
    pub plain: WhyLoad,
    /// The load with samplers.
    pub sampled: WhyLoad,
}

/// One load of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyLoad {
    /// Number of complete responses.
    pub answered: u64,
    /// Length of the load in microseconds.
    pub elapsed_us: u64,
    /// Mean latency of the complete responses, in microseconds.
    pub latency_us_mean: f64,
    /// Number of connections that the generator opened.
    pub connections: u64,
    /// Number of TCP connections that the systems opened. Other programs in the network namespaces of the
    /// systems count too. Absent if the kernel does not report it.
    pub connections_of_systems: Option<u64>,
    /// The use of time by each system.
    pub systems: Vec<WhyUse>,
}

/// The use of time by one system during one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhyUse {
    /// The name of the system.
    pub name: String,
    /// Processor time in microseconds. Absent if it could not be read.
    pub cpu_us: Option<u64>,
    /// Time of blocked threads in microseconds, by cause and summed over threads. A wait that is longer than
    /// the slowest response is left out, because no response contains it. Empty without samplers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits_us: BTreeMap<WaitKind, u64>,
}

/// The cause of a blocked thread.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// A timer: `nanosleep`.
    Timer,
    /// Sockets, with a time limit of at most a second. Event loops wait in this way until their next timer.
    TimedInput,
    /// A lock that another thread holds.
    Lock,
    /// Another thread: a condition variable, a parked thread, a semaphore.
    Thread,
    /// Bytes or connections from outside, or an idle server.
    Input,
    /// The other side of a new connection.
    Connect,
    /// A file.
    File,
    /// Another system call, or an unknown cause.
    Other,
}

/// The samples of one system of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledSystem {
    /// The name of the variant.
    pub variant: String,
    /// The name of the system.
    pub system: String,
    /// Processor time per complete response in the sampled loads, in microseconds. Absent if it could not be
    /// read.
    pub cpu_us_per_request: Option<f64>,
    /// Folded stacks (`root;caller;callee`) on a core, with their numbers of samples.
    pub stacks: BTreeMap<String, u64>,
    /// Folded stacks of blocked threads by cause, with their time per complete response in microseconds.
    pub waits: BTreeMap<WaitKind, BTreeMap<String, f64>>,
    /// Folded stacks of blocked threads from traces of the scheduler, with their time per complete response in
    /// microseconds. Unlike `waits`, they contain functions. Empty if the kernel does not permit the traces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blocked: BTreeMap<String, f64>,
    /// Numbers of the runtime that need no agent, such as collections, per complete response.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runtime: BTreeMap<String, f64>,
    /// The missing part of the samples, with a remedy. Absent if no part is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

impl WhyLoad {
    /// The use of a system. `None` if the variant has no such system.
    #[must_use]
    pub fn system(&self, name: &str) -> Option<&WhyUse> {
        self.systems.iter().find(|used| used.name == name)
    }
}
