//! `traffic_shaping`: timeouts and limits, for clients and for subgraphs.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::coprocessor::{DnsStrategy, HttpVersions};
use crate::written::Written;

/// Timeouts and limits.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficShaping {
    /// For requests of clients.
    pub router: RouterShaping,
    /// For requests to all subgraphs.
    pub all: Option<SubgraphShaping>,
    /// For requests to one subgraph, by its name; what it leaves out is taken from `all`.
    pub subgraphs: BTreeMap<String, SubgraphShaping>,
}

/// Timeout and limits of requests of clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouterShaping {
    /// The longest time of a request; beyond it the answer is 504.
    pub timeout: Written<Duration>,
    /// Most requests at a time; more are answered with 503.
    pub concurrency_limit: Option<NonZeroUsize>,
    /// Most requests in a time; more are answered with 503.
    pub global_rate_limit: Option<RateLimit>,
}

impl Default for RouterShaping {
    fn default() -> Self {
        Self {
            timeout: Written(Duration::from_secs(30)),
            concurrency_limit: None,
            global_rate_limit: None,
        }
    }
}

/// So many in such a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many.
    pub capacity: NonZeroU64,
    /// In which time.
    pub interval: Written<Duration>,
}

/// The compression of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952).
    Gzip,
    /// zlib (RFC 1950).
    Deflate,
    /// Brotli (RFC 7932).
    Br,
}

/// What the configuration says of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompressionAsked {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Deflate,
    /// RFC 7932.
    Br,
    /// None: a subgraph that does not get what `all` asks for.
    Identity,
}

impl CompressionAsked {
    fn compression(self) -> Option<Compression> {
        match self {
            Self::Gzip => Some(Compression::Gzip),
            Self::Deflate => Some(Compression::Deflate),
            Self::Br => Some(Compression::Br),
            Self::Identity => None,
        }
    }
}

/// Timeout and limits of requests to subgraphs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphShaping {
    /// The longest time of a request, 30s when left out.
    pub timeout: Option<Written<Duration>>,
    /// Whether equal queries that are under way at the same time are sent once.
    pub deduplicate_query: Option<bool>,
    /// How request bodies are compressed.
    pub compression: Option<CompressionAsked>,
    /// Most requests in a time.
    pub global_rate_limit: Option<RateLimit>,
    /// Which HTTP is spoken.
    pub experimental_http2: Option<HttpVersions>,
    /// Accepted; the system's resolver decides.
    pub dns_resolution_strategy: Option<DnsStrategy>,
    /// How long a connection may be idle before it is closed, 15s when left out.
    pub pool_idle_timeout: Option<Written<Duration>>,
    /// Most connections to its address at a time, those of all workers;
    /// `limits.max_upstream_connections_per_origin` when left out. Subgraphs at one address that say
    /// the same number share it. Not known to the original.
    pub max_connections: Option<NonZeroUsize>,
    /// Whether a failed request is sent again, within a budget.
    pub experimental_retry: Option<Retry>,
}

/// When a request is sent again because nothing came back, or an answer with a status of 5xx: as long
/// as the budget allows it, and three times at most. The budget gains `min_per_sec` each second and
/// `retry_percent` with each answer, and what it gained is forgotten after `ttl`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Retries each second that are allowed whatever the load.
    pub min_per_sec: u32,
    /// How long what was gained can be spent, 1s to 60s.
    pub ttl: Written<Duration>,
    /// Retries for each request that succeeded: 0.2 is one for five.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub retry_percent: f64,
    /// Whether mutations are sent again, too: what they do may then be done twice.
    pub retry_mutations: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            min_per_sec: 10,
            ttl: Written(Duration::from_secs(10)),
            retry_percent: 0.2,
            retry_mutations: false,
        }
    }
}

/// The settings of one subgraph after merging all sections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectiveShaping {
    /// Time limit of a request. `None` if no section sets it.
    pub timeout: Option<Duration>,
    /// True if identical queries in flight are sent once.
    pub deduplicate_query: bool,
    /// Compression of request bodies. `None` sends them plain.
    pub compression: Option<Compression>,
    /// Maximum number of requests per interval.
    pub global_rate_limit: Option<RateLimit>,
    /// The HTTP versions for this subgraph.
    pub http_versions: HttpVersions,
    /// Maximum idle time of a connection.
    pub pool_idle_timeout: Duration,
    /// Maximum number of connections to its address. `None` means the limit for any address.
    pub max_connections: Option<NonZeroUsize>,
    /// Retries of failed requests. `None` if they are off.
    pub retry: Option<Retry>,
}

impl TrafficShaping {
    /// The settings of a subgraph: its own keys, otherwise the keys of `all`, otherwise the defaults.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> EffectiveShaping {
        let own = self.subgraphs.get(name);
        let sections = || own.into_iter().chain(self.all.as_ref());
        fn first<'a, T>(
            sections: impl Iterator<Item = &'a SubgraphShaping>,
            pick: impl Fn(&'a SubgraphShaping) -> Option<T>,
        ) -> Option<T> {
            sections.into_iter().find_map(pick)
        }
        let has_section = sections().next().is_some();
        EffectiveShaping {
            timeout: has_section.then(|| {
                first(sections(), |section| section.timeout)
                    .map_or(Duration::from_secs(30), |timeout| timeout.0)
            }),
            deduplicate_query: first(sections(), |section| section.deduplicate_query)
                .unwrap_or(false),
            compression: first(sections(), |section| section.compression)
                .and_then(CompressionAsked::compression),
            global_rate_limit: first(sections(), |section| section.global_rate_limit),
            http_versions: first(sections(), |section| section.experimental_http2)
                .unwrap_or_default(),
            pool_idle_timeout: first(sections(), |section| section.pool_idle_timeout)
                .map_or(Duration::from_secs(15), |timeout| timeout.0),
            max_connections: first(sections(), |section| section.max_connections),
            retry: first(sections(), |section| section.experimental_retry),
        }
    }
}
