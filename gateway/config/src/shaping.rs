//! `traffic_shaping`: timeouts and limits, for clients and for subgraphs.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::coprocessor::{DnsStrategy, HttpVersions};
use crate::written::Written;

/// Timeouts, rate limits, compression and retries.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficShaping {
    /// Settings for requests from clients.
    pub router: RouterShaping,
    /// Settings for requests to all subgraphs.
    pub all: Option<SubgraphShaping>,
    /// Settings for requests to one subgraph, by its name. Missing keys have the values of `all`.
    pub subgraphs: BTreeMap<String, SubgraphShaping>,
}

/// Timeout and limits of requests from clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouterShaping {
    /// Maximum time of a request. After it, the client gets 504.
    pub timeout: Written<Duration>,
    /// Maximum number of requests in flight. Further requests get 503.
    pub concurrency_limit: Option<NonZeroUsize>,
    /// Maximum number of requests per interval. Further requests get 503.
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

/// A number of requests per interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Maximum number of requests in the interval.
    pub capacity: NonZeroU64,
    /// The length of the interval.
    pub interval: Written<Duration>,
}

/// The compression of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The format gzip (RFC 1952).
    Gzip,
    /// The format zlib (RFC 1950).
    Deflate,
    /// The format Brotli (RFC 7932).
    Br,
}

/// The compression setting of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompressionAsked {
    /// The format gzip (RFC 1952).
    Gzip,
    /// The format zlib (RFC 1950).
    Deflate,
    /// The format Brotli (RFC 7932).
    Br,
    /// No compression. It turns off the setting of `all` for one subgraph.
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
    /// Maximum time of a request. The default is 30s.
    pub timeout: Option<Written<Duration>>,
    /// True if the gateway sends identical queries in flight only once.
    pub deduplicate_query: Option<bool>,
    /// The compression of request bodies.
    pub compression: Option<CompressionAsked>,
    /// Maximum number of requests per interval.
    pub global_rate_limit: Option<RateLimit>,
    /// The HTTP versions of the connections.
    pub experimental_http2: Option<HttpVersions>,
    /// Accepted without effect. The operating system's resolver decides.
    pub dns_resolution_strategy: Option<DnsStrategy>,
    /// Maximum idle time before the gateway closes a connection. The default is 15s.
    pub pool_idle_timeout: Option<Written<Duration>>,
    /// Maximum number of connections to the subgraph's address, over all workers. The default is
    /// `limits.max_upstream_connections_per_origin`. Subgraphs at one address with equal numbers share the
    /// limit. Not in Apollo Router.
    pub max_connections: Option<NonZeroUsize>,
    /// Retries of failed requests, within a budget. Without this key, there are no retries.
    pub experimental_retry: Option<Retry>,
}

/// Retries of requests without a response or with a status of 5xx. The gateway sends a request again while
/// the budget allows it, at most three times. The budget gains `min_per_sec` each second and `retry_percent`
/// with each response. Gains expire after `ttl`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Retries per second that are always allowed.
    pub min_per_sec: u32,
    /// Lifetime of a gain, 1s to 60s.
    pub ttl: Written<Duration>,
    /// Retries per successful request. 0.2 allows one retry for five requests.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub retry_percent: f64,
    /// True if the gateway also sends mutations again. Their changes may then happen twice.
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
