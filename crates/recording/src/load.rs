//! The intended load of a run.

use model::{Capacity, Load, Protocol, Resumption, Settle, Shard, Trust, Version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Header;

/// The load of every round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadText {
    /// The arrival of requests: open or closed loop.
    pub model: Load,
    /// The search for the highest sustained rate in every round. If present, `model` is the first step of the
    /// search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// The choice of the rate of `model` by the run. If the lab did not set the length of a round, the run
    /// also chose the length. Absent if the lab set the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<RateChosen>,
    /// The URL of a single load. Absent in a lab, because its ports change with every start.
    pub url: Option<String>,
    /// The address that received a single load, if the host of `url` is a name. Absent in a lab, because the
    /// systems of the variants contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The protocol of the requests. Absent in recordings of versions that supported only HTTP/1.1 without
    /// TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolText>,
    /// Duration of the load that was sent and discarded before each measurement, in microseconds. 0 means no
    /// warm-up.
    pub warmup_us: u64,
    /// The load that was sent after each start until the target got no faster. Absent without such load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
    /// True if systems started once and kept running from round to round. False if they started again in each
    /// round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_systems: bool,
    /// The systems that started once and kept running while the other systems started again in each round.
    /// Empty if all systems kept running, or if no system did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_systems: Vec<String>,
    /// Duration of the load after a start from the second round on, in microseconds. Absent if it is the time
    /// of `settle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_again_us: Option<u64>,
    /// Number of threads of the generator.
    pub threads: u32,
    /// The part of the load that this generator sent, if several generators sent the load. `model` is the
    /// whole load.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub shard: Shard,
    /// Earliest allowed time of the first send, RFC 3339 in UTC. Absent if the user set no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// Maximum time for a response, in microseconds. A request that exceeds it counts as failed.
    pub timeout_us: u64,
    /// True if connections carry more than one request.
    pub keep_alive: bool,
    /// The requests, sent in rotation, or as the steps of a scenario.
    pub requests: Vec<RequestText>,
    /// True if the requests are the steps of a scenario. Counts and rates of `model` then refer to
    /// iterations.
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

/// The choice of a rate by the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateChosen {
    /// The reason why the rate is not higher, as a clause.
    pub because: String,
    /// The variants that received the two short loads, in the order of the report.
    pub variants: Vec<TriedVariant>,
}

/// The behavior of a variant under two short loads, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedVariant {
    /// The name of the variant.
    pub variant: String,
    /// Median time from send to response in the first load, with one request in flight.
    pub alone_us: f64,
    /// Number of requests in flight in the second load.
    pub in_flight: u32,
    /// Mean time from send to response in the second load, with `in_flight` requests in flight.
    pub together_us: f64,
    /// Processor time of a request in the first load. Absent if it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_us: Option<f64>,
}

/// The protocol of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProtocolText {
    /// The version of HTTP on every connection.
    pub http: HttpText,
    /// The encryption of the connections.
    pub tls: TlsText,
    /// Maximum number of concurrent requests on one connection. 1 over HTTP/1.1.
    pub streams: u32,
    /// True if the generator had a certificate of its own, which a target can request. The record does not
    /// contain it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_certificate: bool,
    /// The use of tickets of earlier connections. Absent if every handshake is a full handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumption: Option<ResumptionText>,
}

/// The use of tickets of earlier connections in handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResumptionText {
    /// Connections use tickets.
    #[serde(rename = "on")]
    On,
    /// Requests with a safe method also leave before the handshake is complete.
    #[serde(rename = "0-rtt")]
    EarlyData,
}

/// A version of HTTP that requests can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HttpText {
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/3.
    #[serde(rename = "3")]
    Http3,
}

/// The encryption of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsText {
    /// Connections are not encrypted.
    Off,
    /// Connections are encrypted, and the certificate of the target was verified.
    Verified,
    /// Connections are encrypted, and the generator accepted any certificate.
    Unverified,
}

/// One request of the rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestText {
    /// The name of the request in the lab, or its method and path.
    pub name: String,
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// Path and query, such as `/search?q=tea`.
    pub path: String,
    /// Headers as sent, without the headers that the generator adds. Only a call of gRPC-Web or Connect also has
    /// the header that marks its protocol. Values of headers that contain credentials may be replaced by
    /// `(hidden)`.
    pub headers: Vec<Header>,
    /// SHA-256 of the body, in hexadecimal. Absent without a body.
    pub body_sha256: Option<String>,
    /// Length of the body in bytes.
    pub body_bytes: u64,
    /// The body. Absent if the request has no body, or if the body is not text or too long to keep.
    pub body: Option<String>,
    /// The frequency of the request, relative to the other requests.
    pub weight: u32,
    /// Number of operations in the request. A batch has more than 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub operations: u32,
    /// The pause of an iteration before this step, in microseconds. 0 outside of a scenario.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub pause_us: u64,
    /// SHA-256 of the descriptors of a gRPC call, in hexadecimal. With the messages in `body` they give the
    /// bytes of the call. Absent for another request, and for descriptors that the server gave before the
    /// load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors_sha256: Option<String>,
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
    pub fn is_sent_as(&self, other: &Self) -> bool {
        self.method == other.method
            && self.path == other.path
            && self.headers == other.headers
            && self.descriptors_sha256 == other.descriptors_sha256
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
                Version::Http3 { .. } => HttpText::Http3,
            },
            tls: match &protocol.tls {
                None => TlsText::Off,
                Some(Trust::SkipVerification) => TlsText::Unverified,
                Some(Trust::System | Trust::Authorities(_)) => TlsText::Verified,
            },
            streams: protocol.version.streams(),
            client_certificate: protocol.tls.is_some() && protocol.identity.is_some(),
            resumption: match (&protocol.tls, protocol.resumption) {
                (None, _) | (Some(_), Resumption::Off) => None,
                (Some(_), Resumption::On) => Some(ResumptionText::On),
                (Some(_), Resumption::EarlyData) => Some(ResumptionText::EarlyData),
            },
        }
    }
}
