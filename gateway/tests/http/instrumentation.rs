//! Tests `telemetry.instrumentation` and `telemetry.exporters.logging`: spans, metrics and the log.

use rustix::process::Signal;
use serde_json::Value;

use crate::client::{Request, Response, post};
use crate::collector::{Collector, attribute};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub};

const NAMES: &str = r#"{"query":"query Names { locations { name } }","operationName":"Names"}"#;

/// The section of the public file `router.yaml` of apollosolutions/observability-workshop.
const PUBLIC: &str = "
    spans:
      default_attribute_requirement_level: recommended
      router:
        attributes:
          http.response.status_code: true
          error.type: true
          graphql.operation.name: {operation_name: string}
      supergraph:
        attributes:
          otel.status_code: {static: ERROR, condition: {eq: [true, {on_graphql_error: true}]}}
          otel.status_description: {response_errors: '$[0].extensions.code'}
      subgraph:
        attributes:
          subgraph.name: true
          error.message: {subgraph_response_errors: '$[0].message'}
    instruments:
      router:
        http.server.request.duration: {attributes: {http.response.status_code: true}}
      subgraph:
        http.client.request.duration:
          attributes:
            subgraph.name: true
            http.response.status_code: {subgraph_response_status: code}
      connector: {http.client.request.body.size: true}
";

/// A configuration with this section, and with traces and metrics for a collector.
fn config(section: &str, collector: Option<&Collector>) -> String {
    let exporters = collector.map(|collector| {
        let address = &collector.address;
        let otlp = format!(
            "otlp: {{enabled: true, protocol: http, endpoint: '{address}', batch_processor: {{scheduled_delay: 50ms}}}}"
        );
        format!("\n  exporters: {{tracing: {{{otlp}}}, metrics: {{{otlp}}}}}")
    });
    let exporters = exporters.unwrap_or_default();
    format!("telemetry:{exporters}\n  instrumentation:{section}\n")
}

fn ask(gateway: &Gateway, headers: &[(&str, &str)]) -> Response {
    let usual = post(NAMES);
    let headers = [usual.headers, headers].concat();
    gateway.send(&Request {
        headers: &headers,
        ..usual
    })
}

/// The value of a sample in `/metrics`.
fn metric(gateway: &Gateway, sample: &str) -> Option<String> {
    let metrics = gateway.ask_health("/metrics");
    let mut lines = metrics.text().lines();
    let found = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.map(str::to_owned)
}

#[test]
fn the_section_of_a_public_file_shapes_spans_and_metrics() {
    let planets = Stub::start(|_| {
        crate::stub::json(
            r#"{"data":null,"errors":[{"message":"the database is away","extensions":{"code":"AWAY"}}]}"#,
        )
    });
    let collector = Collector::start();
    let errors = "include_subgraph_errors: {all: true}\n";
    let text = config(PUBLIC, Some(&collector)) + errors;
    let gateway = Gateway::start(&planets.config(&text));
    assert_eq!(ask(&gateway, &[]).status, 200);

    let spans = collector.spans(4);
    let named = |name: &str| {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
    };
    let of = |span: &str, name: &str| attribute(&named(span).attributes, name);
    assert_eq!(
        of("POST /", "graphql.operation.name").as_deref(),
        Some("Names")
    );
    assert_eq!(
        of("POST /", "http.response.status_code").as_deref(),
        Some("200")
    );
    // The level `recommended` adds sizes and texts.
    let size = NAMES.len().to_string();
    assert_eq!(of("POST /", "http.request.body.size"), Some(size));
    let document = of("query", "graphql.document").unwrap();
    assert!(document.starts_with("query Names"), "{document}");
    let status = named("query").status.as_ref().unwrap();
    assert_eq!((status.code, status.message.as_str()), (2, "AWAY"));
    let message = of("POST /l", "error.message");
    assert_eq!(message.as_deref(), Some("the database is away"));
    let names = named("POST /").attributes.iter();
    let doubled = names.filter(|it| it.key == "graphql.operation.name");
    assert_eq!(doubled.count(), 1);

    let server = "http_server_request_duration_seconds_count{http_request_method=\"POST\",http_response_status_code=\"200\",http_route=\"/\",url_scheme=\"http\"}";
    assert_eq!(metric(&gateway, server).as_deref(), Some("1"));
    let client = "http_client_request_duration_seconds_count{subgraph_name=\"locations\",http_response_status_code=\"200\"}";
    assert_eq!(metric(&gateway, client).as_deref(), Some("1"));
    let metrics = gateway.ask_health("/metrics");
    let heads = metrics
        .text()
        .matches("# TYPE http_server_request_duration_seconds ");
    assert_eq!(heads.count(), 1, "{}", metrics.text());
    // The same series over OTLP, with OpenTelemetry's names.
    collector.wait(|got| {
        let metrics = got.metrics.iter().flatten();
        let mut found = metrics.filter(|it| it.name == "http.server.request.duration");
        found.any(|it| it.unit == "s" && format!("{it:?}").contains("http.route"))
    });
}

#[test]
fn spans_have_the_attributes_that_the_file_chooses() {
    let (planets, collector) = (Stub::planets(), Collector::start());
    let section = "
    spans:
      router:
        attributes:
          otel.name: {request_header: x-name}
          user_agent.original: false
          http.route: {alias: route}
          acme.user: {baggage: user, default: nobody}
          acme.stage: {env: STAGE}
          acme.absent: {request_header: x-absent}
          acme.only_errors: {static: 1, condition: {gt: [{response_status: code}, 399]}}
          trace_id: true
      supergraph:
        attributes:
          acme.kind: {operation_kind: string}
          graphql.operation.name: false
      subgraph:
        attributes:
          acme.query: {subgraph_query: string}
          acme.media: {subgraph_response_header: content-type}
          acme.operation: {supergraph_operation_name: string}
          http.response.status_code: {static: 7}
";
    let gateway = Setup::new(&planets.config(&config(section, Some(&collector))))
        .variable("STAGE", "test")
        .start();
    let headers = [
        ("x-name", "chosen"),
        ("user-agent", "secret"),
        ("baggage", "user=ada"),
    ];
    assert_eq!(ask(&gateway, &headers).status, 200);
    let spans = collector.spans(4);
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let of = |span: &str, name: &str| attribute(&named(span).attributes, name);
    for (span, name, value) in [
        ("chosen", "route", Some("/")),
        ("chosen", "http.route", None),
        ("chosen", "user_agent.original", None),
        ("chosen", "acme.user", Some("ada")),
        ("chosen", "acme.stage", Some("test")),
        ("chosen", "acme.absent", None),
        ("chosen", "acme.only_errors", None),
        ("query", "acme.kind", Some("query")),
        ("query", "graphql.operation.name", None),
        (
            "POST /l",
            "acme.query",
            Some("query Names__locations__0{locations{name}}"),
        ),
        ("POST /l", "acme.media", Some("application/json")),
        ("POST /l", "acme.operation", Some("Names")),
        ("POST /l", "http.response.status_code", Some("7")),
    ] {
        assert_eq!(of(span, name).as_deref(), value, "{span} {name}");
    }
    let trace = crate::collector::hex(&named("chosen").trace_id);
    assert_eq!(of("chosen", "trace_id"), Some(trace));
}

#[test]
fn custom_instruments_count_what_the_file_says() {
    let planets = Stub::planets();
    let section = "
    instruments:
      default_requirement_level: none
      router:
        http.server.response.body.size: true
        http.server.active_requests: true
        acme.requests:
          type: counter
          value: unit
          unit: '{request}'
          description: Requests of a tenant
          attributes: {tenant: {request_header: x-tenant}}
          condition: {exists: {request_header: x-tenant}}
        acme.time: {type: histogram, value: duration, unit: ms}
        acme.bytes: {type: counter, value: {request_header: x-bytes}, unit: By}
      supergraph:
        acme.items: {type: counter, value: {event_custom: {request_header: x-bytes}}, attributes: {operation: {operation_name: string}}}
      subgraph:
        acme.fetches: {type: counter, value: unit, attributes: {subgraph.name: true}}
";
    let gateway = Gateway::start(&planets.config(&config(section, None)));
    for (tenant, bytes) in [("a", "1.5"), ("a", "2"), ("b\"\n", "many")] {
        let tenant = tenant.trim();
        assert_eq!(
            ask(&gateway, &[("x-tenant", tenant), ("x-bytes", bytes)]).status,
            200
        );
    }
    assert_eq!(ask(&gateway, &[]).status, 200);
    for (sample, value) in [
        ("acme_requests_total{tenant=\"a\"}", Some("2.0")),
        ("acme_requests_total{tenant=\"b\\\"\"}", Some("1.0")),
        ("acme_bytes_total", Some("3.5")),
        ("acme_items_total{operation=\"Names\"}", Some("3.5")),
        (
            "acme_fetches_total{subgraph_name=\"locations\"}",
            Some("4.0"),
        ),
        ("acme_time_milliseconds_count", Some("4")),
        ("http_server_response_body_size_bytes_count", Some("4")),
        ("http_server_active_requests", Some("0.0")),
        // The level `none` turns the gateway's own durations off.
        ("http_server_request_duration_seconds_count", None),
    ] {
        assert_eq!(metric(&gateway, sample).as_deref(), value, "{sample}");
    }
    let metrics = gateway.ask_health("/metrics");
    assert!(
        metrics
            .text()
            .contains("# HELP acme_requests Requests of a tenant")
    );
}

/// A list counts as 10 objects before the operation runs, and has two objects then.
#[test]
fn costs_are_attributes_conditions_and_instruments() {
    let planets = Stub::planets();
    let collector = Collector::start();
    let section = "
    spans:
      supergraph:
        attributes:
          cost.estimated: true
          cost.result: {alias: acme.result}
          acme.left: {cost: delta}
    instruments:
      supergraph:
        cost.estimated: true
        cost.actual: {attributes: {cost.result: true, graphql.operation.name: true}}
        cost.delta: true
        acme.cheap: {type: counter, value: unit, condition: {lt: [{cost: actual}, 3]}}
";
    let demand = "demand_control: {enabled: true, mode: measure, strategy: {static_estimated: {list_size: 10, max: 100}}}";
    let keys = format!("{}{demand}\n", config(section, Some(&collector)));
    let gateway = Gateway::start(&planets.config(&keys));
    assert_eq!(ask(&gateway, &[]).status, 200);
    let labels = "{graphql_operation_name=\"Names\",cost_result=\"COST_OK\"}";
    for (sample, value) in [
        ("cost_estimated_sum".to_owned(), Some("10.0")),
        ("cost_estimated_count".to_owned(), Some("1")),
        (format!("cost_actual_sum{labels}"), Some("2.0")),
        // The gateway's own histogram has no labels.
        ("cost_actual_sum".to_owned(), None),
        ("cost_delta_sum".to_owned(), Some("8.0")),
        ("acme_cheap_total".to_owned(), Some("1.0")),
    ] {
        assert_eq!(metric(&gateway, &sample).as_deref(), value, "{sample}");
    }
    let spans = collector.spans(4);
    let span = spans.iter().find(|span| span.name == "query").unwrap();
    for (name, value) in [
        ("cost.estimated", "10"),
        ("acme.result", "COST_OK"),
        ("acme.left", "8"),
    ] {
        let found = attribute(&span.attributes, name);
        assert_eq!(found.as_deref(), Some(value), "{name}");
    }
}

/// The values of `query: aliases|depth|height|root_fields` at each service.
#[test]
fn sizes_of_operations_are_attributes_values_and_conditions() {
    const SIZES: &str =
        "{n: {query: aliases}, d: {query: depth}, h: {query: height}, r: {query: root_fields}}";
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|_| {});
    let collector = Collector::start();
    let section = format!(
        "
    spans:
      router: {{attributes: {SIZES}}}
      supergraph: {{attributes: {SIZES}}}
      subgraph: {{attributes: {{d: {{supergraph_query: depth}}, many: {{static: 1, condition: {{gt: [{{supergraph_query: aliases}}, 1]}}}}}}}}
    instruments:
      supergraph:
        acme.height: {{type: histogram, value: {{query: height}}}}
        acme.deep: {{type: counter, value: unit, condition: {{gt: [{{query: depth}}, 1]}}}}
        acme.wide: {{type: counter, value: unit, condition: {{gt: [{{query: depth}}, 2]}}}}
    events:
      supergraph:
        acme.planned: {{message: planned, level: info, on: request, attributes: {SIZES}}}
"
    );
    // The coprocessor is asked about operations with more than one root field.
    let asked = format!(
        "coprocessor: {{url: '{}', execution: {{request: {{condition: {{gt: [{{query: root_fields}}, 1]}}}}}}}}\n",
        coprocessor.url
    );
    let text = config(&section, Some(&collector)) + asked.as_str();
    let mut gateway = Gateway::start(&planets.config(&text));
    assert_eq!(ask(&gateway, &[]).status, 200);
    assert!(coprocessor.seen().is_empty());
    let line = gateway.wait_for("acme.planned");
    let sizes = serde_json::json!({"n": 0, "d": 2, "h": 2, "r": 1});
    assert_eq!(line["attributes"], sizes);
    let spans = collector.spans(4);
    let of = |span: &str, name: &str| {
        let span = spans.iter().find(|it| it.name == span).unwrap();
        attribute(&span.attributes, name)
    };
    for span in ["POST /", "query"] {
        for (name, value) in [("n", "0"), ("d", "2"), ("h", "2"), ("r", "1")] {
            assert_eq!(of(span, name).as_deref(), Some(value), "{span} {name}");
        }
    }
    assert_eq!(of("POST /l", "d").as_deref(), Some("2"));
    assert_eq!(of("POST /l", "many"), None);
    gateway.ask("{ a: locations { x: name } b: locations { y: name } }");
    assert_eq!(coprocessor.seen().len(), 1);
    for (sample, value) in [
        ("acme_height_sum", Some("6.0")),
        ("acme_height_count", Some("2")),
        ("acme_deep_total", Some("2.0")),
        ("acme_wide_total", None),
    ] {
        assert_eq!(metric(&gateway, sample).as_deref(), value, "{sample}");
    }
}

#[test]
fn the_counts_of_instruments_survive_a_reload() {
    let planets = Stub::planets();
    let section = "\n    instruments: {router: {acme.requests: {type: counter, value: unit}}}\n";
    let text = planets.config(&config(section, None));
    let mut gateway = Gateway::start(&text);
    assert_eq!(ask(&gateway, &[]).status, 200);
    gateway.signal(Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    assert_eq!(ask(&gateway, &[]).status, 200);
    assert_eq!(
        metric(&gateway, "acme_requests_total").as_deref(),
        Some("2.0")
    );
    let other = section.replace("acme.requests", "acme.others");
    let text = planets.config(&config(&other, None));
    std::fs::write(gateway.path("router.yaml"), text).unwrap();
    gateway.signal(Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    assert_eq!(ask(&gateway, &[]).status, 200);
    assert_eq!(metric(&gateway, "acme_requests_total"), None);
    assert_eq!(
        metric(&gateway, "acme_others_total").as_deref(),
        Some("1.0")
    );
}

#[test]
fn events_are_lines_of_the_log() {
    let broken = Stub::start(|seen| match seen.target.as_str() {
        "/l" => crate::stub::json(
            r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"x"}]}}"#,
        ),
        _ => Answer::Raw(b"what".to_vec()),
    });
    let section = "
    events:
      router:
        request: {level: info, condition: {eq: [{request_header: x-log}, 'on']}}
        response: off
        acme.done:
          message: a request is done
          level: warn
          on: response
          attributes: {status: {response_status: code}, url.path: true, who: {request_header: authorization}}
          condition: {exists: {request_header: x-log}}
      supergraph:
        request: info
      subgraph:
        response: {level: info, condition: {eq: [{subgraph_name: true}, locations]}}
        error: error
";
    let mut gateway = Gateway::start(&broken.config(&config(section, None)));
    assert_eq!(ask(&gateway, &[]).status, 200);
    let line = gateway.wait_for("\"subgraph.response\"");
    assert_eq!(line["attributes"]["subgraph.name"], "locations");
    let headers = [("x-log", "on"), ("authorization", "Bearer secret")];
    assert_eq!(ask(&gateway, &headers).status, 200);
    let line = gateway.wait_for("\"router.request\"");
    let attributes = &line["attributes"];
    assert_eq!(
        (&line["level"], &line["target"]),
        (&"info".into(), &"event".into())
    );
    assert_eq!(attributes["http.request.method"], "POST");
    assert_eq!(attributes["http.request.headers"]["x-log"], "on");
    assert_eq!(
        attributes["http.request.headers"]["authorization"],
        "***MASKED***"
    );
    assert_eq!(attributes["http.request.body"], NAMES);
    let line = gateway.wait_for("\"supergraph.request\"");
    assert_eq!(line["attributes"]["http.request.body"], NAMES);
    let line = gateway.wait_for("\"acme.done\"");
    assert_eq!(line["message"], "a request is done");
    assert_eq!(line["level"], "warn");
    assert_eq!(line["attributes"]["status"], 200);
    assert_eq!(line["attributes"]["url.path"], "/");
    assert_eq!(line["attributes"]["who"], "***MASKED***");
    assert!(
        gateway
            .ask("{ locations { name overallRating } }")
            .contains("errors")
    );
    let line = gateway.wait_for("\"subgraph.error\"");
    assert_eq!(line["attributes"]["subgraph.name"], "reviews");
    let error = line["attributes"]["error"].as_str().unwrap();
    assert!(!error.is_empty());
    gateway.signal(Signal::TERM);
    let (_, log) = gateway.wait();
    assert!(!log.contains("router.request"), "{log}");
    assert!(!log.contains("acme.done"), "{log}");
}

/// A list of sensitive headers without effect would write credentials to the log.
#[test]
fn the_file_chooses_the_headers_that_are_never_shown() {
    let planets = Stub::planets();
    let section = "
    events:
      router:
        request: info
        acme.done:
          message: done
          level: info
          on: response
          attributes:
            key: {request_header: x-key}
            shown: {request_header: x-key, redact: allow}
            plain: {request_header: x-plain}
            hidden: {request_header: x-plain, redact: mask}
            absent: {request_header: cookie, default: none}
          condition: {eq: [{request_header: x-key}, s3cret]}
      subgraph:
        request: info
        response: info
";
    let rules = "headers:
  all:
    request:
      operations: [{propagate: {matching: '^x-'}}]
      masking: {sensitive_headers: [X-Key]}
    response: {masking: {sensitive_headers: [Content-Type]}}
  subgraphs:
    locations: {request: {masking: {sensitive_headers: [x-plain]}}}
";
    let text = config(section, None) + rules;
    let mut gateway = Gateway::start(&planets.config(&text));
    let sent = [("x-key", "s3cret"), ("x-plain", "p"), ("x-api-key", "k3y")];
    assert_eq!(ask(&gateway, &sent).status, 200);
    let hidden = "***MASKED***";
    let line = gateway.wait_for("\"router.request\"");
    let headers = &line["attributes"]["http.request.headers"];
    assert_eq!(
        (
            &headers["x-key"],
            &headers["x-plain"],
            &headers["x-api-key"]
        ),
        (&hidden.into(), &"p".into(), &hidden.into())
    );
    let line = gateway.wait_for("\"subgraph.request\"");
    let headers = &line["attributes"]["http.request.headers"];
    assert_eq!(
        (
            &headers["x-key"],
            &headers["x-plain"],
            &headers["x-api-key"]
        ),
        (&hidden.into(), &hidden.into(), &hidden.into())
    );
    let line = gateway.wait_for("\"subgraph.response\"");
    let headers = &line["attributes"]["http.response.headers"];
    assert_eq!(headers["content-type"], hidden);
    // The condition compares the value itself.
    let line = gateway.wait_for("\"acme.done\"");
    for (name, value) in [
        ("key", hidden),
        ("shown", "s3cret"),
        ("plain", "p"),
        ("hidden", hidden),
        ("absent", "none"),
    ] {
        assert_eq!(line["attributes"][name], value, "{name}");
    }
    let seen = planets.seen();
    assert_eq!(seen[0].header("x-key"), Some("s3cret"));
}

#[test]
fn similar_lines_have_a_limit_that_the_file_chooses() {
    let planets = Stub::planets();
    let keys = "stdout: {format: json, rate_limit: {enabled: true, capacity: 2, interval: 1h}}";
    let setup = Setup::new(&planets.config(&logging(keys)));
    let gateway = setup.flag("--log").flag("request").start();
    for _ in 0..5 {
        assert_eq!(ask(&gateway, &[]).status, 200);
    }
    gateway.signal(Signal::TERM);
    let (_, log) = gateway.wait();
    assert_eq!(log.matches("\"target\":\"request\"").count(), 2, "{log}");
    assert!(log.contains("stopped"), "{log}");
}

/// A configuration with this form of the log.
fn logging(keys: &str) -> String {
    format!(
        "telemetry: {{exporters: {{logging: {{{keys}}}, tracing: {{experimental_response_trace_id: {{enabled: true}}}}}}}}\n"
    )
}

#[test]
fn the_log_has_the_form_of_the_file() {
    let planets = Stub::planets();
    let keys = "common: {service_name: front, resource: {a: 1}}, stdout: {format: {json: {display_timestamp: false, display_filename: true, display_trace_id: datadog}}}";
    let setup = Setup::new(&planets.config(&logging(keys)));
    let mut gateway = setup.flag("--log").flag("request").start();
    let response = ask(&gateway, &[]);
    let line = gateway.wait_for("\"target\":\"request\"");
    assert_eq!(line["level"], "INFO");
    assert!(line.get("timestamp").is_none() && line.get("time").is_none());
    assert!(line["filename"].as_str().unwrap().ends_with("account.rs"));
    assert_eq!(
        line["resource"],
        serde_json::json!({"a": 1, "service.name": "front"})
    );
    let id = response.header("apollo-trace-id").unwrap();
    let lower = u64::from_str_radix(&id[16..], 16).unwrap();
    assert_eq!(line["trace_id"], lower.to_string());
    assert_eq!(line["span_id"].as_str().unwrap().len(), 16);

    let keys = "common: {service_name: front}, stdout: {format: {text: {display_timestamp: false, display_service_name: true, display_target: true}}}";
    let setup = Setup::new(&planets.config(&logging(keys)));
    let gateway = setup.flag("--log").flag("request").start();
    assert_eq!(ask(&gateway, &[]).status, 200);
    gateway.signal(Signal::TERM);
    let (_, log) = gateway.wait();
    let mut lines = log.lines().filter(|line| line.contains("request:"));
    let line = lines.next().unwrap_or_else(|| panic!("{log}"));
    assert!(line.starts_with(" INFO front request: "), "{line}");
    assert!(line.contains(" status=200"), "{line}");
    assert!(!line.contains("trace_id"), "{line}");
}

#[test]
fn a_log_that_is_off_has_no_lines_after_the_start() {
    let planets = Stub::planets();
    let text = planets.config(&logging("stdout: {enabled: false}"));
    let gateway = Setup::new(&text).flag("--log").flag("debug").start();
    assert_eq!(ask(&gateway, &[]).status, 200);
    gateway.signal(Signal::TERM);
    let (status, log) = gateway.wait();
    assert!(status.success());
    assert!(!log.contains("stopping"), "{log}");
    // Without the key, the form is the gateway's own.
    let mut gateway = Gateway::start(&planets.config(""));
    gateway.signal(Signal::TERM);
    let line: Value = gateway.wait_for("stopp");
    assert!(line["time"].is_string());
}
