//! Configurations from practice. A comment with a repository name means that the test has the keys of that
//! repository's file, retyped and shortened.

use std::path::Path;

use insta::assert_snapshot;

use super::{Survey, survey};
use crate::{Surroundings, read};

mod instrumentation;
mod original_keys;

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

/// The three lists of a file, and its other mistakes.
fn told(text: &str) -> String {
    let path = Path::new("router.yaml");
    let Survey {
        works,
        without_effect,
        refused,
    } = survey(path, text, &Nothing).unwrap();
    let mut lines = vec![format!("works: {}", works.len())];
    lines.extend(
        without_effect
            .iter()
            .map(|it| format!("no effect: {} {}", it.line, it.key)),
    );
    lines.extend(
        refused
            .iter()
            .map(|it| format!("refused: {} {}", it.line, it.key)),
    );
    match read(path, text, &Nothing, false) {
        Ok(_) => lines.push("starts".to_owned()),
        Err(mistakes) => {
            let mistakes = mistakes.iter();
            lines.extend(mistakes.map(|it| format!("mistake: {} {}", it.line, it.message)));
        }
    }
    lines.join("\n")
}

#[test]
fn much_telemetry_starts() {
    // apollosolutions/observability-workshop, router.yaml
    let text = "supergraph: {introspection: true, path: /, listen: 0.0.0.0:4000}\n\
        homepage: {enabled: false}\n\
        sandbox: {enabled: true}\n\
        telemetry:\n\
        \x20 apollo: {field_level_instrumentation_sampler: 0.3, errors: {subgraph: {all: {redact: false}}}}\n\
        \x20 instrumentation: {spans: {router: {attributes: {error.type: true}}}}\n\
        \x20 exporters:\n\
        \x20   metrics:\n\
        \x20     prometheus: {enabled: true, path: /metrics, listen: 0.0.0.0:9999}\n\
        \x20     common: {resource: {service.name: a}}\n\
        \x20     otlp: {temporality: delta, enabled: true, endpoint: 'http://localhost:4317', protocol: grpc}\n\
        \x20   tracing: {propagation: {trace_context: true}, otlp: {enabled: true}}\n\
        include_subgraph_errors: {all: true}\n\
        rhai: {}\n\
        plugins: {experimental.expose_query_plan: true}\n";
    assert_snapshot!(told(text), @r"
    works: 18
    no effect: 5 telemetry.apollo.field_level_instrumentation_sampler
    no effect: 5 telemetry.apollo.errors
    no effect: 15 plugins.experimental.expose_query_plan
    starts
    ");
}

#[test]
fn caches_and_keys_of_version_1_start() {
    // apollographql/graphql-summit-2024-performance-workshop, router.yaml
    let text = "sandbox: {enabled: true}\n\
        homepage: {enabled: false}\n\
        supergraph:\n\
        \x20 introspection: true\n\
        \x20 query_planning:\n\
        \x20   warmed_up_queries: 5\n\
        \x20   experimental_plans_limit: 10\n\
        \x20   cache: {in_memory: {limit: 100}, redis: {urls: ['redis://redis:6379']}}\n\
        plugins:\n\
        \x20 experimental.expose_query_plan: true\n\
        experimental_query_planner_mode: legacy\n\
        traffic_shaping: {router: {timeout: 20s}, all: {timeout: 10s}}\n\
        telemetry:\n\
        \x20 apollo: {field_level_instrumentation_sampler: always_off}\n\
        \x20 exporters:\n\
        \x20   logging: {stdout: {format: text}}\n\
        \x20   tracing: {common: {sampler: 0.5}, jaeger: {enabled: true}}\n\
        \x20   metrics: {otlp: {enabled: true}, prometheus: {enabled: true, listen: '0.0.0.0:9091'}}\n";
    assert_snapshot!(told(text), @r"
    works: 11
    no effect: 6 supergraph.query_planning.warmed_up_queries
    no effect: 7 supergraph.query_planning.experimental_plans_limit
    no effect: 8 supergraph.query_planning.cache.redis
    no effect: 10 plugins.experimental.expose_query_plan
    no effect: 11 experimental_query_planner_mode
    no effect: 14 telemetry.apollo.field_level_instrumentation_sampler
    no effect: 17 telemetry.exporters.tracing.jaeger
    starts
    ");
}

#[test]
fn answers_in_redis_and_traces_by_variables_start() {
    // aliosmanisikk/apollo-router-playground, router.yaml
    let text = "supergraph: {listen: 0.0.0.0:4000, path: /graphql, introspection: true}\n\
        headers: {all: {request: [{propagate: {matching: .*}}]}}\n\
        limits: {warn_only: true, parser_max_tokens: 8000, parser_max_recursion: 50}\n\
        telemetry:\n\
        \x20 apollo: {subgraph_metrics: true, metrics_reference_mode: extended, errors: {preview_extended_error_metrics: enabled}}\n\
        \x20 exporters:\n\
        \x20   tracing:\n\
        \x20     common: {service_name: '${env.NAME}', sampler: always_on, max_events_per_span: 128, max_attributes_per_span: 128}\n\
        \x20     otlp: {enabled: true, endpoint: '${env.COLLECTOR}', batch_processor: {max_queue_size: 2048}}\n\
        \x20   metrics:\n\
        \x20     common: {cardinality_limit: 5000}\n\
        \x20     prometheus: {enabled: true, resource_selector: all, listen: 0.0.0.0:9090}\n\
        response_cache: {enabled: true, subgraph: {all: {enabled: true, ttl: 0s, redis: {urls: ['redis://a:6379'], required_to_start: false, fetch_timeout: 500ms, pool_size: 5}}}}\n";
    assert_snapshot!(told(text), @r"
    works: 21
    no effect: 5 telemetry.apollo.subgraph_metrics
    no effect: 5 telemetry.apollo.metrics_reference_mode
    no effect: 5 telemetry.apollo.errors
    no effect: 8 telemetry.exporters.tracing.common.max_events_per_span
    no effect: 11 telemetry.exporters.metrics.common.cardinality_limit
    no effect: 12 telemetry.exporters.metrics.prometheus.resource_selector
    no effect: 13 response_cache.subgraph.all.redis.pool_size
    starts
    ");
}

#[test]
fn connectors_and_a_variable_start() {
    // DaleStudy/graphql, router.yaml. Its supergraph has connectors and is refused for them.
    let text = "supergraph: {listen: 0.0.0.0:8080}\n\
        cors: {allow_any_origin: true}\n\
        connectors: {sources: {github.github: {$config: {token: '${env.GITHUB_API_TOKEN}'}}}}\n\
        telemetry: {instrumentation: {spans: {mode: spec_compliant}}}\n";
    assert_snapshot!(told(text), @r"
    works: 3
    no effect: 3 connectors
    starts
    ");
}

#[test]
fn a_coprocessor_and_metrics_at_their_former_place_start() {
    // apollosolutions/summit-coprocessors-workshop, router.yaml
    let text = "telemetry: {metrics: {prometheus: {listen: '127.0.0.1:4000', enabled: true, path: /metrics}}}\n\
        supergraph: {listen: '127.0.0.1:4000', introspection: true}\n\
        plugins: {experimental.expose_query_plan: true}\n\
        coprocessor: {url: 'http://127.0.0.1:3000', timeout: 2s, subgraph: {all: {request: {headers: true, context: true, uri: true, service_name: true, body: true}}}}\n";
    assert_snapshot!(told(text), @r"
    works: 12
    no effect: 3 plugins.experimental.expose_query_plan
    starts
    ");
}

#[test]
fn keys_of_version_0_are_refused_with_their_new_names() {
    // apollographql/supergraph-demo-fed2, router.yaml
    let text = "server: {listen: 0.0.0.0:4000, cors: {origins: ['https://studio.example']}}\n\
        telemetry: {tracing: {otlp: {protocol: grpc}}}\n";
    assert_snapshot!(told(text), @r"
    works: 2
    refused: 1 server.listen
    refused: 1 server.cors
    mistake: 1 `server.listen` cannot be served: the key is from version 0 of Apollo Router: move it to `supergraph.listen`
    mistake: 1 `server.cors` cannot be served: the key is from version 0 of Apollo Router: move it to `cors`
    ");
}

#[test]
fn a_page_that_asks_for_the_schema_without_introspection_is_refused_as_by_the_original() {
    // black-cat-security/apollo-router, router.yaml
    let text =
        "cors: {allow_any_origin: true}\nsandbox: {enabled: true}\nhomepage: {enabled: false}\n";
    assert_snapshot!(told(text), @r"
    works: 3
    mistake: 2 the sandbox asks for the schema: set `supergraph.introspection: true`
    ");
}

#[test]
fn what_is_off_is_accepted() {
    let text = "subscription: {enabled: false, mode: {callback: {public_url: 'https://a'}}}\n\
        batching: {enabled: false, mode: batch_http_link}\n\
        persisted_queries: {enabled: false, safelist: {enabled: false}}\n\
        demand_control: {enabled: false}\n\
        preview_file_uploads: {enabled: false}\n\
        tls:\n\
        plugins: {}\n\
        wasm: {}\n\
        experimental_chaos: {force_reload: null}\n\
        authentication: {subgraph: }\n";
    assert_snapshot!(told(text), @r"
    works: 8
    no effect: 5 preview_file_uploads
    no effect: 7 plugins
    no effect: 8 wasm
    no effect: 9 experimental_chaos.force_reload
    no effect: 10 authentication.subgraph
    starts
    ");
}

#[test]
fn what_is_on_and_not_served_is_refused_at_its_place() {
    let text = "subscription:\n  enabled: true\n\
        plugins: {acme.audit: {strict: true}, experimental.expose_query_plan: true}\n\
        preview_file_uploads: {enabled: true}\n\
        authentication: {subgraph: {all: {aws_sig_v4: {default_chain: {region: a}}}}}\n\
        wasm: {plugins: [{name: a}]}\n\
        subscriptions: {}\n";
    assert_snapshot!(told(text), @r"
    works: 1
    no effect: 3 plugins.experimental.expose_query_plan
    refused: 3 plugins.acme.audit
    refused: 4 preview_file_uploads
    refused: 5 authentication.subgraph
    refused: 6 wasm
    mistake: 3 `plugins.acme.audit` cannot be served: the gateway has no native plugins, so the checks and changes of this plugin would be missing: move them to a script (`rhai`) or to a coprocessor
    mistake: 4 `preview_file_uploads` cannot be served: the gateway does not forward files, so every upload would fail: set `preview_file_uploads.enabled: false`
    mistake: 5 `authentication.subgraph` cannot be served: subgraph requests would not be signed: sign them in a coprocessor or in a proxy next to the gateway
    mistake: 6 `wasm` cannot be served: the gateway has no WebAssembly plugins, so their checks and changes would be missing: move them to a script (`rhai`) or to a coprocessor
    mistake: 7 unknown key `subscriptions`
    ");
}

#[test]
fn a_suggestion_is_a_key_that_can_be_meant() {
    let help = |text: &str| {
        let mistakes = read(Path::new("r.yaml"), text, &Nothing, false).unwrap_err();
        mistakes.iter().next().unwrap().help.clone().unwrap()
    };
    assert_eq!(help("subscriptions: {}\n"), "did you mean `subscription`?");
    assert_eq!(
        help("telemetry: {apollo: {client_name_headr: a}}\n"),
        "did you mean `client_name_header`?"
    );
    assert!(help("authorizations2: {}\n").starts_with("did you mean `authorization`"));
}

#[test]
fn a_key_at_both_of_its_places_is_a_mistake() {
    let both = "limits: {max_depth: 1, router: {max_depth: 2}}\n";
    assert_snapshot!(told(both), @r"
    works: 1
    mistake: 1 `limits.max_depth` is there twice
    ");
    let moved = "limits: {router: {max_depth: 2, parser_max_tokens: 7}}\n";
    let config = read(Path::new("r.yaml"), moved, &Nothing, false)
        .unwrap()
        .config;
    assert_eq!(config.limits.max_depth, Some(2));
    assert_eq!(config.limits.parser_max_tokens, 7);
}

#[test]
fn the_readme_has_the_table_of_keys() {
    let page = "docs/gateway/apollo-router.md";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let readme = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        "<!-- keys: cargo xtask schema -->\n",
        "<!-- end of keys -->",
    );
    let (before, rest) = readme.split_once(begin).expect("the page has the marker");
    let (_, after) = rest
        .split_once(end)
        .expect("the page has the marker of the end");
    let now = format!("{before}{begin}{}{end}{after}", crate::key_table());
    generated::assert_generated(page, &now);
}

#[test]
fn each_key_of_the_list_can_be_found_by_its_path() {
    for (index, unserved) in crate::original::unserved().enumerate() {
        let path: Vec<String> = unserved.path.split('/').map(str::to_owned).collect();
        let found = crate::original::find(&path).unwrap();
        assert_eq!(
            found.path, unserved.path,
            "entry {index} is behind one that fits the same"
        );
    }
}

#[test]
fn subscriptions_need_a_way_for_events_to_come() {
    assert_snapshot!(told("subscription: {}\n"), @"
    works: 1
    mistake: 1 no subgraph has a way to send events, and every subscription would fail: write `mode: {passthrough: {all: {path: /ws}}}`, or set `subscription.enabled: false`
    ");
    let mode = |mode: &str| told(&format!("subscription: {{mode: {{{mode}}}}}\n"));
    for mode in [
        mode("callback: {public_url: 'http://a/callback'}"),
        mode("passthrough: {subgraphs: {a: {protocol: graphql_ws}}}"),
    ] {
        assert_eq!(mode, "works: 1\nstarts");
    }
    let same = "callback: {public_url: 'http://a/callback', path: /}";
    assert_snapshot!(mode(same), @"
    works: 2
    mistake: 1 callbacks and GraphQL cannot have the same address and path: write another `listen`
    ");
    assert_snapshot!(mode("passthrough: {all: {path: /ws, heartbeat_interval: 0s}}"), @"
    works: 2
    mistake: 1 expected a time above zero, or `disabled`
    ");
    let beside = |keys: &str| {
        told(&format!(
            "subscription: {{{keys}, mode: {{passthrough: {{all: {{}}}}}}}}\n"
        ))
    };
    assert_snapshot!(beside("max_reconnect_attempts: 3"), @"
    works: 1
    no effect: 1 subscription.max_reconnect_attempts
    starts
    ");
    // In the formats of all versions of the original.
    for keys in [
        "enable_deduplication: false",
        "deduplication: {enabled: false, ignored_headers: [user-agent]}",
        "deduplication: {all: {enabled: false}, subgraphs: {a: {ignore_auth_context: true}}}",
    ] {
        let told = beside(keys);
        assert!(told.ends_with("starts"), "{told}");
        assert!(!told.contains("no effect"), "{told}");
    }
    assert_snapshot!(beside("enable_deduplication: true, deduplication: {enabled: false}"), @"
    works: 2
    mistake: 1 `subscription.deduplication.all.enabled` is there twice
    ");
}

/// Apollo's own migrations know these names of version 1.
#[test]
fn names_of_version_1_are_read_at_their_new_places() {
    for (text, wanted) in [
        (
            "preview_operation_limits: {max_depth: 10}",
            "limits.max_depth",
        ),
        (
            "supergraph: {query_planning: {experimental_cache: {in_memory: {limit: 5}}}}",
            "supergraph.query_planning.cache.in_memory.limit",
        ),
        (
            "supergraph: {apq: {router: {cache: {in_memory: {limit: 5}}}}}",
            "apq.router.cache.in_memory.limit",
        ),
        (
            "preview_entity_cache: {subgraphs: {a: {enabled: false}}}",
            "response_cache.subgraph.subgraphs.a.enabled",
        ),
        (
            "server: {experimental_parser_recursion_limit: 50}",
            "limits.parser_max_recursion",
        ),
        (
            "telemetry: {apollo: {experimental_subgraph_metrics: true}}",
            "telemetry.apollo.subgraph_metrics",
        ),
        (
            "telemetry: {apollo: {experimental_apollo_metrics_reference_mode: standard}}",
            "telemetry.apollo.metrics_reference_mode",
        ),
        (
            "telemetry: {logging: {format: json}}",
            "telemetry.exporters.logging.stdout.format",
        ),
        ("health-check: {enabled: true}", "health_check.enabled"),
        (
            "preview_entity_cache: {enabled: true, redis: {urls: ['redis://a:6379']}}",
            "response_cache.subgraph.all.redis.urls",
        ),
        (
            "telemetry: {tracing: {trace_config: {service_name: a}}}",
            "telemetry.exporters.tracing.common.service_name",
        ),
        (
            "telemetry: {tracing: {common: {attributes: {a: b}}}}",
            "telemetry.exporters.tracing.common.resource.a",
        ),
        (
            "telemetry: {tracing: {otlp: {endpoint: default, timeout: 5s}}}",
            "telemetry.exporters.tracing.otlp.batch_processor.max_export_timeout",
        ),
        (
            "telemetry: {tracing: {propagation: {awsxray: true}}}",
            "telemetry.exporters.tracing.propagation.aws_xray",
        ),
        (
            "telemetry: {metrics: {common: {resources: {a: b}}}}",
            "telemetry.exporters.metrics.common.resource.a",
        ),
    ] {
        let path = Path::new("router.yaml");
        let survey = survey(path, text, &Nothing).unwrap();
        let mut found = survey.works.iter().chain(&survey.without_effect);
        assert!(found.any(|key| key.key == wanted), "{text}: {survey:?}");
        if let Err(mistakes) = read(path, text, &Nothing, false) {
            panic!("{text}: {mistakes}");
        }
    }
}

/// Version 1 had no key `enabled`. An exporter that is off without a word loses all its data.
#[test]
fn an_exporter_of_version_1_is_on_if_it_is_in_the_file() {
    let text = "telemetry:\n\
        \x20 tracing: {otlp: {endpoint: default}, zipkin: {endpoint: default}, datadog: {enabled: false, endpoint: default}}\n\
        \x20 metrics: {otlp: {endpoint: default}, prometheus: {enabled: true}}\n";
    let config = read(Path::new("r.yaml"), text, &Nothing, false)
        .unwrap()
        .config;
    let exporters = &config.telemetry.exporters;
    assert!(exporters.tracing.otlp.enabled);
    assert!(exporters.tracing.zipkin.enabled);
    assert!(!exporters.tracing.datadog.enabled);
    assert!(exporters.metrics.otlp.enabled);
    // An empty mapping is in the file, too. A key without a value is not.
    let text = "telemetry: {tracing: {otlp: {}, zipkin: }, metrics: {otlp: {}}}\n";
    let config = read(Path::new("r.yaml"), text, &Nothing, false)
        .unwrap()
        .config;
    let exporters = &config.telemetry.exporters;
    assert!(exporters.tracing.otlp.enabled && exporters.metrics.otlp.enabled);
    assert!(!exporters.tracing.zipkin.enabled);
    // In version 2, an exporter is off without the key.
    let text = "telemetry: {exporters: {tracing: {otlp: {endpoint: default}}}}\n";
    let config = read(Path::new("r.yaml"), text, &Nothing, false)
        .unwrap()
        .config;
    assert!(!config.telemetry.exporters.tracing.otlp.enabled);
}

#[test]
fn a_key_in_the_wrong_place_is_led_to_the_right_one() {
    for (text, help) in [
        (
            "supergraph: {cors: {allow_any_origin: true}}",
            "`cors` is a key at the top of the file",
        ),
        (
            "headers: {all: [{propagate: {named: a}}]}",
            "the keys here are request, response",
        ),
        (
            "federation_version: =2.3\nsubgraphs: {a: {routing_url: x}}",
            "compose it, and give the result with --supergraph",
        ),
    ] {
        let mistakes = read(Path::new("router.yaml"), text, &Nothing, false).unwrap_err();
        assert!(mistakes.to_string().contains(help), "{text}: {mistakes}");
    }
}
