//! The settings of the client side: `supergraph`, `limits`, `server`, `health_check`, `homepage`, `sandbox`,
//! `csrf`, and `rhai`.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::query_planning::QueryPlanning;
use crate::rhai_limits::RhaiLimits;
use crate::written::{ByteSize, GraphqlPath, Listen, PlainPath, Written};

/// The GraphQL endpoint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Supergraph {
    /// Where to listen: `127.0.0.1:4000`, or the path of a Unix socket.
    pub listen: Written<Listen>,
    /// The path of the endpoint: `/`, `/graphql`, `/graphql/*`, `/:name/graphql`.
    pub path: Written<GraphqlPath>,
    /// Whether the schema can be asked for. `__typename` always can.
    pub introspection: bool,
    /// How long requests in flight may take when stopping.
    pub connection_shutdown_timeout: Written<Duration>,
    /// How long the gateway goes on serving, while the health check says that it is not ready, before
    /// it closes its sockets to stop: longer than a load balancer takes to notice. Not known to the
    /// original.
    pub drain_delay: Written<Duration>,
    /// Whether what a query defers comes in parts of its own, for clients that accept parts; otherwise
    /// all of it comes in one piece.
    pub defer_support: bool,
    /// Accepted; subgraph requests are always minified by this gateway's own planner.
    pub generate_query_fragments: bool,
    /// Whether work for a request ends when its client disconnects.
    pub early_cancel: bool,
    /// Whether the reason why a query is invalid is hidden from the client.
    pub redact_query_validation_errors: bool,
    /// Accepted; values of a wrong type from subgraphs become null without an error.
    pub enable_result_coercion_errors: bool,
    /// Whether a client that disconnects before its answer is logged.
    pub experimental_log_on_broken_pipe: bool,
    /// Accepted; variables that the schema does not allow always refuse the request.
    pub strict_variable_validation: VariableValidation,
    /// The cache of query plans. Not known to the original under this name.
    pub plan_cache_size: std::num::NonZeroUsize,
    /// How many bytes the cache of query plans may take. Not known to the original.
    pub plan_cache_bytes: Written<ByteSize>,
    /// What planning may cost.
    pub query_planning: QueryPlanning,
}

impl Supergraph {
    /// Maximum number of query plans in the cache.
    #[must_use]
    pub fn plans(&self) -> NonZeroUsize {
        let named = self.query_planning.cache.in_memory.limit;
        named.unwrap_or(self.plan_cache_size)
    }
}

impl Default for Supergraph {
    fn default() -> Self {
        Self {
            listen: Written(Listen::Tcp("127.0.0.1:4000".to_owned())),
            path: Written(GraphqlPath("/".to_owned())),
            introspection: false,
            connection_shutdown_timeout: Written(Duration::from_secs(60)),
            drain_delay: Written(Duration::ZERO),
            defer_support: true,
            generate_query_fragments: true,
            early_cancel: false,
            redact_query_validation_errors: false,
            enable_result_coercion_errors: false,
            experimental_log_on_broken_pipe: false,
            strict_variable_validation: VariableValidation::Enforce,
            plan_cache_size: std::num::NonZeroUsize::new(512).expect("512 is not zero"),
            plan_cache_bytes: Written(ByteSize(64 << 20)),
            query_planning: QueryPlanning::default(),
        }
    }
}

/// What happens to variables that the schema does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VariableValidation {
    /// The request is refused.
    Enforce,
    /// The original lets the request pass and counts it; here it is refused as well.
    Measure,
}

/// Sizes beyond which requests are refused.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest body of a request, in bytes; more is answered with 413.
    pub http_max_request_bytes: usize,
    /// Most tokens of a query.
    pub parser_max_tokens: usize,
    /// Deepest nesting of a query's text.
    pub parser_max_recursion: usize,
    /// Most selections of an operation, fragments resolved; bounds what planning costs. Not known to
    /// the original, and `warn_only` does not lift it.
    /// Each 64 bytes of a name count as one more.
    pub max_selections: u32,
    /// Most levels of fields, fragments resolved; `null` for any.
    pub max_depth: Option<usize>,
    /// Most fields in all, fragments resolved; any when left out.
    pub max_height: Option<usize>,
    /// Most fields of the operation itself, fragments resolved; `null` for any.
    pub max_root_fields: Option<usize>,
    /// Most aliases, fragments resolved; `null` for any.
    pub max_aliases: Option<usize>,
    /// Whether `max_*` only writes a line to the log.
    pub warn_only: bool,
    /// Most headers of an HTTP/1.1 request; more are answered with 431.
    pub http1_max_request_headers: Option<usize>,
    /// Largest head of an HTTP/1.1 request; more is answered with 431.
    pub http1_max_request_buf_size: Option<Written<ByteSize>>,
    /// Largest head of an HTTP/2 request; more is answered with 431.
    pub http2_max_headers_list_bytes: Option<Written<ByteSize>>,
    /// Whether nested lists of introspection are bounded.
    pub introspection_max_depth: bool,
    /// Connections that clients may have open at a time, half of the process's file descriptors
    /// when left out. Beyond it idle ones are closed, then new ones.
    pub max_connections: Option<NonZeroUsize>,
    /// Connections that one address may have open, half of `max_connections` when left out. A
    /// network of IPv6 (a /64) is one address; this machine's own (127.0.0.1, ::1) and Unix
    /// sockets are not counted.
    pub max_connections_per_address: Option<NonZeroUsize>,
    /// Connections that the gateway may have open at a time, to subgraphs, coprocessors and all other
    /// services: three eighths of the process's file descriptors when left out. Each worker has an
    /// equal part; idle ones make room for those that are needed, and WebSockets have half of them at
    /// most. Not known to the original.
    pub max_upstream_connections: Option<NonZeroUsize>,
    /// The same to one address; as many as are left for others when left out, so one slow address
    /// gets half, and two get a third each. `traffic_shaping` says it for a subgraph. Not known to the
    /// original.
    pub max_upstream_connections_per_origin: Option<NonZeroUsize>,
    /// Requests that wait for a connection to one address, or to any; more fail at once. Not known to
    /// the original.
    pub max_upstream_waiting: NonZeroUsize,
    /// Requests that one HTTP/2 connection may have under way; with `early_cancel: false` this
    /// counts those that it cancelled, and more are answered with 503.
    pub http2_max_concurrent_streams: NonZeroU32,
    /// Bytes of answers that are kept for clients that do not take them. Beyond it the connections
    /// that hold most are closed.
    pub max_unsent_response_bytes: Written<ByteSize>,
    /// Largest `data` of a response over a supergraph, largest answer to introspection, and largest list
    /// of entities in one request to a subgraph; beyond it the response is an error. As much as one subgraph may answer when
    /// left out, 64 MiB. Not known to the original.
    pub response_max_bytes: Written<ByteSize>,
    /// Most memory for the answers of all subgraphs to one request: their text and 40 bytes for
    /// each value in it; what exceeds it is an error. 256 MiB when left out. Not known to the
    /// original.
    pub subgraph_answers_max_bytes: Written<ByteSize>,
    /// Most different entities that one request to a subgraph asks about; beyond it the request is
    /// not sent and its fields are an error. Not known to the original.
    pub entities_max_per_request: NonZeroUsize,
    /// Largest answer of a remote schema to the introspection query; a larger one is not read, and
    /// its fields are missing. At most 64 MiB, 32 MiB when left out.
    pub remote_schema_max_bytes: Written<ByteSize>,
    /// What the handlers of all actions of one operation may be sent together: each gets the whole
    /// query. An operation with several actions beyond it is refused, one with a single action never.
    /// 16 MiB when left out. Not known to the original.
    pub action_payloads_max_bytes: Written<ByteSize>,
    /// How much subgraphs may answer.
    pub subgraph: SubgraphSizes,
    /// Most types of one remote schema; the fields of one with more are missing.
    pub remote_schema_max_types: NonZeroUsize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            http_max_request_bytes: 2_000_000,
            parser_max_tokens: 15_000,
            parser_max_recursion: 500,
            max_selections: 4_000,
            max_depth: Some(50),
            max_height: None,
            max_root_fields: Some(200),
            max_aliases: Some(500),
            warn_only: false,
            http1_max_request_headers: None,
            http1_max_request_buf_size: None,
            http2_max_headers_list_bytes: None,
            introspection_max_depth: true,
            max_connections: None,
            max_connections_per_address: None,
            max_upstream_connections: None,
            max_upstream_connections_per_origin: None,
            max_upstream_waiting: NonZeroUsize::new(1_024).expect("1,024 is not zero"),
            http2_max_concurrent_streams: NonZeroU32::new(100).expect("100 is not zero"),
            max_unsent_response_bytes: Written(ByteSize(256 << 20)),
            response_max_bytes: Written(ByteSize(64 << 20)),
            subgraph_answers_max_bytes: Written(ByteSize(256 << 20)),
            entities_max_per_request: NonZeroUsize::new(10_000).expect("10,000 is not zero"),
            remote_schema_max_bytes: Written(ByteSize(32 << 20)),
            action_payloads_max_bytes: Written(ByteSize(16 << 20)),
            subgraph: SubgraphSizes::default(),
            remote_schema_max_types: NonZeroUsize::new(20_000).expect("20,000 is not zero"),
        }
    }
}

/// How much subgraphs may answer.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphSizes {
    /// All of them.
    pub all: ResponseSize,
    /// One subgraph, by its name; what it leaves out is taken from `all`.
    pub subgraphs: BTreeMap<String, ResponseSize>,
}

/// How much one answer may hold.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseSize {
    /// Largest body, as it is received and as what it is decompressed to. A larger one is not read
    /// or decompressed further and counts as failed. At most 64 MiB, which it is when left out.
    pub http_max_response_size: Option<Written<ByteSize>>,
}

impl SubgraphSizes {
    /// Maximum body size of this subgraph's responses.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> Option<usize> {
        let own = self.subgraphs.get(name);
        let own = own.and_then(|it| it.http_max_response_size);
        own.or(self.all.http_max_response_size).map(|it| it.0.0)
    }
}

/// How HTTP is served.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Timeouts.
    pub http: HttpServer,
}

/// Timeouts of the HTTP server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpServer {
    /// How long a client may take to send the head of a request.
    pub header_read_timeout: Written<Duration>,
    /// How long a client may take to set up TLS.
    pub tls_handshake_timeout: Written<Duration>,
    /// How long a connection may be open without a request.
    pub idle_timeout: Written<Duration>,
    /// How long a client may leave its answer untaken.
    pub write_timeout: Written<Duration>,
    /// How often a client of HTTP/2 is asked whether it is still there; `0s` for never.
    pub http2_keep_alive_interval: Written<Duration>,
    /// How long its answer may take.
    pub http2_keep_alive_timeout: Written<Duration>,
}

impl Default for HttpServer {
    fn default() -> Self {
        let ten = Written(Duration::from_secs(10));
        Self {
            header_read_timeout: ten,
            tls_handshake_timeout: ten,
            idle_timeout: Written(Duration::from_secs(60)),
            write_timeout: Written(Duration::from_secs(30)),
            http2_keep_alive_interval: Written(Duration::from_secs(30)),
            http2_keep_alive_timeout: ten,
        }
    }
}

/// The health check for load balancers and operators.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HealthCheck {
    /// Whether there is one.
    pub enabled: bool,
    /// Where.
    pub listen: Written<Listen>,
    /// On which path.
    pub path: Written<PlainPath>,
    /// When the gateway counts as overloaded.
    pub readiness: Readiness,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Written(Listen::Tcp("127.0.0.1:8088".to_owned())),
            path: Written(PlainPath("/health".to_owned())),
            readiness: Readiness::default(),
        }
    }
}

/// When the gateway counts as overloaded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Readiness {
    /// How many answers of 503 and 504 in a sampling interval are fine.
    pub allowed: u64,
    /// The intervals.
    pub interval: ReadinessInterval,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            allowed: 100,
            interval: ReadinessInterval::default(),
        }
    }
}

/// Intervals of the readiness check.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadinessInterval {
    /// How long answers are counted together.
    pub sampling: Written<Duration>,
    /// How long the gateway is not ready after too many; twice `sampling` when left out.
    pub unready: Option<Written<Duration>>,
}

impl Default for ReadinessInterval {
    fn default() -> Self {
        Self {
            sampling: Written(Duration::from_secs(5)),
            unready: None,
        }
    }
}

/// The page for browsers that ask the endpoint with GET.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Homepage {
    /// Whether there is one.
    pub enabled: bool,
    /// Accepted; the page links nowhere.
    pub graph_ref: Option<String>,
}

impl Default for Homepage {
    fn default() -> Self {
        Self {
            enabled: true,
            graph_ref: None,
        }
    }
}

/// The page on which a person can send queries.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Whether there is one.
    pub enabled: bool,
}

/// Protection against requests that a foreign page makes a browser send.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Csrf {
    /// Turns the protection off.
    pub unsafe_disabled: bool,
    /// Headers that a foreign page cannot send without a preflight: one of them that is not empty
    /// lets the request pass.
    pub required_headers: Vec<Written<HeaderName>>,
}

impl Default for Csrf {
    fn default() -> Self {
        let header = |name| Written(HeaderName::from_static(name));
        Self {
            unsafe_disabled: false,
            required_headers: vec![
                header("x-apollo-operation-name"),
                header("apollo-require-preflight"),
            ],
        }
    }
}

/// Scripts that run at stages of each request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rhai {
    /// The folder of the scripts and of the modules they import.
    pub scripts: PathBuf,
    /// The script that is run, relative to the folder.
    pub main: PathBuf,
    /// What a callback may take. One that takes more is ended, and its request gets 500.
    pub limits: RhaiLimits,
}

impl Default for Rhai {
    fn default() -> Self {
        Self {
            scripts: "rhai".into(),
            main: "main.rhai".into(),
            limits: RhaiLimits::default(),
        }
    }
}
