//! Names of metrics in OpenTelemetry, with their units.

/// Names at `/metrics` without the `_total` of counters, names in OpenTelemetry, and units.
const NAMES: &[(&str, &str, &str)] = &[
    (
        "http_server_request_duration_seconds",
        "http.server.request.duration",
        "s",
    ),
    ("http_server_requests", "http.server.requests", "{request}"),
    (
        "http_client_request_duration_seconds",
        "http.client.request.duration",
        "s",
    ),
    ("http_client_requests", "http.client.requests", "{request}"),
    (
        "apollo_router_operations_coprocessor",
        "apollo.router.operations.coprocessor",
        "{call}",
    ),
    (
        "apollo_router_operations_coprocessor_duration_seconds",
        "apollo.router.operations.coprocessor.duration",
        "s",
    ),
    (
        "apollo_router_cache_hit_count",
        "apollo.router.cache.hit.count",
        "",
    ),
    (
        "apollo_router_cache_miss_count",
        "apollo.router.cache.miss.count",
        "",
    ),
    ("apollo_router_cache_size", "apollo.router.cache.size", ""),
    (
        "apollo_router_cache_bytes",
        "apollo.router.cache.bytes",
        "By",
    ),
    (
        "apollo_router_compute_jobs_queued",
        "apollo.router.compute_jobs.queued",
        "{operation}",
    ),
    (
        "apollo_router_compute_jobs_queue_is_full",
        "apollo.router.compute_jobs.queue_is_full",
        "{operation}",
    ),
    (
        "apollo_router_query_planning_plan_duration_seconds",
        "apollo.router.query_planning.plan.duration",
        "s",
    ),
    (
        "apollo_router_operations_persisted_queries",
        "apollo.router.operations.persisted_queries",
        "{request}",
    ),
    (
        "apollo_router_operations_response_cache_fetch",
        "apollo.router.operations.response_cache.fetch",
        "",
    ),
    (
        "apollo_router_operations_cost",
        "apollo.router.operations.cost",
        "{operation}",
    ),
    ("cost_estimated", "cost.estimated", ""),
    ("cost_actual", "cost.actual", ""),
    (
        "apollo_router_http_request_retry",
        "apollo.router.http.request.retry",
        "{request}",
    ),
    (
        "apollo_router_telemetry_batch_processor_errors",
        "apollo.router.telemetry.batch_processor.errors",
        "",
    ),
    (
        "process_resident_memory_bytes",
        "process.memory.usage",
        "By",
    ),
    ("process_cpu_seconds", "process.cpu.time", "s"),
];

/// Labels at `/metrics`, with their attributes in OpenTelemetry.
const LABELS: &[(&str, &str)] = &[
    ("http_response_status_code", "http.response.status_code"),
    ("subgraph_name", "subgraph.name"),
    ("coprocessor_stage", "coprocessor.stage"),
    ("coprocessor_succeeded", "coprocessor.succeeded"),
    ("client_name", "client.name"),
    ("client_version", "client.version"),
    ("cost_result", "cost.result"),
];

/// The OpenTelemetry name and the unit of a metric. A metric that is not listed keeps its name.
pub(crate) fn named(name: &str) -> (&str, &'static str) {
    let known = NAMES.iter().find(|(known, _, _)| *known == name);
    known.map_or((name, ""), |(_, name, unit)| (name, unit))
}

/// The OpenTelemetry attribute of a label.
pub(crate) fn label(name: &str) -> &str {
    let known = LABELS.iter().find(|(known, _)| *known == name);
    known.map_or(name, |(_, name)| name)
}
