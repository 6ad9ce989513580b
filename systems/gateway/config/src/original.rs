//! The keys of Apollo Router's schema that have no code behind them here.
//!
//! A key of the original either works (the structs contain it), is accepted without effect, or is refused
//! because ignoring it would be wrong. [`UNSERVED`] is the only list of the keys that do not work. The check,
//! the JSON Schema, the log, `gateway check` and the table of `docs/gateway/apollo-router.md` use this list.

/// The treatment of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Accepted without effect. The text describes the gateway's behavior instead.
    Idle(&'static str),
    /// Refused if it is on. The text describes the problem and the action to take.
    Refused(On, &'static str),
}

/// The condition under which a key is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Always, with any value.
    Always,
    /// If its value is not null, `false` or empty.
    Filled,
    /// If its `enabled` is true. The default is false.
    Enabled,
}

/// A key without code behind it, with all keys below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unserved {
    /// Path of the key, separated by slashes. `*` matches any name.
    pub(crate) path: &'static str,
    pub(crate) fate: Fate,
}

const fn idle(path: &'static str, instead: &'static str) -> Unserved {
    let fate = Fate::Idle(instead);
    Unserved { path, fate }
}

const fn refused(path: &'static str, on: On, why: &'static str) -> Unserved {
    let fate = Fate::Refused(on, why);
    Unserved { path, fate }
}

const NO_GRAPHOS: &str = "nothing is sent to GraphOS";
const NO_CONNECTORS: &str = "a supergraph with connectors is refused";
const OWN_PLANNER: &str = "the planner is another one";
const OWN_LOG: &str = "the log is set by `--log`";
const OWN_ANSWERS: &str =
    "answers are in Redis where `response_cache.subgraph.all.redis` says so: move it there";
const ONE_CONNECTION: &str = "there is one connection to each Redis";
const NO_REDIS_TLS: &str = "Redis is not spoken to with TLS, and answers would travel in the clear: remove it, or name a tunnel on this machine in `urls`";
const NO_MAINTENANCE: &str = "nothing is searched for in Redis to be deleted";
const NO_LONGER: &str = "an answer is kept no longer for being asked for";
const OWN_METRICS: &str = "metrics are those of docs/gateway/telemetry.md";
const OTLP_ONLY: &str = "a collector that gets OTLP can pass it on";
const BARE_SPANS: &str = "spans have no events and no links";
const W3C_ONLY: &str = "traces go on by `traceparent` of the W3C";
const VERIFIED_NAME: &str = "the name in `endpoint` is the one that is verified";
const RESOLVER: &str = "the system's resolver decides";
const NO_PINGS: &str = "idle connections are not asked, and are closed after `pool_idle_timeout`";
const NO_HEADERS: &str =
    "the log has no headers; spans have the names of clients and `User-Agent` alone";
const FOR_SOCKETS: &str =
    "it is said for WebSockets: write it below `mode.passthrough.all`, or below a subgraph there";
const ONE_SAMPLER: &str = "`telemetry.exporters.tracing.common.sampler` decides for all";
const NO_LIBRARIES: &str = "libraries of clients are not counted";
const ALL_INDEXES: &str =
    "invalidations by subgraph and by type are always there, those by tag never";

/// The first matching entry counts.
pub(crate) const UNSERVED: &[Unserved] = &[
    // Access of clients, and credentials for services.
    refused(
        "authentication/subgraph",
        On::Filled,
        "requests to subgraphs would not be signed: let a coprocessor sign them, or a proxy beside the gateway",
    ),
    idle("authentication/connector", NO_CONNECTORS),
    refused(
        "authentication/router/jwt/sources",
        On::Filled,
        "tokens are taken from one header: set `header_name`, and remove `sources`",
    ),
    refused(
        "authentication/router/jwt/jwks/[]/allow_missing_exp",
        On::Filled,
        "whether tokens need `exp` is said once, not for each set of keys: remove it, or set `authentication.router.jwt.allow_tokens_without_expiry: true` for all",
    ),
    idle(
        "authentication/router/jwt/jwks/[]/retry",
        "keys are asked for again after `poll_interval`",
    ),
    refused(
        "plugins/experimental.restricted",
        On::Filled,
        "there are no native plugins: remove it",
    ),
    idle(
        "expose_query_plan",
        "answers show no plan; `--log debug` and coprocessors do",
    ),
    idle(
        "plugins/experimental.expose_query_plan",
        "answers show no plan; `--log debug` and coprocessors do",
    ),
    refused(
        "plugins/*",
        On::Always,
        "there are no native plugins, and what this one checks or changes would be missing: move it to a script (`rhai`) or to a coprocessor",
    ),
    idle("plugins", "there are no native plugins"),
    refused(
        "wasm",
        On::Filled,
        "there are no plugins in WebAssembly, and what they check or change would be missing: move them to a script (`rhai`) or to a coprocessor",
    ),
    // Contents of client requests.
    idle("subscription/max_reconnect_attempts", FOR_SOCKETS),
    idle("subscription/reconnect_delay", FOR_SOCKETS),
    refused(
        "events",
        On::Filled,
        "events of brokers are not read: remove it, and let a subgraph send them",
    ),
    refused(
        "preview_file_uploads",
        On::Enabled,
        "files are not passed on, and every upload would fail: set `preview_file_uploads.enabled: false`",
    ),
    refused(
        "experimental_mock_subgraphs",
        On::Filled,
        "the answers of subgraphs cannot be made up here: remove it, or start a service that gives them",
    ),
    refused(
        "experimental_chaos/force_reload",
        On::Filled,
        "the gateway does not fail on purpose: remove it",
    ),
    idle("experimental_chaos", "the gateway does not fail on purpose"),
    idle("connectors", NO_CONNECTORS),
    idle(
        "apq/router/cache/redis",
        "each process remembers the texts that it got, and asks clients for others",
    ),
    idle("apq/subgraph", "subgraphs get the text of each operation"),
    idle("headers/connector", NO_CONNECTORS),
    idle("headers/header_masking", NO_HEADERS),
    idle("headers/all/request/masking", NO_HEADERS),
    idle("headers/all/response/masking", NO_HEADERS),
    idle("headers/subgraphs/*/request/masking", NO_HEADERS),
    idle("headers/subgraphs/*/response/masking", NO_HEADERS),
    // Planning of operations.
    idle(
        "supergraph/generate_query_fragments",
        "the planner decides about fragments",
    ),
    idle(
        "supergraph/enable_result_coercion_errors",
        "values of a wrong type become null without an error",
    ),
    idle(
        "supergraph/strict_variable_validation",
        "variables that the schema does not allow always refuse the request",
    ),
    idle(
        "supergraph/query_planning/cache/redis",
        "each process plans for itself",
    ),
    idle(
        "supergraph/query_planning/warmed_up_queries",
        "operations are planned when they are asked for",
    ),
    idle(
        "supergraph/query_planning/experimental_plans_limit",
        OWN_PLANNER,
    ),
    idle(
        "supergraph/query_planning/experimental_paths_limit",
        OWN_PLANNER,
    ),
    idle(
        "supergraph/query_planning/experimental_reuse_query_plans",
        OWN_PLANNER,
    ),
    idle(
        "supergraph/query_planning/experimental_parallelism",
        OWN_PLANNER,
    ),
    idle(
        "supergraph/query_planning/experimental_cooperative_cancellation",
        "`supergraph.query_planning.timeout` ends what takes too long",
    ),
    idle("supergraph/query_planning/incremental_planner", OWN_PLANNER),
    refused(
        "preview_graphql_federation",
        On::Enabled,
        "schemas with `@lookup` are not planned: set `preview_graphql_federation.enabled: false`",
    ),
    idle(
        "supergraph/validate_default_values",
        "the supergraph is taken as it was composed",
    ),
    idle("supergraph/reuse_query_fragments", OWN_PLANNER),
    idle("supergraph/experimental_reuse_query_fragments", OWN_PLANNER),
    idle("experimental_type_conditioned_fetching", OWN_PLANNER),
    idle("experimental_query_planner_mode", OWN_PLANNER),
    idle("experimental_query_planner_parallelism", OWN_PLANNER),
    idle("experimental_parallelism", OWN_PLANNER),
    idle("experimental_introspection_mode", OWN_PLANNER),
    idle("experimental_graphql_validation_mode", OWN_PLANNER),
    idle("experimental_api_schema_generation_mode", OWN_PLANNER),
    idle(
        "progressive_override",
        "labels are always told to stages, see docs/gateway/apollo-router.md",
    ),
    // Connections to subgraphs.
    idle("traffic_shaping/all/dns_resolution_strategy", RESOLVER),
    idle(
        "traffic_shaping/subgraphs/*/dns_resolution_strategy",
        RESOLVER,
    ),
    idle(
        "traffic_shaping/all/experimental_enable_http2",
        "its name is `experimental_http2` since 1.33",
    ),
    idle(
        "traffic_shaping/subgraphs/*/experimental_enable_http2",
        "its name is `experimental_http2` since 1.33",
    ),
    idle(
        "traffic_shaping/all/experimental_http2_keep_alive_interval",
        NO_PINGS,
    ),
    idle(
        "traffic_shaping/all/experimental_http2_keep_alive_timeout",
        NO_PINGS,
    ),
    idle(
        "traffic_shaping/subgraphs/*/experimental_http2_keep_alive_interval",
        NO_PINGS,
    ),
    idle(
        "traffic_shaping/subgraphs/*/experimental_http2_keep_alive_timeout",
        NO_PINGS,
    ),
    idle("circuit_breaker/connector", NO_CONNECTORS),
    refused(
        "circuit_breaker",
        On::Filled,
        "a subgraph that fails is asked again by each request: remove it; `traffic_shaping` and `limits` bound how much waits for it",
    ),
    idle("traffic_shaping/connector", NO_CONNECTORS),
    idle(
        "traffic_shaping/deduplicate_variables",
        "each entity is asked for once in any case",
    ),
    idle("coprocessor/client/dns_resolution_strategy", RESOLVER),
    refused(
        "coprocessor/connector",
        On::Filled,
        "there are no connectors whose requests the coprocessor could see: remove it",
    ),
    idle("limits/connector", NO_CONNECTORS),
    idle(
        "limits/max_recursive_selections",
        "`limits.max_selections` bounds the same",
    ),
    idle(
        "experimental_hoist_orphan_errors",
        "an error of a list stays at each of its entities",
    ),
    // Logs, traces and metrics of requests.
    idle("telemetry/apollo/batch_processor", NO_GRAPHOS),
    idle("telemetry/apollo/buffer_size", NO_GRAPHOS),
    idle("telemetry/apollo/endpoint", NO_GRAPHOS),
    idle("telemetry/apollo/errors", NO_GRAPHOS),
    idle(
        "telemetry/apollo/experimental_local_field_metrics",
        NO_GRAPHOS,
    ),
    idle("telemetry/apollo/experimental_otlp_endpoint", NO_GRAPHOS),
    idle(
        "telemetry/apollo/experimental_otlp_tracing_protocol",
        NO_GRAPHOS,
    ),
    idle(
        "telemetry/apollo/experimental_otlp_tracing_sampler",
        NO_GRAPHOS,
    ),
    idle(
        "telemetry/apollo/experimental_otlp_metrics_protocol",
        NO_GRAPHOS,
    ),
    idle("telemetry/apollo/otlp_metrics_protocol", NO_GRAPHOS),
    idle("telemetry/apollo/library_name_header", NO_LIBRARIES),
    idle("telemetry/apollo/library_version_header", NO_LIBRARIES),
    idle("telemetry/apollo/sampler", NO_GRAPHOS),
    idle(
        "telemetry/apollo/field_level_instrumentation_sampler",
        NO_GRAPHOS,
    ),
    idle("telemetry/apollo/metrics", NO_GRAPHOS),
    idle("telemetry/apollo/metrics_reference_mode", NO_GRAPHOS),
    idle("telemetry/apollo/otlp_endpoint", NO_GRAPHOS),
    idle("telemetry/apollo/otlp_tracing_protocol", NO_GRAPHOS),
    idle("telemetry/apollo/otlp_tracing_sampler", NO_GRAPHOS),
    idle("telemetry/apollo/send_headers", NO_GRAPHOS),
    idle("telemetry/apollo/send_variable_values", NO_GRAPHOS),
    idle(
        "telemetry/apollo/signature_normalization_algorithm",
        NO_GRAPHOS,
    ),
    idle("telemetry/apollo/preview_subgraph_metrics", NO_GRAPHOS),
    idle("telemetry/apollo/subgraph_metrics", NO_GRAPHOS),
    idle("telemetry/apollo/tracing", NO_GRAPHOS),
    idle("telemetry/exporters/logging", OWN_LOG),
    idle("telemetry/exporters/tracing/otlp/sampler", ONE_SAMPLER),
    idle("telemetry/exporters/metrics/otlp/sampler", ONE_SAMPLER),
    idle("telemetry/exporters/tracing/zipkin", OTLP_ONLY),
    idle("telemetry/exporters/tracing/datadog", OTLP_ONLY),
    idle("telemetry/exporters/tracing/jaeger", OTLP_ONLY),
    idle(
        "telemetry/exporters/tracing/common/preview_datadog_agent_sampling",
        OTLP_ONLY,
    ),
    idle(
        "telemetry/exporters/tracing/common/max_events_per_span",
        BARE_SPANS,
    ),
    idle(
        "telemetry/exporters/tracing/common/max_links_per_span",
        BARE_SPANS,
    ),
    idle(
        "telemetry/exporters/tracing/common/max_attributes_per_event",
        BARE_SPANS,
    ),
    idle(
        "telemetry/exporters/tracing/common/max_attributes_per_link",
        BARE_SPANS,
    ),
    idle(
        "telemetry/exporters/tracing/propagation/baggage",
        "a rule for headers can pass `baggage` on",
    ),
    idle("telemetry/exporters/tracing/propagation/datadog", W3C_ONLY),
    idle("telemetry/exporters/tracing/propagation/jaeger", W3C_ONLY),
    idle("telemetry/exporters/tracing/propagation/zipkin", W3C_ONLY),
    idle("telemetry/exporters/tracing/propagation/aws_xray", W3C_ONLY),
    idle("telemetry/exporters/tracing/propagation/request", W3C_ONLY),
    idle(
        "telemetry/exporters/tracing/otlp/grpc/domain_name",
        VERIFIED_NAME,
    ),
    idle(
        "telemetry/exporters/metrics/otlp/grpc/domain_name",
        VERIFIED_NAME,
    ),
    idle(
        "telemetry/exporters/metrics/common/buckets",
        "histograms have the buckets of `/metrics`",
    ),
    idle("telemetry/exporters/metrics/common/views", OWN_METRICS),
    idle(
        "telemetry/exporters/metrics/common/cardinality_limit",
        OWN_METRICS,
    ),
    idle(
        "telemetry/exporters/metrics/prometheus/resource_selector",
        "series of `/metrics` have no labels of the resource",
    ),
    idle("telemetry/exporters/metrics/datadog", OTLP_ONLY),
    idle(
        "telemetry/instrumentation",
        "metrics, and the log of requests, have the names of docs/gateway/telemetry.md",
    ),
    idle("telemetry/experimental_logging", OWN_LOG),
    idle(
        "telemetry/tracing",
        "its place is `telemetry.exporters.tracing` now, where `otlp` works",
    ),
    idle(
        "telemetry/metrics/*",
        "its place is `telemetry.exporters.metrics` now, where `otlp` works",
    ),
    idle("homepage/graph_ref", "the homepage links nowhere"),
    idle("fleet_detector", NO_GRAPHOS),
    idle("license_enforcement", "there is no licence"),
    idle("enhanced_client_awareness", NO_LIBRARIES),
    idle(
        "experimental_continuous_profiling",
        "the process is not profiled; `/metrics` has its memory and processor time",
    ),
    idle(
        "rhai/intern_strings",
        "only the speed of scripts depends on it",
    ),
    idle(
        "experimental_diagnostics",
        "`/metrics` has the memory and processor time of the process",
    ),
    idle("experimental_apollo_metrics_generation_mode", NO_GRAPHOS),
    idle(
        "experimental_apollo_signature_normalization_algorithm",
        NO_GRAPHOS,
    ),
    idle(
        "reload",
        "a reload that fails is tried again when a file changes",
    ),
    idle("tls/connector", NO_CONNECTORS),
    idle("batching/subgraph", "subgraphs get one operation a request"),
    idle(
        "persisted_queries/experimental_prewarm_query_plan_cache",
        "operations are planned when they are asked for",
    ),
    idle(
        "demand_control/strategy/static_estimated/actual_cost_mode",
        "the actual cost is that of the response",
    ),
    refused(
        "demand_control/strategy/static_estimated/subgraph",
        On::Filled,
        "costs are not bounded for each subgraph: remove it; `max` bounds the whole operation",
    ),
    refused(
        "demand_control/strategy/test",
        On::Always,
        "costs are not made up here: write `static_estimated`",
    ),
    idle("response_cache/debug", "answers do not tell what was kept"),
    idle(
        "response_cache/include_cache_control_header_on_router_response",
        "answers to clients have no `Cache-Control`",
    ),
    idle(
        "response_cache/private_queries_buffer_size",
        "private answers are searched for by the client's key and by the one for all",
    ),
    idle(
        "response_cache/expose_keys_in_context",
        "keys are not told to stages",
    ),
    idle("response_cache/metrics", OWN_METRICS),
    refused(
        "response_cache/cdn_invalidation",
        On::Enabled,
        "answers carry no tags, and nothing could be purged by them: set `response_cache.cdn_invalidation.enabled: false`",
    ),
    idle(
        "response_cache/subgraph/all/invalidation/indexes",
        ALL_INDEXES,
    ),
    idle(
        "response_cache/subgraph/subgraphs/*/invalidation/indexes",
        ALL_INDEXES,
    ),
    idle(
        "response_cache/invalidation/concurrent_requests",
        "an invalidation takes no time",
    ),
    idle(
        "response_cache/invalidation/scan_count",
        "an invalidation takes no time",
    ),
    refused(
        "response_cache/subgraph/all/redis/tls",
        On::Filled,
        NO_REDIS_TLS,
    ),
    idle(
        "response_cache/subgraph/all/redis/pool_size",
        ONE_CONNECTION,
    ),
    idle(
        "response_cache/subgraph/all/redis/metrics_interval",
        OWN_METRICS,
    ),
    idle(
        "response_cache/subgraph/all/redis/maintenance_timeout",
        NO_MAINTENANCE,
    ),
    idle("response_cache/subgraph/all/redis/reset_ttl", NO_LONGER),
    refused(
        "response_cache/subgraph/subgraphs/*/redis/tls",
        On::Filled,
        NO_REDIS_TLS,
    ),
    idle(
        "response_cache/subgraph/subgraphs/*/redis/pool_size",
        ONE_CONNECTION,
    ),
    idle(
        "response_cache/subgraph/subgraphs/*/redis/metrics_interval",
        OWN_METRICS,
    ),
    idle(
        "response_cache/subgraph/subgraphs/*/redis/maintenance_timeout",
        NO_MAINTENANCE,
    ),
    idle(
        "response_cache/subgraph/subgraphs/*/redis/reset_ttl",
        NO_LONGER,
    ),
    idle("response_cache/redis", OWN_ANSWERS),
    idle("response_cache/connector", NO_CONNECTORS),
    // Keys of version 0, which the original refuses, too.
    refused(
        "server/listen",
        On::Always,
        "this key is of version 0 of the original: move it to `supergraph.listen`",
    ),
    refused(
        "server/cors",
        On::Always,
        "this key is of version 0 of the original: move it to `cors`",
    ),
    refused(
        "server/introspection",
        On::Always,
        "this key is of version 0 of the original: move it to `supergraph.introspection`",
    ),
    refused(
        "server/endpoint",
        On::Always,
        "this key is of version 0 of the original: move it to `supergraph.path`",
    ),
];

/// Keys of the original that had another path in other versions. A key at the first path is read as if it
/// were at the second. A `*` matches any name, and both paths use the same name.
pub(crate) const MOVED: &[(&str, &str)] = &[
    ("limits/router", "limits"),
    (
        "telemetry/metrics/prometheus",
        "telemetry/exporters/metrics/prometheus",
    ),
    (
        "supergraph/preview_defer_support",
        "supergraph/defer_support",
    ),
    (
        "supergraph/experimental_defer_support",
        "supergraph/defer_support",
    ),
    ("preview_connectors", "connectors"),
    (
        "subscription/enable_deduplication",
        "subscription/deduplication/all/enabled",
    ),
    (
        "subscription/deduplication/enabled",
        "subscription/deduplication/all/enabled",
    ),
    (
        "subscription/deduplication/ignored_headers",
        "subscription/deduplication/all/ignored_headers",
    ),
    (
        "limits/experimental_http_max_request_bytes",
        "limits/http_max_request_bytes",
    ),
    ("preview_directives", "authorization/directives"),
    (
        "authorization/preview_directives",
        "authorization/directives",
    ),
    ("authentication/jwt", "authentication/router/jwt"),
    ("preview_persisted_queries", "persisted_queries"),
    (
        "persisted_queries/experimental_local_manifests",
        "persisted_queries/local_manifests",
    ),
    ("experimental_batching", "batching"),
    ("preview_demand_control", "demand_control"),
    ("preview_response_cache", "response_cache"),
    ("preview_entity_cache", "response_cache"),
    (
        "supergraph/log_on_broken_pipe",
        "supergraph/experimental_log_on_broken_pipe",
    ),
    (
        "telemetry/exporters/tracing/response_trace_id",
        "telemetry/exporters/tracing/experimental_response_trace_id",
    ),
    (
        "coprocessor/client/http2",
        "coprocessor/client/experimental_http2",
    ),
    (
        "traffic_shaping/all/http2",
        "traffic_shaping/all/experimental_http2",
    ),
    (
        "traffic_shaping/subgraphs/*/http2",
        "traffic_shaping/subgraphs/*/experimental_http2",
    ),
    (
        "subscription/mode/preview_callback",
        "subscription/mode/callback",
    ),
];

/// Keys of coprocessor conditions that only the original supports.
pub(crate) const UNREAD: &[&str] = &[
    "active_subgraph_requests",
    "baggage",
    "cache",
    "context_id",
    "cost",
    "error",
    "is_deferred",
    "query",
    "query_variable",
    "redact",
    "request_duration",
    "response_body",
    "response_cache",
    "response_cache_control",
    "response_cache_status",
    "response_data",
    "response_errors",
    "response_errors_count",
    "response_errors_field",
    "response_size_hint",
    "router_overhead",
    "studio_operation_id",
    "subgraph_operation_kind",
    "subgraph_operation_name",
    "subgraph_query",
    "subgraph_query_variable",
    "subgraph_request_body_size",
    "subgraph_resend_count",
    "subgraph_response_body_size",
    "subgraph_response_data",
    "subgraph_response_errors",
    "supergraph_query",
    "supergraph_query_variable",
    "trace_id",
];

/// The entry for a key of [`UNREAD`], at any depth of a condition.
static UNREAD_SELECTOR: Unserved = refused(
    "coprocessor/…/condition",
    On::Always,
    "conditions do not have it, and the coprocessor would be called, or not, where it must not be: remove the condition, and let the coprocessor decide",
);

fn is_in_condition(path: &[String]) -> bool {
    path.first().is_some_and(|key| key == "coprocessor")
        && path.iter().any(|key| key == "condition")
}

/// The first entry that matches a path.
pub(crate) fn find(path: &[String]) -> Option<&'static Unserved> {
    let is_unread = path
        .last()
        .is_some_and(|key| UNREAD.contains(&key.as_str()));
    if is_unread && is_in_condition(path) {
        return Some(&UNREAD_SELECTOR);
    }
    UNSERVED.iter().find(|unserved| fits(unserved.path, path))
}

/// True if the list may contain keys below this path.
pub(crate) fn leads_on(path: &[String]) -> bool {
    is_in_condition(path)
        || UNSERVED.iter().any(|unserved| {
            let mut segments = unserved.path.split('/');
            path.iter()
                .all(|key| segments.next().is_some_and(|segment| is(segment, key)))
                && segments.next().is_some()
        })
}

fn fits(pattern: &str, path: &[String]) -> bool {
    let mut segments = pattern.split('/');
    path.iter()
        .all(|key| segments.next().is_some_and(|segment| is(segment, key)))
        && segments.next().is_none()
}

fn is(segment: &str, key: &str) -> bool {
    segment == key || (segment == "*" && key != "[]")
}
