//! Tests that each key of `telemetry.instrumentation` works, has a note, or is refused by its name.

use insta::assert_snapshot;

use super::{Nothing, told};
use crate::{Attribute, Instrument, Measured, read};

/// The lists of a file with this section.
fn section(section: &str) -> String {
    told(&format!("telemetry: {{instrumentation: {{{section}}}}}\n"))
}

#[test]
fn the_section_of_a_public_file_works() {
    // apollosolutions/observability-workshop, router.yaml
    let text = "telemetry:\n\
        \x20 instrumentation:\n\
        \x20   spans:\n\
        \x20     default_attribute_requirement_level: recommended\n\
        \x20     router: {attributes: {http.response.status_code: true, error.type: true, graphql.operation.name: {operation_name: string}}}\n\
        \x20     supergraph:\n\
        \x20       attributes:\n\
        \x20         otel.status_code: {static: ERROR, condition: {eq: [true, {on_graphql_error: true}]}}\n\
        \x20         otel.status_description: {response_errors: '$[0].extensions.code'}\n\
        \x20     subgraph: {attributes: {subgraph.name: true, error.message: {subgraph_response_errors: '$[0].message'}}}\n\
        \x20   instruments:\n\
        \x20     router: {http.server.request.duration: {attributes: {http.response.status_code: true}}}\n\
        \x20     subgraph:\n\
        \x20       http.client.request.duration: {attributes: {subgraph.name: true, http.response.status_code: {subgraph_response_status: code}}}\n\
        \x20     connector: {http.client.request.body.size: true}\n";
    assert_snapshot!(told(text), @r"
    works: 12
    no effect: 15 telemetry.instrumentation.instruments.connector
    starts
    ");
    let path = std::path::Path::new("r.yaml");
    let config = read(path, text, &Nothing, false).unwrap().config;
    let instrumentation = config.telemetry.instrumentation.unwrap();
    let router = &instrumentation.spans.router.attributes;
    assert_eq!(router["error.type"], Attribute::Switch(true));
    let Instrument::Defined(duration) =
        &instrumentation.instruments.router["http.server.request.duration"]
    else {
        panic!("{instrumentation:?}");
    };
    assert_eq!(duration.attributes.len(), 1);
}

#[test]
fn events_and_forms_of_the_log_of_a_public_file_work() {
    // ganesh-arumugam/shopgraph, router.production.yaml
    let text = "telemetry:\n\
        \x20 exporters:\n\
        \x20   logging:\n\
        \x20     stdout:\n\
        \x20       enabled: true\n\
        \x20       format: {json: {display_timestamp: true, display_trace_id: open_telemetry, display_span_id: true, display_current_span: false, display_span_list: false}}\n\
        \x20       rate_limit: {capacity: 10, interval: 1s}\n\
        \x20   tracing:\n\
        \x20     zipkin: {enabled: true, endpoint: 'http://zipkin:9411/api/v2/spans'}\n\
        \x20     datadog: {enabled: true, endpoint: default, enable_span_mapping: true}\n\
        \x20 instrumentation:\n\
        \x20   spans: {mode: spec_compliant}\n\
        \x20   events: {router: {request: off, error: error}, supergraph: {response: {level: info, condition: {exists: {request_header: a}}}}}\n";
    assert_snapshot!(told(text), @r"
    works: 15
    no effect: 10 telemetry.exporters.tracing.datadog.enable_span_mapping
    starts
    ");
}

#[test]
fn custom_instruments_and_events_work() {
    let told = section(
        "instruments: {default_requirement_level: none, router: {http.server.request.duration: false, acme.time: {type: histogram, value: duration, unit: ms, attributes: {status: {response_status: code}}}}, \
         supergraph: {acme.items: {type: counter, value: {event_custom: {response_data: '$.items'}}, condition: {not: {exists: {request_header: x-test}}}}}, \
         subgraph: {acme.sizes: {type: counter, value: {subgraph_response_header: x-size}}}}, \
         events: {router: {acme.slow: {message: slow, level: warn, on: response, attributes: {url.path: true, id: {trace_id: datadog}}, condition: {gt: [{response_status: code}, 399]}}}}",
    );
    assert!(told.ends_with("starts"), "{told}");
    assert!(!told.contains("no effect"), "{told}");
    let path = std::path::Path::new("r.yaml");
    let text = "telemetry: {instrumentation: {instruments: {supergraph: {a: {type: counter, value: event_unit}}}}}";
    let config = read(path, text, &Nothing, false).unwrap().config;
    let instruments = config.telemetry.instrumentation.unwrap().instruments;
    let Instrument::Defined(defined) = &instruments.supergraph["a"] else {
        panic!("{instruments:?}");
    };
    assert_eq!(defined.value, Some(Measured::EventUnit));
}

/// Each form of the client's operation.
const FORMS: [&str; 5] = ["string", "aliases", "depth", "height", "root_fields"];

#[test]
fn sizes_of_operations_are_read_at_every_place() {
    let places = [
        "spans: {router: {attributes: {a: {query: IT}}}}",
        "spans: {supergraph: {attributes: {a: {query: IT, default: 0}}}}",
        "spans: {subgraph: {attributes: {a: {supergraph_query: IT}}}}",
        "spans: {router: {attributes: {a: {static: 1, condition: {gt: [{query: IT}, 3]}}}}}",
        "instruments: {router: {a: {type: histogram, value: {query: IT}}}}",
        "instruments: {supergraph: {a: {type: histogram, value: {query: IT}}}}",
        "instruments: {supergraph: {a: {type: counter, value: {event_custom: {query: IT}}}}}",
        "instruments: {subgraph: {a: {type: counter, value: {supergraph_query: IT}}}}",
        "instruments: {supergraph: {a: {type: counter, value: unit, attributes: {b: {query: IT}}}}}",
        "instruments: {supergraph: {a: {type: counter, value: unit, condition: {lt: [{query: IT}, 3]}}}}",
        "events: {router: {a: {message: a, level: info, on: response, attributes: {b: {query: IT}}}}}",
        "events: {supergraph: {a: {message: a, level: info, on: request, attributes: {b: {query: IT}}}}}",
        "events: {supergraph: {a: {message: a, level: info, on: event_response, condition: {exists: {query: IT}}}}}",
        "events: {subgraph: {a: {message: a, level: info, on: request, attributes: {b: {supergraph_query: IT}}}}}",
    ];
    for place in places {
        for form in FORMS {
            let told = section(&place.replace("IT", form));
            assert!(told.ends_with("starts"), "{place} {form}: {told}");
            assert!(!told.contains("no effect"), "{place} {form}: {told}");
        }
        let told = section(&place.replace("IT", "width"));
        assert!(told.contains("root_fields"), "{place}: {told}");
        assert!(told.contains("found `width`"), "{place}: {told}");
        assert!(!told.ends_with("starts"), "{place}: {told}");
    }
}

/// Checks that the gateway does not start with these sections, and names the reason.
fn refused(sections: &[(&str, &str)]) {
    for (text, message) in sections {
        let told = section(text);
        assert!(told.contains(message), "{text}: {told}");
        assert!(!told.ends_with("starts"), "{text}: {told}");
    }
}

#[test]
fn attributes_that_telemetry_cannot_honor_are_refused() {
    refused(&[
        (
            "spans: {router: {attributes: {network.local.port: true}}}",
            "the gateway does not have `network.local.port`",
        ),
        (
            "spans: {router: {attributes: {my.name: true}}}",
            "`my.name` is not a standard attribute of `router`",
        ),
        (
            "spans: {router: {attributes: {otel.name: true}}}",
            "`otel.name` needs a value",
        ),
        (
            "spans: {router: {attributes: {a: {subgraph_name: true}}}}",
            "`router` has no values of subgraph requests",
        ),
        (
            "spans: {router: {attributes: {a: {reqest_header: b}}}}",
            "unknown key `reqest_header`",
        ),
        (
            "spans: {router: {attributes: {a: {request_header: b, env: C}}}}",
            "expected exactly one source",
        ),
        (
            "spans: {router: {attributes: {a: {alias: b, env: C}}}}",
            "`alias` renames a standard attribute",
        ),
        (
            "spans: {router: {attributes: {a: {response_errors: '.[0]'}}}}",
            "expected a path such as `$`",
        ),
        (
            "spans: {subgraph: {attributes: {a: {response_cache_status: hit}}}}",
            "subgraph.attributes.a.response_cache_status` cannot be served",
        ),
    ]);
}

#[test]
fn instruments_that_telemetry_cannot_honor_are_refused() {
    refused(&[
        (
            "instruments: {router: {a: {type: counter, value: duration, unit: h}}}",
            "a duration is in `s`, `ms`, `us` or `ns`, found `h`",
        ),
        (
            "instruments: {router: {a: {value: unit}}}",
            "so it needs `type` (`counter` or `histogram`) and `value`",
        ),
        (
            "instruments: {router: {a: true}}",
            "`a` is not a standard instrument of `router`",
        ),
        (
            "instruments: {router: {a: {type: counter, value: event_unit}}}",
            "only `supergraph` has parts of responses",
        ),
        (
            "instruments: {router: {http.server.mine: {type: counter, value: unit}}}",
            "could be mistaken for a metric of the gateway",
        ),
        (
            "instruments: {router: {http.server.request.duration: {unit: ms}}}",
            "it can only have `attributes`",
        ),
        (
            "instruments: {router: {a.b: {type: counter, value: unit}}, subgraph: {a_b: {type: counter, value: unit}}}",
            "are one metric with two definitions",
        ),
        (
            "instruments: {router: {a: {type: counter, value: {list_length: value}}}}",
            "value.list_length` cannot be served",
        ),
    ]);
}

#[test]
fn events_that_telemetry_cannot_honor_are_refused() {
    refused(&[
        (
            "events: {router: {mine: info}}",
            "`mine` is not a standard event",
        ),
        (
            "events: {router: {mine: {level: info, on: request}}}",
            "the event `mine` needs `message`",
        ),
        (
            "events: {router: {mine: {level: info, message: a, on: request, condition: {eq: [{response_status: code}, 200]}}}}",
            "at the request, there is no response yet",
        ),
        (
            "events: {router: {mine: {level: info, message: a, on: request, attributes: {o: {operation_name: string}}}}}",
            "`router` does not know the operation at the request",
        ),
        (
            "events: {router: {mine: {level: info, message: a, on: request, attributes: {o: {query: depth}}}}}",
            "`router` does not know the operation at the request",
        ),
        (
            "events: {router: {request: {level: info, message: a}}}",
            "it can only have `level` and `condition`",
        ),
        ("events: {router: {request: debug}}", "expected `info`"),
        ("metrics: {}", "unknown key `metrics`"),
    ]);
}

#[test]
fn what_has_no_effect_is_listed() {
    let told = section(
        "spans: {mode: deprecated, http_client: {attributes: {a: {request_header: b}}}}, \
         instruments: {supergraph: {cost.actual: true}, graphql: {a: {type: counter, value: unit}}, cache: {a: true}}, \
         events: {connector: {a: info}}",
    );
    assert_snapshot!(told, @r"
    works: 1
    no effect: 1 telemetry.instrumentation.spans.mode
    no effect: 1 telemetry.instrumentation.spans.http_client
    no effect: 1 telemetry.instrumentation.instruments.graphql
    no effect: 1 telemetry.instrumentation.instruments.cache
    no effect: 1 telemetry.instrumentation.events.connector
    starts
    ");
}
