//! A compared setup: its parts, and the result of its start.

use std::collections::BTreeMap;

use model::InvalidKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Header, ProtocolText, RequestText};

/// One setup: the baseline or a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantRecord {
    /// The name of the variant, which is a row of the report.
    pub name: String,
    /// The name of the baseline of this variant. A baseline has its own name here. Absent if it is the
    /// recording's `baseline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The settings that differ between variants. Contains `keep-alive` if the variant's connections differ
    /// from `load`.
    pub with: BTreeMap<String, String>,
    /// The requests of the load. Empty if they are the requests of `load`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestText>,
    /// Requests sent once after each start, before the proof. No figure contains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared: Vec<RequestText>,
    /// The protocol of the requests. Absent if it is the protocol of `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolText>,
    /// The systems of the variant, in the order of their start.
    pub systems: Vec<SystemRecord>,
    /// Evidence from before the load that the variant did its work. A lab reports no number for a variant
    /// without a proof.
    pub proof: Option<Proof>,
    /// The result: measured, or invalid with a reason.
    pub status: VariantStatus,
}

/// Key of the connection setting in `with`, the settings that differ between variants.
pub const KEEP_ALIVE: &str = "keep-alive";

/// The result of a variant: measured, or invalid with a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum VariantStatus {
    /// The variant started, passed its proof and received load.
    Measured,
    /// The variant has no number.
    Invalid {
        /// The kind of the error.
        kind: InvalidKind,
        /// The error in one sentence, for the report.
        reason: String,
    },
}

/// One system of a variant, as it was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemRecord {
    /// The name of the system in the lab.
    pub name: String,
    /// The URL of a system that ran before the lab. Absent if `weigh` started the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The address that received the load, if the host of `url` is a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The image of the container, as the lab names it. Absent for a process. The image's digest is
    /// `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// SHA-256 of the Kubernetes manifests, concatenated in the order of the lab. Absent for a system without
    /// manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
    /// The network of the container: `host` (the network of its machine) or `bridge`. Absent for other systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The command of the last start with its ports, program first. Empty for a system that ran before the
    /// lab, and for a container with the command of its image.
    pub command: Vec<String>,
    /// The version as the system reports it.
    pub version: Option<String>,
    /// Environment variables that the lab set.
    pub env: BTreeMap<String, String>,
    /// SHA-256 of each configuration file, by its name. Settings are filled in, and addresses are open, because
    /// each start has others. Absent without files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// The settings of the system, after the variant's `with`.
    pub settings: BTreeMap<String, String>,
    /// The limits that the lab requested.
    pub limits_asked: LimitsText,
    /// The limits in force, as read back from the operating system. Absent if no limit could be enforced.
    pub limits_enforced: Option<LimitsText>,
    /// The mechanism that enforced the limits (`cgroup v1`, `cgroup v2`, or Kubernetes with the class of the
    /// pod), or the reason why no limit was enforced.
    pub limits_by: Option<String>,
    /// The cores of the system. Absent if it was not pinned to cores.
    pub cpus: Option<Vec<usize>>,
    /// Number of instances of the system behind a balancer. Absent if the system had no balancer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// True if all variants that ran together shared one process of the system.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Time of the build in milliseconds. Absent if the system has no build, or shared the build of another
    /// system.
    pub build_ms: Option<u64>,
}

/// Limits of a system. An absent limit means unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsText {
    /// Processor time per wall time: 0.25 is a quarter of a core.
    pub cpus: Option<f64>,
    /// Maximum memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// Evidence from before the load that a variant did its work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// One response to each request of the load.
    pub answers: Vec<ProofAnswer>,
    /// The evidence for each other proof that the lab requires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<ProofSeen>,
}

/// The evidence for one proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofSeen {
    /// The name of the proof in the lab.
    pub proof: String,
    /// The observation, in words.
    pub seen: String,
}

/// One response that met the expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofAnswer {
    /// The name of the request in the lab.
    pub request: String,
    /// Status code of the response.
    pub status: u16,
    /// Headers of the response.
    pub headers: Vec<Header>,
    /// Length of the body in bytes, as received.
    pub body_bytes: u64,
    /// SHA-256 of the body without content codings, in hexadecimal.
    pub body_sha256: String,
    /// The encoding of the body. Absent without `Content-Encoding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<EncodingRecord>,
    /// The content coding that the system used when an extra request accepted compression. Present only if
    /// the load's request has no `Accept-Encoding` and its response body is plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding_if_asked: Option<String>,
    /// The reason, in words, why the body was not compared with the baseline's body. Present only if the lab
    /// requires this comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// SHA-256 of the descriptors that the system gave for a gRPC call, in hexadecimal. Absent if the lab has
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors_sha256: Option<String>,
}

/// The encoding of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EncodingRecord {
    /// The value of the response header `Content-Encoding`.
    pub coding: String,
    /// Length of the decoded body in bytes.
    pub decoded_bytes: u64,
    /// True if the second response had equal content but other encoded bytes.
    pub varies: bool,
}
