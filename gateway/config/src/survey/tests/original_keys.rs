//! Tests that the gateway recognizes each key of the original's schema.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Nothing, told};
use crate::coprocessor::HttpVersions;
use crate::original;
use crate::read;

const KEYS: &str = include_str!("original_keys.txt");

fn paths() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = KEYS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('/').collect())
}

/// A file with one path of keys, and below it `keys`, each with the value `1`.
fn file(above: &[&str], keys: &[&str]) -> String {
    let keys = keys.iter().map(|key| match *key {
        "*" => "any: 1".to_owned(),
        key => format!("{key}: 1"),
    });
    let inner = format!("{{{}}}", keys.collect::<Vec<_>>().join(", "));
    let value = above.iter().rev().fold(inner, |inner, key| match *key {
        // Comparisons have two operands.
        "[]" => format!("[{inner}, {inner}]"),
        "*" => format!("{{any: {inner}}}"),
        key => format!("{{{key}: {inner}}}"),
    });
    format!("{value}\n")
}

/// The messages that report an unknown key, or a value with a wrong format.
fn not_known(above: &[&str], keys: &[&str]) -> Vec<String> {
    let text = file(above, keys);
    let Err(mistakes) = read(Path::new("router.yaml"), &text, &Nothing, false) else {
        return Vec::new();
    };
    let messages = mistakes.iter().map(|it| it.message.clone());
    let is_of_form = |it: &String| it.ends_with("found a mapping") || it.ends_with("found a list");
    messages
        // `unknown field` is serde's message. If a key belongs to another place that shares the struct, only
        // serde detects it.
        .filter(|it| it.starts_with("unknown ") || is_of_form(it))
        .collect()
}

#[test]
fn each_key_of_the_original_is_known() {
    assert!(paths().count() > 1000);
    let mut together: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for mut path in paths() {
        let last = path.pop().unwrap();
        together.entry(path).or_default().push(last);
    }
    let mut unknown = Vec::new();
    for (above, keys) in &together {
        for message in not_known(above, keys) {
            unknown.push(format!("{}: {message}", above.join("/")));
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// True if all keys below a parent have no code, or if any name is allowed there.
fn is_any_key_known(path: &[&str]) -> bool {
    let owned: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
    let above = (1..owned.len()).any(|length| original::find(&owned[..length]).is_some());
    above || path.ends_with(&["*"])
}

fn is_moved(path: &[&str]) -> bool {
    original::MOVED.iter().any(|(from, _)| {
        let mut keys = path.iter();
        from.split('/')
            .all(|it| keys.next().is_some_and(|key| it == "*" || *key == it))
    })
}

/// Shows that the test above can fail. At each place, it reports other keys.
#[test]
fn keys_that_the_original_does_not_have_are_unknown() {
    let mut missed = Vec::new();
    // A subset is enough, because all of them would take as long as the test above.
    for mut path in paths().step_by(11) {
        let Some(last) = path.pop().filter(|last| *last != "*") else {
            continue;
        };
        let wrong = format!("{last}_not");
        let is_found = !not_known(&path, &[&wrong]).is_empty();
        path.push(&wrong);
        if !is_found && !is_any_key_known(&path) && !is_moved(&path) {
            missed.push(path.join("/"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn header_rules_may_stand_under_operations() {
    let rules = |rules: &str| {
        let text = format!(
            "headers: {{all: {{request: {rules}}}, subgraphs: {{a: {{request: {rules}}}}}}}\n"
        );
        let config = read(Path::new("r.yaml"), &text, &Nothing, false).map(|it| it.config);
        config.map(|it| {
            (
                it.headers.all.request.operations.len(),
                it.headers.subgraphs["a"].request.operations.len(),
            )
        })
    };
    let list = "[{remove: {named: a}}, {propagate: {named: b}}]";
    assert_eq!(rules(list).unwrap(), (2, 2));
    assert_eq!(rules(&format!("{{operations: {list}}}")).unwrap(), (2, 2));
    let masked = format!("{{operations: {list}, masking: {{enabled: false}}}}");
    assert_eq!(rules(&masked).unwrap(), (2, 2));
    assert_eq!(rules("{masking: {enabled: true}}").unwrap(), (0, 0));
    for wrong in [
        "{operation: []}",
        "{operations: [{remove: {nmed: a}}]}",
        "{operations: [{propagate: {named: a, matching: b}}]}",
    ] {
        let mistakes = rules(wrong).unwrap_err();
        assert!(
            mistakes.iter().all(|it| !it.message.contains("untagged")),
            "{mistakes:?}"
        );
    }
}

#[test]
fn keys_that_another_version_renames_are_read_by_both_names() {
    let text = "traffic_shaping: {all: {http2: disable}, subgraphs: {a: {http2: http2only}, b: {timeout: 1s}}}\n\
        supergraph: {log_on_broken_pipe: true}\n";
    let config = read(Path::new("r.yaml"), text, &Nothing, false)
        .unwrap()
        .config;
    let shaping = &config.traffic_shaping;
    assert_eq!(
        shaping.all.as_ref().unwrap().experimental_http2,
        Some(HttpVersions::Disable)
    );
    let of = |name: &str| shaping.subgraphs[name].experimental_http2;
    assert_eq!((of("a"), of("b")), (Some(HttpVersions::Http2Only), None));
    assert!(config.supergraph.experimental_log_on_broken_pipe);
    let twice = "traffic_shaping: {subgraphs: {a: {http2: disable, experimental_http2: enable}}}\n";
    assert!(
        told(twice).contains("`traffic_shaping.subgraphs.a.experimental_http2` is there twice")
    );
}

#[test]
fn what_would_change_answers_is_refused_and_the_rest_is_not() {
    let text = "authentication: {router: {jwt: {jwks: [{url: 'https://a/', allow_missing_exp: true}]}}}\n\
        circuit_breaker: {all: {window_size: 10}}\n\
        preview_graphql_federation: {enabled: true}\n\
        demand_control: {enabled: true, mode: enforce, strategy: {test: {stage: execution_request, error: estimated_cost_too_expensive}}}\n";
    let refused = told(text);
    for (line, key) in [
        (1, "authentication.router.jwt.jwks[].allow_missing_exp"),
        (2, "circuit_breaker"),
        (3, "preview_graphql_federation"),
        (4, "demand_control.strategy.test"),
    ] {
        assert!(
            refused.contains(&format!("refused: {line} {key}")),
            "{refused}"
        );
    }
    let text = "authentication: {router: {jwt: {jwks: [{url: 'https://a/', allow_missing_exp: false}]}}}\n\
        preview_graphql_federation: {enabled: false}\n\
        experimental_continuous_profiling: {heap: {enabled: true}}\n\
        rhai: {intern_strings: false}\n\
        telemetry: {apollo: {sampler: 0.1, library_name_header: a}, exporters: {tracing: {otlp: {enabled: true, sampler: 0.1}}}}\n\
        traffic_shaping: {all: {experimental_http2_keep_alive_interval: 5s}}\n\
        response_cache: {subgraph: {all: {invalidation: {indexes: {type: false}}}}}\n\
        subscription: {max_reconnect_attempts: 3, mode: {passthrough: {all: {max_reconnect_attempts: 3, reconnect_delay: 1s}}}}\n";
    let accepted = told(text);
    assert!(accepted.ends_with("starts"), "{accepted}");
    assert_eq!(accepted.matches("no effect").count(), 10, "{accepted}");
}

#[test]
fn what_conditions_cannot_look_at_is_refused_at_its_place() {
    let condition = |condition: &str| {
        let text = "coprocessor: {url: 'http://a:1', supergraph: {response: {condition: IT}}}\n";
        told(&text.replace("IT", condition))
    };
    for (text, key) in [
        (
            "{eq: [{request_duration: true}, 5]}",
            "eq[].request_duration",
        ),
        (
            "{all: [{exists: {request_header: a}}, {not: {exists: {router_overhead: true}}}]}",
            "all[].not.exists.router_overhead",
        ),
    ] {
        let told = condition(text);
        let refused = format!("refused: 1 coprocessor.supergraph.response.condition.{key}");
        assert!(told.contains(&refused), "{told}");
        assert!(!told.contains("unknown key"), "{told}");
    }
    let works = condition(
        "{all: [{eq: [{supergraph_operation_name: string}, A]}, {exists: {query: string}}]}",
    );
    assert!(
        works.ends_with("starts") && !works.contains("refused"),
        "{works}"
    );
}

/// Public examples contain each of these. They were refused, or they were unknown.
#[test]
fn values_in_examples_of_the_original_are_not_refused() {
    let text = "telemetry:\n\
        \x20 apollo: {experimental_apollo_signature_normalization_algorithm: legacy}\n\
        \x20 instrumentation:\n\
        \x20   spans: {router: {attributes: {acme.attribute: hello}}}\n\
        \x20   instruments:\n\
        \x20     connector: {a: {type: counter, value: unit, unit: a, description: a, condition: {eq: [200, {connector_http_response_status: code}]}}}\n\
        \x20     graphql: {b: {type: histogram, value: {list_length: value}, unit: b, description: b, condition: {eq: [x, {field_name: string}]}}}\n\
        \x20   events: {supergraph: {c: {message: c, level: info, on: response, attributes: {code: {response_errors: '$.[0].extensions.code'}}}}}\n";
    let accepted = told(text);
    assert!(accepted.ends_with("starts"), "{accepted}");
    assert!(accepted.contains("no effect: 6 telemetry.instrumentation.instruments.connector"));
    assert!(accepted.contains("no effect: 7 telemetry.instrumentation.instruments.graphql"));
    let cached = "telemetry: {instrumentation: {instruments: {subgraph: {a: {type: counter, value: {cache: hit, entity_type: all}, unit: a, description: a}}}}}\n";
    let refused = told(cached);
    assert!(refused.contains("value.entity_type"), "{refused}");
    assert!(!refused.contains("unknown key"), "{refused}");
}
