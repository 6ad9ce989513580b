//! Record of the network between the generators and the target.

use model::Shard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Hdr;

/// The network between a generator and a target on another machine, as it was beside the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkRecord {
    /// Round-trip times in nanoseconds: how long a TCP handshake with the target took that was not under
    /// load, several a second. The kernels of both sides answer it, and not the target's program.
    pub round_trip_ns_hdr: Hdr,
    /// Handshakes that did not end within a second.
    pub unanswered: u64,
    /// TCP segments that the load's connections to the target sent. Where the kernel does not tell of
    /// single connections, or none was open at the end of the load, those that the generator's network
    /// namespace sent meanwhile. Absent where not told.
    pub segments: Option<u64>,
    /// Of these, those that were sent again because no acknowledgment came; absent where not told.
    pub retransmitted: Option<u64>,
}

/// One generator of a measurement that several have made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorRecord {
    /// Which part of the load it sent.
    pub shard: Shard,
    /// The pod that it was.
    pub pod: String,
    /// The node that it was on.
    pub node: String,
    /// How far the first generator's clock was ahead of its own, in microseconds. It is taken into account:
    /// all begin at one moment.
    pub clock_ahead_us: f64,
    /// How wrong that can be at most, in microseconds: by so much its sends may be apart from the plan.
    pub clock_error_us: f64,
    /// How much later than agreed it began, in microseconds.
    pub began_late_us: f64,
    /// Intended sends.
    pub planned: u64,
    /// Complete answers.
    pub completed: u64,
    /// Latency that half of the answers did not exceed, in microseconds; absent without an answer.
    pub latency_us_p50: Option<f64>,
    /// Lateness that 99 % of its sends did not exceed, in microseconds; absent in a closed loop.
    pub lateness_us_p99: Option<f64>,
}

/// The cluster in which a lab was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterText {
    /// What it is: `kubernetes`.
    pub kind: String,
    /// The version of its API server.
    pub version: String,
    /// Where in it the run was.
    pub namespace: String,
    /// How many generators sent the load.
    pub generators: u32,
    /// The nodes that pods of the run were on.
    pub nodes: Vec<NodeText>,
    /// Where pods were, one for each system of each variant and for each generator, as of the last round
    /// that began.
    pub placed: Vec<PlacedText>,
    /// What the processor time of systems is, and how finely it is known.
    pub processor_time: String,
}

/// A node, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeText {
    /// Its name.
    pub name: String,
    /// Its kernel.
    pub kernel: String,
    /// Its operating system.
    pub os: String,
    /// What runs its containers.
    pub runtime: String,
    /// The version of its kubelet.
    pub kubelet: String,
    /// Its cores, in the cluster's way to write them.
    pub cpu: String,
    /// Its memory, in the cluster's way to write it.
    pub memory: String,
}

/// Where a pod was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedText {
    /// The pod.
    pub pod: String,
    /// The node; absent before it was placed.
    pub node: Option<String>,
    /// The variant, or absent for a generator.
    pub variant: Option<String>,
    /// The system, or `generator`.
    pub system: String,
    /// Its quality of service, in the cluster's word: `Guaranteed` where limits were given.
    pub quality: Option<String>,
}
