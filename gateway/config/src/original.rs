//! The keys of Apollo Router's schema that have no code behind them here.
//!
//! A key of the original either works (the structs contain it), is accepted without effect, or is refused
//! because ignoring it would be wrong. [`unserved`] returns the only list of the keys that do not work. The
//! check, the JSON Schema, the log, `gateway check` and the table of `docs/gateway/apollo-router.md` use this list.

use crate::fate::{On, Unserved, refused};
use crate::unserved::GENERAL;
use crate::unserved_telemetry::TELEMETRY;

/// The keys that do not work. The first matching entry counts.
pub(crate) fn unserved() -> impl Iterator<Item = &'static Unserved> {
    GENERAL.iter().chain(TELEMETRY)
}

/// Keys of the original that had another path in other versions. A key at the first path is read as if it
/// were at the second. A `*` matches any name, and both paths use the same name.
pub(crate) const MOVED: &[(&str, &str)] = &[
    ("limits/router", "limits"),
    ("health-check", "health_check"),
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
    (
        "preview_entity_cache/subgraphs",
        "preview_entity_cache/subgraph/subgraphs",
    ),
    (
        "preview_entity_cache/redis",
        "preview_entity_cache/subgraph/all/redis",
    ),
    ("preview_entity_cache", "response_cache"),
    ("preview_operation_limits", "limits"),
    (
        "supergraph/query_planning/experimental_cache",
        "supergraph/query_planning/cache",
    ),
    ("supergraph/apq", "apq"),
    (
        "server/experimental_parser_recursion_limit",
        "limits/parser_max_recursion",
    ),
    (
        "telemetry/apollo/experimental_subgraph_metrics",
        "telemetry/apollo/subgraph_metrics",
    ),
    (
        "telemetry/apollo/experimental_apollo_metrics_reference_mode",
        "telemetry/apollo/metrics_reference_mode",
    ),
    (
        "telemetry/logging/format",
        "telemetry/exporters/logging/stdout/format",
    ),
    ("telemetry/logging", "telemetry/exporters/logging"),
    ("telemetry/tracing/trace_config", "telemetry/tracing/common"),
    (
        "telemetry/tracing/common/attributes",
        "telemetry/tracing/common/resource",
    ),
    (
        "telemetry/tracing/otlp/timeout",
        "telemetry/tracing/otlp/batch_processor/max_export_timeout",
    ),
    (
        "telemetry/tracing/propagation/awsxray",
        "telemetry/tracing/propagation/aws_xray",
    ),
    ("telemetry/tracing", "telemetry/exporters/tracing"),
    (
        "telemetry/metrics/common/resources",
        "telemetry/metrics/common/resource",
    ),
    ("telemetry/metrics", "telemetry/exporters/metrics"),
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

/// Exporters of version 1 that are on if they are in the file. Version 2 added the key `enabled`.
pub(crate) const ON_BY_PRESENCE: &[&str] = &[
    "telemetry/tracing/otlp",
    "telemetry/tracing/zipkin",
    "telemetry/tracing/datadog",
    "telemetry/metrics/otlp",
];

/// Selectors of telemetry that conditions of the coprocessor do not support. The stages do not run without a
/// response, no stage knows how often a request is sent, and conditions compare unmasked headers.
pub(crate) const UNREAD_BY_CONDITIONS: &[&str] = &["error", "redact", "subgraph_resend_count"];

/// The entry for a selector that conditions of the coprocessor do not support, at any depth of a condition.
static UNREAD_SELECTOR: Unserved = refused(
    "coprocessor/…/condition",
    On::Always,
    "conditions do not support it, so the gateway would call the coprocessor at wrong times: remove the condition, and decide in the coprocessor",
);

/// Selectors of the original that the gateway does not support.
pub(crate) const UNREAD: &[&str] = &[
    "active_subgraph_requests",
    "cache",
    "connector_http_method",
    "connector_http_request_header",
    "connector_http_response_header",
    "connector_http_response_status",
    "connector_source",
    "connector_url_template",
    "context_id",
    "entity_type",
    "field_name",
    "field_type",
    "is_deferred",
    "list_length",
    "request_duration",
    "response_cache",
    "response_cache_control",
    "response_cache_status",
    "response_errors_count",
    "response_errors_field",
    "response_size_hint",
    "router_overhead",
    "studio_operation_id",
    "subgraph_request_body_size",
    "subgraph_response_body_size",
    "type_name",
];

/// The entry for a key of [`UNREAD`], at any depth of the section of telemetry.
static UNREAD_VALUE: Unserved = refused(
    "telemetry/instrumentation/…",
    On::Always,
    "the gateway does not have this value, so telemetry would silently lack it: remove it, or write another selector",
);

fn is_in_condition(path: &[String]) -> bool {
    path.first().is_some_and(|key| key == "coprocessor")
        && path.iter().any(|key| key == "condition")
}

fn is_in_instrumentation(path: &[String]) -> bool {
    matches!(path, [telemetry, instrumentation, ..]
        if telemetry == "telemetry" && instrumentation == "instrumentation")
}

/// Sections of telemetry that have no effect as a whole, so their contents are not refused.
const IDLE_SECTIONS: [&str; 4] = ["cache", "connector", "graphql", "http_client"];

fn is_in_idle_section(path: &[String]) -> bool {
    let section = path.get(3);
    is_in_instrumentation(path) && section.is_some_and(|it| IDLE_SECTIONS.contains(&it.as_str()))
}

/// True if the last key of the path is a selector. Attributes, instruments and events have names of the user
/// at the same depth.
fn is_selector(path: &[String]) -> bool {
    let [.., above, _] = path else {
        return false;
    };
    let is_named = ["attributes", "router", "supergraph", "subgraph"].contains(&above.as_str());
    is_in_instrumentation(path) && path.len() > 5 && !is_named && !is_in_idle_section(path)
}

/// The first entry that matches a path.
pub(crate) fn find(path: &[String]) -> Option<&'static Unserved> {
    let is_key_of = |keys: &[&str]| path.last().is_some_and(|key| keys.contains(&key.as_str()));
    if is_in_condition(path) && (is_key_of(UNREAD) || is_key_of(UNREAD_BY_CONDITIONS)) {
        return Some(&UNREAD_SELECTOR);
    }
    if is_selector(path) && is_key_of(UNREAD) {
        return Some(&UNREAD_VALUE);
    }
    unserved().find(|unserved| fits(unserved.path, path))
}

/// True if the list may contain keys below this path.
pub(crate) fn leads_on(path: &[String]) -> bool {
    is_in_condition(path)
        || is_in_instrumentation(path)
        || unserved().any(|unserved| {
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
