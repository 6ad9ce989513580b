//! The keys of Apollo Router below `telemetry` that have no code behind them here.

use crate::fate::{Unserved, idle, idle_unless};

use crate::unserved::{NO_CONNECTORS, NO_GRAPHOS, NO_LIBRARIES, OWN_METRICS};

const OWN_LOG: &str = "`--log` sets the level of the log";
const NO_SPANS_IN_LOG: &str = "lines of the log have the ids of the trace and the span";
const NO_COLORS: &str = "lines of the log have no colors";
const OWN_MAPPING: &str =
    "the name of a span is its resource in Datadog, and `otel.name` changes it";
const BARE_SPANS: &str = "spans have no events and no links";
const VERIFIED_NAME: &str = "TLS verifies the host name of `endpoint`";
const ONE_SAMPLER: &str = "`telemetry.exporters.tracing.common.sampler` applies to all exporters";

/// The first matching entry counts.
pub(crate) const TELEMETRY: &[Unserved] = &[
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
    idle(
        "telemetry/apollo/experimental_apollo_signature_normalization_algorithm",
        NO_GRAPHOS,
    ),
    idle("telemetry/apollo/preview_subgraph_metrics", NO_GRAPHOS),
    idle("telemetry/apollo/subgraph_metrics", NO_GRAPHOS),
    idle("telemetry/apollo/tracing", NO_GRAPHOS),
    idle(
        "telemetry/exporters/logging/experimental_when_header",
        "events with a `condition` in `telemetry.instrumentation.events` write headers and bodies",
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/format/json/display_current_span",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/format/json/display_span_list",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle(
        "telemetry/exporters/logging/stdout/format/json/span_attributes",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/format/json/expand_json_string_values",
        "false",
        "texts in the log stay texts",
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/format/text/ansi_escape_codes",
        "false",
        NO_COLORS,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/format/text/display_current_span",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/format/text/display_span_list",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/tty_format/json/display_current_span",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/tty_format/json/display_span_list",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle(
        "telemetry/exporters/logging/stdout/tty_format/json/span_attributes",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/tty_format/json/expand_json_string_values",
        "false",
        "texts in the log stay texts",
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/tty_format/text/ansi_escape_codes",
        "false",
        NO_COLORS,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/tty_format/text/display_current_span",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle_unless(
        "telemetry/exporters/logging/stdout/tty_format/text/display_span_list",
        "false",
        NO_SPANS_IN_LOG,
    ),
    idle("telemetry/exporters/tracing/otlp/sampler", ONE_SAMPLER),
    idle("telemetry/exporters/metrics/otlp/sampler", ONE_SAMPLER),
    idle("telemetry/exporters/tracing/zipkin/sampler", ONE_SAMPLER),
    idle("telemetry/exporters/tracing/datadog/sampler", ONE_SAMPLER),
    idle(
        "telemetry/exporters/tracing/datadog/enable_span_mapping",
        OWN_MAPPING,
    ),
    idle(
        "telemetry/exporters/tracing/datadog/fixed_span_names",
        OWN_MAPPING,
    ),
    idle(
        "telemetry/exporters/tracing/datadog/resource_mapping",
        OWN_MAPPING,
    ),
    idle(
        "telemetry/exporters/tracing/datadog/span_metrics",
        "the agent computes metrics for the spans of requests to and from the gateway",
    ),
    idle(
        "telemetry/exporters/tracing/jaeger",
        "Jaeger receives OTLP, so `telemetry.exporters.tracing.otlp` can send to it",
    ),
    idle_unless(
        "telemetry/exporters/tracing/common/preview_datadog_agent_sampling",
        "false",
        "the agent receives only the traces that `sampler` selects",
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
        "telemetry/exporters/tracing/otlp/grpc/domain_name",
        VERIFIED_NAME,
    ),
    idle(
        "telemetry/exporters/metrics/otlp/grpc/domain_name",
        VERIFIED_NAME,
    ),
    idle(
        "telemetry/exporters/metrics/common/buckets",
        "histograms always have the buckets of `/metrics`",
    ),
    idle("telemetry/exporters/metrics/common/views", OWN_METRICS),
    idle(
        "telemetry/exporters/metrics/common/attributes",
        "`telemetry.instrumentation.instruments` adds attributes to metrics",
    ),
    idle(
        "telemetry/exporters/metrics/common/cardinality_limit",
        OWN_METRICS,
    ),
    idle(
        "telemetry/exporters/metrics/prometheus/resource_selector",
        "series of `/metrics` have no resource labels",
    ),
    idle(
        "telemetry/exporters/metrics/datadog",
        "the gateway pushes metrics as OTLP, and Datadog's agent can receive it",
    ),
    idle("telemetry/instrumentation/spans/connector", NO_CONNECTORS),
    idle(
        "telemetry/instrumentation/spans/http_client",
        "the span of a subgraph is the span of its HTTP request: move the attributes to `spans.subgraph`",
    ),
    idle_unless(
        "telemetry/instrumentation/spans/mode",
        "spec_compliant",
        "the attributes of spans have OpenTelemetry's names",
    ),
    idle(
        "telemetry/instrumentation/instruments/connector",
        NO_CONNECTORS,
    ),
    idle(
        "telemetry/instrumentation/instruments/graphql",
        "the gateway does not measure single fields of responses",
    ),
    idle(
        "telemetry/instrumentation/instruments/cache",
        "`apollo_router_operations_response_cache_fetch_total` counts hits and misses",
    ),
    idle("telemetry/instrumentation/events/connector", NO_CONNECTORS),
    idle("telemetry/experimental_logging", OWN_LOG),
];
