//! The intended load of a run.

use model::{Capacity, Load, Protocol, Settle, Shard, Trust, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Header;

/// The load of every round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadText {
    /// How requests arrive.
    pub model: Load,
    /// What was looked for in every round: the highest rate that is sustained. `model` is then the
    /// first step of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// How the run chose the rate of `model`, and unless the lab gave that the length of a round; absent
    /// where the lab gave the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<RateChosen>,
    /// The URL of a single load; absent in a lab, whose ports change with every start.
    pub url: Option<String>,
    /// The address that got a single load, where its URL has a name that stands for one; absent in a lab,
    /// whose systems say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How requests travel; recordings from before there was a choice do not say it, and mean
    /// HTTP/1.1 in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolText>,
    /// Load sent and thrown away before each measurement, in microseconds; 0 for none.
    pub warmup_us: u64,
    /// Load after each start until the target got no faster; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
    /// Whether systems were started once and kept running from round to round, and not started anew
    /// in each.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_systems: bool,
    /// The systems that were started once and kept running where the others were started anew in each
    /// round; empty where all were, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_systems: Vec<String>,
    /// How long load was sent after a start from the second round on, in microseconds, where that
    /// differs from `settle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_again_us: Option<u64>,
    /// Threads of the generator.
    pub threads: u32,
    /// The part of the load that was sent, where several generators sent it; `model` is all of it.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub shard: Shard,
    /// When the first send was allowed, RFC 3339 in UTC, where a time was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// How long an answer may take, in microseconds, before it counts as failed.
    pub timeout_us: u64,
    /// Whether connections are used for more than one request.
    pub keep_alive: bool,
    /// The requests, sent in rotation, or as the steps of a scenario.
    pub requests: Vec<RequestText>,
    /// Whether the requests are the steps of a scenario: then counts and rates of `model` are those
    /// of iterations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_scenario: bool,
}

fn whole() -> Shard {
    Shard::WHOLE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_whole(shard: &Shard) -> bool {
    shard.is_whole()
}

/// How a run chose its rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChosen {
    /// Why the rate is not higher; a clause.
    pub because: String,
    /// The variants that were tried out, in the order of the report.
    pub variants: Vec<TriedVariant>,
}

/// The behavior of a variant under two short loads, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedVariant {
    /// Its name.
    pub variant: String,
    /// From send to answer, with one request in flight: the median.
    pub alone_us: f64,
    /// Requests in flight in the second load.
    pub in_flight: u32,
    /// From send to answer, with so many in flight: the mean.
    pub together_us: f64,
    /// Processor time of a request in the first load; absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_us: Option<f64>,
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolText {
    /// The version of HTTP.
    pub http: HttpText,
    /// Whether connections are encrypted.
    pub tls: TlsText,
    /// The most requests under way at once on one connection; 1 over HTTP/1.1.
    pub streams: u32,
}

/// The version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpText {
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2.
    #[serde(rename = "2")]
    Http2,
}

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsText {
    /// They are not.
    Off,
    /// They are, and the certificate of the target was verified.
    Verified,
    /// They are, and any certificate was good enough.
    Unverified,
}

/// One request of the rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestText {
    /// Its name in the lab, or its method and path.
    pub name: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers as sent, without those the generator adds itself. Values of headers that carry
    /// credentials may be replaced by `(hidden)`.
    pub headers: Vec<Header>,
    /// SHA-256 of the body, in hexadecimal; absent when there is no body.
    pub body_sha256: Option<String>,
    /// Length of the body.
    pub body_bytes: u64,
    /// The body; absent where the request has none, when it is not text, or when it is too long to keep.
    pub body: Option<String>,
    /// How often it is sent, relative to the others.
    pub weight: u32,
    /// How many operations it carries: more than 1 of a batch.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub operations: u32,
    /// Of a step: how long an iteration rests before it, in microseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub pause_us: u64,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

impl RequestText {
    /// True if two requests are equal, apart from their names and their role in a scenario.
    pub(crate) fn is_sent_as(&self, other: &Self) -> bool {
        self.method == other.method
            && self.path == other.path
            && self.headers == other.headers
            && self.body_sha256 == other.body_sha256
            && self.weight == other.weight
    }
}

/// True if a count is 0 and can be left out of the JSON.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_nothing(count: &u64) -> bool {
    *count == 0
}

/// The record contains no certificates of authorities, only the fact that the lab requested them.
impl From<&Protocol> for ProtocolText {
    fn from(protocol: &Protocol) -> Self {
        Self {
            http: match protocol.version {
                Version::Http1 => HttpText::Http1,
                Version::Http2 { .. } => HttpText::Http2,
            },
            tls: match &protocol.tls {
                None => TlsText::Off,
                Some(Trust::SkipVerification) => TlsText::Unverified,
                Some(Trust::System | Trust::Authorities(_)) => TlsText::Verified,
            },
            streams: protocol.version.streams(),
        }
    }
}
