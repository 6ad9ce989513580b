//! Record of the network between the generators and the target.

use model::Shard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Hdr;

/// The network between a generator and a target on another machine, measured during the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkRecord {
    /// Round-trip times in nanoseconds. `weigh` times several TCP handshakes a second with the target,
    /// outside of the load's connections. The kernels of both sides answer a handshake, so the target's
    /// program has no effect on it.
    pub round_trip_ns_hdr: Hdr,
    /// Number of handshakes that did not end within a second.
    pub unanswered: u64,
    /// Number of TCP segments that the load's connections sent to the target. A segment that was sent three
    /// times counts three times. If the kernel does not count per connection, it is the number that the
    /// generator's network namespace sent during the load. The same holds if no connection was open at the end
    /// of the load. Absent if the kernel reports no number.
    pub segments: Option<u64>,
    /// Number of these segments that were sent again because no acknowledgment came. Absent if the kernel
    /// reports no number.
    pub retransmitted: Option<u64>,
}

/// One generator of a measurement with several generators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorRecord {
    /// The part of the load that this generator sent.
    pub shard: Shard,
    /// The name of the generator's pod.
    pub pod: String,
    /// The name of the generator's node.
    pub node: String,
    /// Lead of the first generator's clock over the clock of this generator, in microseconds. `weigh`
    /// corrects for it, so that all generators begin at one moment.
    pub clock_ahead_us: f64,
    /// Maximum error of `clock_ahead_us`, in microseconds. The sends of this generator may differ from the
    /// plan by this time.
    pub clock_error_us: f64,
    /// Delay of this generator's start after the agreed time, in microseconds.
    pub began_late_us: f64,
    /// Number of intended sends of this generator.
    pub planned: u64,
    /// Number of complete responses to this generator.
    pub completed: u64,
    /// Latency that half of the responses did not exceed, in microseconds. Absent without a response.
    pub latency_us_p50: Option<f64>,
    /// Lateness that 99 % of the sends did not exceed, in microseconds. Absent in a closed loop.
    pub lateness_us_p99: Option<f64>,
}

/// The cluster that ran the lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterText {
    /// The kind of cluster, always `kubernetes`.
    pub kind: String,
    /// The version of the cluster's API server.
    pub version: String,
    /// The namespace of the run.
    pub namespace: String,
    /// Number of generators that sent the load.
    pub generators: u32,
    /// The nodes that had pods of the run.
    pub nodes: Vec<NodeText>,
    /// Placement of the pods of every round. It has one entry for each pod of each system of each variant,
    /// and one for each generator. Older recordings contain only the last round.
    pub placed: Vec<PlacedText>,
    /// The rounds that lost a pod to the cluster and were measured again, with the reasons. Empty without losses,
    /// and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_rounds: Vec<String>,
    /// The source of the processor time of systems, and its resolution.
    pub processor_time: String,
}

/// A node, as the cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeText {
    /// The name of the node.
    pub name: String,
    /// The kernel version of the node.
    pub kernel: String,
    /// The operating system of the node.
    pub os: String,
    /// The container runtime of the node.
    pub runtime: String,
    /// The version of the node's kubelet.
    pub kubelet: String,
    /// The processor architecture of the node, such as `amd64`. Absent in older recordings, and if `weigh` had
    /// no right to read the node.
    pub architecture: Option<String>,
    /// The cores of the node, as a Kubernetes quantity.
    pub cpu: String,
    /// The memory of the node, as a Kubernetes quantity.
    pub memory: String,
}

/// The placement of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedText {
    /// The name of the pod.
    pub pod: String,
    /// The name of the node. Absent before the cluster placed the pod.
    pub node: Option<String>,
    /// The IP address of the pod, of the first family of the cluster. Absent in older recordings, and before the
    /// pod had an address.
    pub address: Option<String>,
    /// The number of the round, from 1. Absent in older recordings.
    pub round: Option<u32>,
    /// The name of the variant. Absent for a generator.
    pub variant: Option<String>,
    /// The name of the system, or `generator`.
    pub system: String,
    /// The Kubernetes quality-of-service class of the pod: `Guaranteed` if the lab set limits.
    pub quality: Option<String>,
    /// The digest of the image of the pod's first container, as the node reports it. Absent in older
    /// recordings, and before the container started.
    pub image: Option<String>,
}
