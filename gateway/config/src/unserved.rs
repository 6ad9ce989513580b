//! The keys of Apollo Router outside of `telemetry` that have no code behind them here.

use crate::fate::{On, Unserved, idle, idle_unless, refused};

pub(crate) const NO_GRAPHOS: &str = "the gateway sends no data to GraphOS";
const COMPOSITION: &str = "the file describes how to compose a supergraph: compose it, and give the result with --supergraph";
pub(crate) const NO_CONNECTORS: &str = "the gateway refuses a supergraph with connectors";
const OWN_PLANNER: &str = "the gateway has its own query planner";
const OWN_ANSWERS: &str =
    "Redis is configured in `response_cache.subgraph.all.redis`: move it there";
const ONE_CONNECTION: &str = "the gateway opens one connection to each Redis";
const NO_MAINTENANCE: &str = "no background task deletes entries from Redis";
const NO_LONGER: &str = "a request does not extend the lifetime of a cached response";
pub(crate) const OWN_METRICS: &str = "docs/gateway/telemetry.md lists the available metrics";
const RESOLVER: &str = "the operating system's resolver decides";
const NO_PINGS: &str =
    "the gateway sends no pings, and closes idle connections after `pool_idle_timeout`";
const FOR_SOCKETS: &str = "it applies to WebSockets only: move it to `subscription.mode.passthrough.all`, or to a subgraph there";
pub(crate) const NO_LIBRARIES: &str = "the gateway does not count client libraries";
const ALL_INDEXES: &str =
    "invalidation by subgraph and by type is always on, and invalidation by tag is not supported";

/// The keys outside of `telemetry`. The first matching entry counts.
pub(crate) const GENERAL: &[Unserved] = &[
    // Access of clients, and credentials for services.
    refused(
        "authentication/subgraph",
        On::Filled,
        "subgraph requests would not be signed: sign them in a coprocessor or in a proxy next to the gateway",
    ),
    idle("authentication/connector", NO_CONNECTORS),
    refused(
        "authentication/router/jwt/sources",
        On::Filled,
        "the gateway reads tokens from one header: set `header_name`, and remove `sources`",
    ),
    refused(
        "authentication/router/jwt/jwks/[]/allow_missing_exp",
        On::Filled,
        "one setting applies to all sets of keys: remove it, or set `authentication.router.jwt.allow_tokens_without_expiry: true`",
    ),
    idle(
        "authentication/router/jwt/jwks/[]/retry",
        "the gateway reads the keys again after `poll_interval`",
    ),
    refused(
        "plugins/experimental.restricted",
        On::Filled,
        "the gateway has no native plugins: remove it",
    ),
    idle(
        "expose_query_plan",
        "responses contain no query plan, but `--log debug` and coprocessors show it",
    ),
    idle(
        "plugins/experimental.expose_query_plan",
        "responses contain no query plan, but `--log debug` and coprocessors show it",
    ),
    refused(
        "plugins/*",
        On::Always,
        "the gateway has no native plugins, so the checks and changes of this plugin would be missing: move them to a script (`rhai`) or to a coprocessor",
    ),
    idle("plugins", "the gateway has no native plugins"),
    refused(
        "wasm",
        On::Filled,
        "the gateway has no WebAssembly plugins, so their checks and changes would be missing: move them to a script (`rhai`) or to a coprocessor",
    ),
    // Contents of client requests.
    idle("subscription/max_reconnect_attempts", FOR_SOCKETS),
    idle("subscription/reconnect_delay", FOR_SOCKETS),
    refused(
        "events",
        On::Filled,
        "the gateway does not read events from brokers: remove it, and send the events from a subgraph",
    ),
    refused("federation_version", On::Filled, COMPOSITION),
    refused("subgraphs", On::Filled, COMPOSITION),
    refused(
        "preview_file_uploads",
        On::Enabled,
        "the gateway does not forward files, so every upload would fail: set `preview_file_uploads.enabled: false`",
    ),
    refused(
        "experimental_mock_subgraphs",
        On::Filled,
        "the gateway has no mock subgraphs: remove it, or start a service with these responses",
    ),
    refused(
        "experimental_chaos/force_reload",
        On::Filled,
        "the gateway does not simulate failures: remove it",
    ),
    idle(
        "experimental_chaos",
        "the gateway does not simulate failures",
    ),
    idle("connectors", NO_CONNECTORS),
    idle(
        "apq/router/cache/redis",
        "each process caches its own texts, and requests missing texts from clients",
    ),
    idle(
        "apq/subgraph",
        "subgraphs receive the text of each operation",
    ),
    idle("headers/connector", NO_CONNECTORS),
    refused(
        "headers/header_masking",
        On::Filled,
        "its name is `masking`: move it to `headers.all.request` and to `headers.all.response`",
    ),
    // Planning of operations.
    idle(
        "supergraph/generate_query_fragments",
        "the query planner decides about fragments",
    ),
    idle_unless(
        "supergraph/strict_variable_validation",
        "enforce",
        "the gateway always refuses variables that the schema does not allow",
    ),
    idle(
        "supergraph/query_planning/cache/redis",
        "each process has its own cache of query plans",
    ),
    idle(
        "supergraph/query_planning/warmed_up_queries",
        "the gateway plans an operation at its first request",
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
        "`supergraph.query_planning.timeout` limits the planning time",
    ),
    idle("supergraph/query_planning/incremental_planner", OWN_PLANNER),
    refused(
        "preview_graphql_federation",
        On::Enabled,
        "the query planner does not support `@lookup`: set `preview_graphql_federation.enabled: false`",
    ),
    idle(
        "supergraph/validate_default_values",
        "the gateway uses the supergraph as it was composed",
    ),
    idle("supergraph/reuse_query_fragments", OWN_PLANNER),
    idle("supergraph/experimental_reuse_query_fragments", OWN_PLANNER),
    idle(
        "experimental_type_conditioned_fetching",
        "the gateway always requests fields of one name with different arguments by type",
    ),
    idle("experimental_query_planner_mode", OWN_PLANNER),
    idle("experimental_query_planner_parallelism", OWN_PLANNER),
    idle("experimental_parallelism", OWN_PLANNER),
    idle("experimental_introspection_mode", OWN_PLANNER),
    idle("experimental_graphql_validation_mode", OWN_PLANNER),
    idle("experimental_api_schema_generation_mode", OWN_PLANNER),
    idle(
        "progressive_override",
        "stages always receive the labels, see docs/gateway/apollo-router.md",
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
        "each request is sent even if the subgraph fails: remove it, and limit waiting requests with `traffic_shaping` and `limits`",
    ),
    idle("traffic_shaping/connector", NO_CONNECTORS),
    idle(
        "traffic_shaping/deduplicate_variables",
        "the gateway always requests each entity once",
    ),
    idle("coprocessor/client/dns_resolution_strategy", RESOLVER),
    refused(
        "coprocessor/connector",
        On::Filled,
        "the gateway has no connectors, so the coprocessor would receive no requests of connectors: remove it",
    ),
    idle("limits/connector", NO_CONNECTORS),
    idle(
        "limits/max_recursive_selections",
        "`limits.max_selections` limits selections",
    ),
    idle(
        "experimental_hoist_orphan_errors",
        "an error of a list is reported at each of its entities",
    ),
    idle("homepage/graph_ref", "the homepage has no links"),
    idle("fleet_detector", NO_GRAPHOS),
    idle("license_enforcement", "the gateway needs no licence"),
    idle("enhanced_client_awareness", NO_LIBRARIES),
    idle(
        "experimental_continuous_profiling",
        "the gateway has no profiler, but `/metrics` shows its memory and processor time",
    ),
    idle(
        "rhai/intern_strings",
        "it affects only the speed of scripts",
    ),
    idle(
        "experimental_diagnostics",
        "`/metrics` shows the memory and processor time of the process",
    ),
    idle("experimental_apollo_metrics_generation_mode", NO_GRAPHOS),
    idle(
        "experimental_apollo_signature_normalization_algorithm",
        NO_GRAPHOS,
    ),
    idle(
        "reload",
        "the gateway repeats a failed reload when a file changes",
    ),
    idle("tls/connector", NO_CONNECTORS),
    idle(
        "batching/subgraph",
        "each subgraph request contains one operation",
    ),
    idle(
        "persisted_queries/experimental_prewarm_query_plan_cache",
        "the gateway plans an operation at its first request",
    ),
    idle(
        "demand_control/strategy/static_estimated/actual_cost_mode",
        "the actual cost is always the cost of the response",
    ),
    refused(
        "demand_control/strategy/static_estimated/subgraph",
        On::Filled,
        "the gateway does not limit costs by subgraph: remove it, and limit the whole operation with `max`",
    ),
    refused(
        "demand_control/strategy/test",
        On::Always,
        "the gateway cannot use invented costs: write `static_estimated`",
    ),
    idle(
        "response_cache/debug",
        "responses contain no debug information about the cache",
    ),
    idle(
        "response_cache/include_cache_control_header_on_router_response",
        "responses to clients have no `Cache-Control`",
    ),
    idle(
        "response_cache/private_queries_buffer_size",
        "the gateway looks up private responses under the client's key and under the public key",
    ),
    idle(
        "response_cache/expose_keys_in_context",
        "stages do not receive cache keys",
    ),
    idle("response_cache/metrics", OWN_METRICS),
    refused(
        "response_cache/cdn_invalidation",
        On::Enabled,
        "responses carry no tags, so a CDN could not purge by tag: set `response_cache.cdn_invalidation.enabled: false`",
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
        "an invalidation needs no scan of the cache",
    ),
    idle(
        "response_cache/invalidation/scan_count",
        "an invalidation needs no scan of the cache",
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
        "the key is from version 0 of Apollo Router: move it to `supergraph.listen`",
    ),
    refused(
        "server/cors",
        On::Always,
        "the key is from version 0 of Apollo Router: move it to `cors`",
    ),
    refused(
        "server/introspection",
        On::Always,
        "the key is from version 0 of Apollo Router: move it to `supergraph.introspection`",
    ),
    refused(
        "server/endpoint",
        On::Always,
        "the key is from version 0 of Apollo Router: move it to `supergraph.path`",
    ),
];
