//! A compared setup: its parts, and the result of its start.

use std::collections::BTreeMap;

use model::InvalidKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Header, ProtocolText, RequestText};

/// One setup: the baseline or a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantRecord {
    /// Its name: a row of the report.
    pub name: String,
    /// The name of the variant it is compared with, its own for one that others are compared with;
    /// absent where that is the recording's `baseline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The settings that make the difference, and `keep-alive` where its connections were used
    /// otherwise than `load` says.
    pub with: BTreeMap<String, String>,
    /// What was sent to it; empty where that is what `load` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestText>,
    /// What was sent to it once after each start, before the proof; in no figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepared: Vec<RequestText>,
    /// How its requests travel; absent where that is what `load` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolText>,
    /// The systems it was made of, in the order they were started.
    pub systems: Vec<SystemRecord>,
    /// What it was seen to do before the load. In a lab, a variant without it has no number.
    pub proof: Option<Proof>,
    /// Whether it was measured.
    pub status: VariantStatus,
}

/// Key of the connection setting in `with`, the settings that differ between variants.
pub const KEEP_ALIVE: &str = "keep-alive";

/// Whether a variant was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum VariantStatus {
    /// It started, gave its proof and was loaded.
    Measured,
    /// It has no number.
    Invalid {
        /// What kind of thing went wrong.
        kind: InvalidKind,
        /// What exactly, in one sentence for the report.
        reason: String,
    },
}

/// One system of a variant, as it was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemRecord {
    /// Its name in the lab.
    pub name: String,
    /// Where it ran already; absent for one that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The address that got the load, where `url` has a name that stands for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The image of the container that it was, as the lab names it; absent for a process. Its digest is
    /// the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The SHA-256 of the manifests that it was made of, one after the other as the lab names them; absent
    /// for a system of another origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
    /// The network that the container was in: `host`, that of its machine, or `bridge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// The command as started, program first; ports as in the last start. Empty for one that ran
    /// already, and for a container with the command of its image.
    pub command: Vec<String>,
    /// The version as the system reports it.
    pub version: Option<String>,
    /// Environment variables the lab set.
    pub env: BTreeMap<String, String>,
    /// Its settings, after the variant's `with`.
    pub settings: BTreeMap<String, String>,
    /// The limits the lab asked for.
    pub limits_asked: LimitsText,
    /// The limits that were in force, read back; absent where nothing could be enforced.
    pub limits_enforced: Option<LimitsText>,
    /// What enforced the limits (`cgroup v1`, `cgroup v2`), or why nothing did.
    pub limits_by: Option<String>,
    /// The cores it was pinned to; absent when it was not pinned.
    pub cpus: Option<Vec<usize>>,
    /// How many instances of it ran behind a balancer; absent for one that was spoken to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Whether one process of it served all variants that were up together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// How long its build took, in milliseconds; absent when it has none or shared another's.
    pub build_ms: Option<u64>,
}

/// Limits of a system; what is absent is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsText {
    /// Processor time per wall time: 0.25 is a quarter of a core.
    pub cpus: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// What a variant was seen to do before the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// One answer to each request of the load.
    pub answers: Vec<ProofAnswer>,
    /// What was seen of everything else that it must do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<ProofSeen>,
}

/// What was seen of one proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofSeen {
    /// Its name.
    pub proof: String,
    /// What was seen, in words.
    pub seen: String,
}

/// One answer that met the expectation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofAnswer {
    /// The request's name.
    pub request: String,
    /// Status code of the answer.
    pub status: u16,
    /// Headers of the answer.
    pub headers: Vec<Header>,
    /// Length of its body, as it came.
    pub body_bytes: u64,
    /// SHA-256 of its body without content codings, in hexadecimal.
    pub body_sha256: String,
    /// How its body was encoded; absent for a plain one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<EncodingRecord>,
    /// The content coding of the body when a request asked for one, where the request of the load does not
    /// say what it accepts and its body is plain; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding_if_asked: Option<String>,
    /// Why its body was not compared with the baseline's, in words, where the lab asks for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
}

/// How a body was encoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EncodingRecord {
    /// The value of `Content-Encoding`.
    pub coding: String,
    /// Length of the body when decoded.
    pub decoded_bytes: u64,
    /// Whether the same content came as other bytes in the second answer.
    pub varies: bool,
}
