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

/// The GraphQL endpoint for clients.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Supergraph {
    /// The listen address, such as `127.0.0.1:4000`, or the path of a Unix socket.
    pub listen: Written<Listen>,
    /// The path of the endpoint, such as `/`, `/graphql`, `/graphql/*` or `/:name/graphql`.
    pub path: Written<GraphqlPath>,
    /// True if clients may query the schema. `__typename` is always allowed.
    pub introspection: bool,
    /// Maximum time for requests in flight when the gateway stops.
    pub connection_shutdown_timeout: Written<Duration>,
    /// Time between a stop signal and the closing of the sockets. The gateway still serves requests, but the
    /// health check reports that it is not ready. Use more time than a load balancer needs to notice. Not
    /// in Apollo Router.
    pub drain_delay: Written<Duration>,
    /// True if clients that accept parts receive deferred fields in parts of their own. Otherwise the
    /// response is one piece.
    pub defer_support: bool,
    /// Accepted without effect. The gateway's own planner always minifies subgraph requests.
    pub generate_query_fragments: bool,
    /// True if the gateway stops the work for a request when its client disconnects.
    pub early_cancel: bool,
    /// True if clients do not receive the reason why a query is invalid.
    pub redact_query_validation_errors: bool,
    /// True if subgraph values that the schema does not allow are errors. Otherwise
    /// `extensions.valueCompletion` lists them. The value becomes null in both cases.
    pub enable_result_coercion_errors: bool,
    /// True if the log has a line for each client that disconnects before its response.
    pub experimental_log_on_broken_pipe: bool,
    /// Accepted without effect. The gateway always refuses variables that the schema does not allow.
    pub strict_variable_validation: VariableValidation,
    /// Maximum number of query plans in the cache. Not in Apollo Router under this name.
    pub plan_cache_size: std::num::NonZeroUsize,
    /// Maximum size of the cache of query plans. Not in Apollo Router.
    pub plan_cache_bytes: Written<ByteSize>,
    /// Limits for planning operations.
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

/// The treatment of variables that the schema does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VariableValidation {
    /// The gateway refuses the request.
    Enforce,
    /// The gateway refuses the request, too. Apollo Router counts it and accepts it.
    Measure,
}

/// Limits of requests, responses and connections.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub struct RequestLimits {
    /// Maximum body size of a request, in bytes. A larger request gets 413.
    pub http_max_request_bytes: usize,
    /// Maximum number of tokens of a query.
    pub parser_max_tokens: usize,
    /// Maximum nesting of a query's text.
    pub parser_max_recursion: usize,
    /// Maximum number of selections of an operation, after fragments are resolved. It limits the cost of
    /// planning. Each 64 bytes of a name count as one more selection. `warn_only` does not affect it. Not in
    /// Apollo Router.
    pub max_selections: u32,
    /// Maximum number of levels of fields, after fragments are resolved. `null` removes the limit.
    pub max_depth: Option<usize>,
    /// Maximum number of fields, after fragments are resolved. Each alias counts. Without this key, there is no
    /// limit.
    pub max_height: Option<usize>,
    /// Maximum number of root fields, after fragments are resolved. Each alias counts. `null` removes the limit.
    pub max_root_fields: Option<usize>,
    /// Maximum number of aliases, after fragments are resolved. `null` removes the limit.
    pub max_aliases: Option<usize>,
    /// True if an exceeded `max_*` limit only writes a line to the log.
    pub warn_only: bool,
    /// Maximum number of headers of an HTTP/1.1 request. A request with more gets 431.
    pub http1_max_request_headers: Option<usize>,
    /// Maximum size of the head of an HTTP/1.1 request. A larger request gets 431.
    pub http1_max_request_buf_size: Option<Written<ByteSize>>,
    /// Maximum size of the head of an HTTP/2 request. A larger request gets 431.
    pub http2_max_headers_list_bytes: Option<Written<ByteSize>>,
    /// True if the gateway limits nested lists in introspection.
    pub introspection_max_depth: bool,
    /// Maximum number of open connections of clients. The default is half of the process's file descriptors.
    /// Above the limit, the gateway closes idle connections first, and then new connections.
    pub max_connections: Option<NonZeroUsize>,
    /// Maximum number of open connections of one client address. The default is half of `max_connections`. An
    /// IPv6 network (a /64) is one address. Loopback addresses (127.0.0.1, ::1) and Unix sockets are not
    /// counted.
    pub max_connections_per_address: Option<NonZeroUsize>,
    /// Maximum number of open connections to subgraphs, coprocessors and all other services. The default is
    /// three eighths of the process's file descriptors. Each worker has an equal part. The gateway closes
    /// idle connections if it needs another, and WebSockets may use half of the connections. Not in Apollo
    /// Router.
    pub max_upstream_connections: Option<NonZeroUsize>,
    /// Maximum number of open connections to one address. By default an address may use as many as are left
    /// for other addresses. So one slow address gets half, and two get a third each. `traffic_shaping` has a
    /// key for each subgraph. Not in Apollo Router.
    pub max_upstream_connections_per_origin: Option<NonZeroUsize>,
    /// Maximum number of requests that wait for a connection to one address, or to any address. Further
    /// requests fail at once. Not in Apollo Router.
    pub max_upstream_waiting: NonZeroUsize,
    /// Maximum number of requests in flight on one HTTP/2 connection. With `early_cancel: false`, cancelled
    /// requests count, too. Further requests then get 503.
    pub http2_max_concurrent_streams: NonZeroU32,
    /// Maximum size of responses that wait for slow clients. Above it, the gateway closes the connections
    /// with the largest part.
    pub max_unsent_response_bytes: Written<ByteSize>,
    /// Maximum size of three texts. These are the `data` of a supergraph response, a response to
    /// introspection, and a list of entities in one subgraph request. Above it, the response is an error. The
    /// default is the largest response that a subgraph may send, 64 MiB. Not in Apollo Router.
    pub response_max_bytes: Written<ByteSize>,
    /// Maximum memory for all subgraph responses to one request. It counts their text and 40 bytes for each
    /// value. Above it, the response is an error. The default is 256 MiB. Not in Apollo Router.
    pub subgraph_answers_max_bytes: Written<ByteSize>,
    /// Maximum number of different entities in one request to a subgraph. Above it, the gateway does not send
    /// the request, and its fields are an error. Not in Apollo Router.
    pub entities_max_per_request: NonZeroUsize,
    /// Maximum size of a remote schema's response to the introspection query. The gateway does not read a
    /// larger response, and its fields are missing. The default is 32 MiB, and 64 MiB is the largest value.
    pub remote_schema_max_bytes: Written<ByteSize>,
    /// Maximum size of the payloads for all action handlers of one operation together. Each handler receives
    /// the whole query. The gateway refuses larger operations with several actions. It always accepts
    /// operations with one action. The default is 16 MiB. Not in Apollo Router.
    pub action_payloads_max_bytes: Written<ByteSize>,
    /// Limits of subgraph responses.
    pub subgraph: SubgraphSizes,
    /// Maximum number of types of one remote schema. The fields of a larger schema are missing.
    pub remote_schema_max_types: NonZeroUsize,
}

impl Default for RequestLimits {
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

/// Limits of subgraph responses.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubgraphSizes {
    /// Limits for all subgraphs.
    pub all: ResponseSize,
    /// Limits for one subgraph, by its name. Missing keys have the values of `all`.
    pub subgraphs: BTreeMap<String, ResponseSize>,
}

/// Limits of one response.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseSize {
    /// Maximum size of a response body, both compressed and decompressed. The gateway stops reading a larger
    /// body, and the request fails. The default is 64 MiB, which is also the largest value.
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

/// Settings of the HTTP server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Timeouts of client connections.
    pub http: HttpServer,
}

/// Timeouts of the HTTP server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HttpServer {
    /// Maximum time until the head of a request arrives.
    pub header_read_timeout: Written<Duration>,
    /// Maximum time of a TLS handshake.
    pub tls_handshake_timeout: Written<Duration>,
    /// Maximum time of an open connection without a request.
    pub idle_timeout: Written<Duration>,
    /// Maximum time without progress while the gateway sends a response.
    pub write_timeout: Written<Duration>,
    /// Interval between pings to clients over HTTP/2. `0s` turns them off.
    pub http2_keep_alive_interval: Written<Duration>,
    /// Maximum time until the response to a ping arrives.
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
    /// True if the gateway serves the health check.
    pub enabled: bool,
    /// The listen address of the health check.
    pub listen: Written<Listen>,
    /// The path of the health check.
    pub path: Written<PlainPath>,
    /// The rule for an overloaded gateway.
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

/// The rule for an overloaded gateway. The health check then reports that it is not ready.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Readiness {
    /// Number of responses with 503 or 504 that is still allowed in one sampling interval.
    pub allowed: u64,
    /// The intervals of the check.
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
    /// The sampling interval. The gateway counts the responses of one interval together.
    pub sampling: Written<Duration>,
    /// Duration of the unready state after too many such responses. The default is twice
    /// `sampling`.
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

/// The page for browsers that open the endpoint.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Homepage {
    /// True if the gateway serves the page.
    pub enabled: bool,
    /// Accepted without effect. The page has no links.
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
    /// True if the gateway serves the page.
    pub enabled: bool,
}

/// Protection against requests that a foreign page makes a browser send.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Csrf {
    /// True if the protection is off.
    pub unsafe_disabled: bool,
    /// Headers that a foreign page can send only after a preflight. A request with one of them, not empty, is
    /// accepted.
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
    /// The folder of the scripts and of their modules.
    pub scripts: PathBuf,
    /// The script that the gateway runs, relative to the folder.
    pub main: PathBuf,
    /// Limits of a callback. The gateway stops a callback above them, and its request gets 500.
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
