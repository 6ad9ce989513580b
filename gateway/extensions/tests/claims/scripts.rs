//! Rhai: each property, each helper function and each way to throw.

use std::fs;
use std::sync::Arc;

use gateway_extensions::{Exchange, ExtensionsWorker, Response, StageRequest, Step};
use gateway_telemetry::{Active, Tracer};
use http::StatusCode;
use serde_json::{Value, json};

use crate::stand::{CLIENT_QUERY, config, exchange, fetch, origin, plan, run, serve, worker};

pub(crate) struct Scripts(tempfile::TempDir);

impl Scripts {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    pub(crate) fn yaml(&self) -> String {
        format!(
            r#"{{"rhai": {{"scripts": "{}"}}}}"#,
            self.0.path().display()
        )
    }
}

pub(crate) fn scripted(main: &str, subgraph: &str) -> ExtensionsWorker {
    worker(&Scripts::new(&[("main.rhai", main)]).yaml(), subgraph)
}

pub(crate) fn request(headers: &[(&'static str, &str)]) -> StageRequest {
    StageRequest {
        method: http::Method::POST,
        uri: "http://h:8080/p?q=1".parse().unwrap(),
        headers: exchange(headers).client.headers.clone(),
        body: CLIENT_QUERY.into(),
    }
}

pub(crate) fn response() -> Response {
    Response {
        status: StatusCode::OK,
        headers: [(http::header::VARY, "origin".parse().unwrap())]
            .into_iter()
            .collect(),
        body:
            r#"{"data":{"b":2,"a":1},"errors":[{"message":"m","path":["a"]}],"extensions":{"e":1}}"#
                .into(),
        part: None,
    }
}

/// Runs `body` as a request callback of a service. Returns the request, the exchange, and the response of a
/// thrown error.
pub(crate) fn at_request(service: &str, body: &str) -> (StageRequest, Exchange, Option<Response>) {
    let main = format!("fn {service}(service) {{ service.map_request(|request| {{ {body} }}); }}");
    let worker = scripted(&main, "http://localhost:1");
    let mut exchange = exchange(&[]);
    exchange.query_plan = Some(plan());
    exchange.context.insert("number", json!(3));
    let mut request = request(&[("x-a", "1"), ("x-a", "2"), ("x-b", "b")]);
    let service = [&worker.router, &worker.supergraph, &worker.execution]
        .into_iter()
        .flatten()
        .next()
        .expect("the script registers a callback");
    let step = run(service.request(&exchange, &mut request));
    match step {
        Step::Continue => (request, exchange, None),
        Step::Break(response) => (request, exchange, Some(response)),
    }
}

/// Checks that `condition` is true inside a request callback.
#[track_caller]
pub(crate) fn holds(service: &str, condition: &str) {
    let body = format!("if !({condition}) {{ throw `not so: {{condition}}`; }}");
    let (_, _, thrown) = at_request(service, &body);
    assert!(thrown.is_none(), "{condition}: {thrown:?}");
}

/// The message of the error that `body` throws.
pub(crate) fn thrown(service: &str, body: &str) -> String {
    let (_, _, thrown) = at_request(service, body);
    let thrown = thrown.unwrap_or_else(|| panic!("{body} does not throw"));
    let body: Value = serde_json::from_slice(&thrown.body).unwrap();
    body["errors"][0]["message"].as_str().unwrap().to_owned()
}

pub(crate) const SERVICES: [&str; 3] =
    ["router_service", "supergraph_service", "execution_service"];

#[test]
fn every_property_of_a_request_can_be_read_where_it_exists() {
    for service in SERVICES {
        for condition in [
            "request.context[\"number\"] == 3",
            "request.id.len() == 36",
            "request.id == request.id",
            "request.headers[\"x-a\"] == \"1\"",
            "request.headers[\"X-A\"] == \"1\"",
            "request.method == \"post\"",
            "\"POST\" == request.method",
            "request.method != \"GET\"",
            "request.method.to_string() == \"POST\"",
            "request.uri.scheme == \"http\"",
            "request.uri.host == \"h\"",
            "request.uri.port == 8080",
            "request.uri.path == \"/p\"",
        ] {
            holds(service, condition);
        }
    }
    for service in &SERVICES[1..] {
        for condition in [
            "request.body.query == \"query Q{a}\"",
            "request.body.operation_name == \"Q\"",
            "request.body.variables.n == 1",
            "request.body.extensions.x[0].y == \"deep\"",
        ] {
            holds(service, condition);
        }
    }
    holds(
        "execution_service",
        "request.query_plan == \"QueryPlan {}\"",
    );
}

#[test]
fn properties_that_a_stage_does_not_have_are_unknown() {
    for (service, property) in [
        ("router_service", "body"),
        ("router_service", "query_plan"),
        ("router_service", "subgraph"),
        ("supergraph_service", "query_plan"),
        ("supergraph_service", "subgraph"),
        ("execution_service", "subgraph_request_id"),
    ] {
        let message = thrown(service, &format!("let x = request.{property};"));
        assert!(
            message.contains("unknown property"),
            "{service} {property}: {message}"
        );
    }
    for property in ["id = \"x\"", "method = \"GET\""] {
        thrown("router_service", &format!("request.{property};"));
    }
}

#[test]
fn headers_can_be_changed_in_every_way() {
    for (body, expected) in [
        (
            "request.headers[\"x-a\"] = \"3\";",
            vec!["x-a: 3", "x-b: b"],
        ),
        (
            "request.headers[\"x-b\"] = [\"c\", \"d\"];",
            vec!["x-a: 1", "x-a: 2", "x-b: b", "x-b: c", "x-b: d"],
        ),
        ("request.headers.remove(\"x-a\");", vec!["x-b: b"]),
        (
            "request.headers.source = \"rhai\";",
            vec!["source: rhai", "x-a: 1", "x-a: 2", "x-b: b"],
        ),
        (
            "let h = request.headers; h[\"y\"] = h.remove(\"x-b\");",
            vec!["x-a: 1", "x-a: 2", "y: b"],
        ),
        (
            "for pair in request.headers { if pair.name == \"x-b\" { request.headers[`y-${pair.value}`] = \"1\"; } }",
            vec!["x-a: 1", "x-a: 2", "x-b: b", "y-b: 1"],
        ),
    ] {
        let (request, _, thrown) = at_request("router_service", body);
        assert!(thrown.is_none(), "{body}: {thrown:?}");
        let mut lines: Vec<String> = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        assert_eq!(lines, expected, "{body}");
    }
    for condition in [
        "\"x-a\" in request.headers",
        "!(\"x-z\" in request.headers)",
        "request.headers.contains(\"x-a\")",
        "request.headers.values(\"x-a\") == [\"1\", \"2\"]",
        "request.headers.values(\"x-z\").len() == 0",
        "request.headers.to_string().contains(\"x-b: b\\n\")",
    ] {
        holds("router_service", condition);
    }
    assert_eq!(
        thrown("router_service", "request.headers[\"x-z\"]")
            .split('(')
            .next()
            .unwrap()
            .trim_end(),
        "rhai execution error: 'Runtime error"
    );
    thrown("router_service", "request.headers.remove(\"x-z\")");
    thrown("router_service", "request.headers[\"x z\"] = \"1\"");
    thrown("router_service", "request.headers[\"x\"] = \"a\\nb\"");
}

#[test]
fn the_context_holds_any_json() {
    let (_, exchange, thrown) = at_request(
        "supergraph_service",
        r##"
        let c = request.context;
        c["text"] = "t";
        c["map"] = #{ a: [1, 2.5, true, ()] };
        c.upsert("number", |current| current + 1);
        c.upsert("fresh", |current| if current == () { "new" } else { "old" });
        c.upsert("number", |current| throw "no");
        c["missing"] = c["nothing"];
        c["has"] = "text" in c;
        "##,
    );
    assert!(thrown.is_none(), "{thrown:?}");
    for (key, value) in [
        ("text", json!("t")),
        ("map", json!({"a": [1, 2.5, true, null]})),
        ("number", json!(4)),
        ("fresh", json!("new")),
        ("missing", json!(null)),
        ("has", json!(true)),
    ] {
        assert_eq!(exchange.context.get(key), Some(value), "{key}");
    }
}

#[test]
fn uris_keep_what_was_not_set() {
    for (body, uri) in [
        ("request.uri.path = \"/new\";", "http://h:8080/new?q=1"),
        ("request.uri.host = \"other\";", "http://other:8080/p?q=1"),
        ("request.uri.port = 99;", "http://h:99/p?q=1"),
        ("request.uri.scheme = \"https\";", "https://h:8080/p?q=1"),
    ] {
        let (request, _, thrown) = at_request("router_service", body);
        assert!(thrown.is_none(), "{body}: {thrown:?}");
        assert_eq!(request.uri.to_string(), uri, "{body}");
    }
}

#[test]
fn a_graphql_request_can_be_rewritten() {
    let (request, _, thrown) = at_request(
        "supergraph_service",
        r##"
        request.body.query = "query R{a}";
        request.body.operation_name = "R";
        request.body.variables["m"] = [1, #{ k: "v" }];
        request.body.extensions = #{};
        "##,
    );
    assert!(thrown.is_none(), "{thrown:?}");
    assert_eq!(
        request.body,
        r#"{"query":"query R{a}","operationName":"R","variables":{"m":[1,{"k":"v"}],"n":1}}"#
    );
    let (untouched, _, _) = at_request("supergraph_service", "let x = 1;");
    assert_eq!(untouched.body, CLIENT_QUERY);
}

/// Runs `body` as a response callback.
pub(crate) fn at_response(service: &str, body: &str) -> Response {
    let main =
        format!("fn {service}(service) {{ service.map_response(|response| {{ {body} }}); }}");
    let worker = scripted(&main, "http://localhost:1");
    let exchange = exchange(&[]);
    let mut response = response();
    let service = [&worker.router, &worker.supergraph, &worker.execution]
        .into_iter()
        .flatten()
        .next()
        .expect("the script registers a callback");
    run(service.response(&exchange, &mut response));
    response
}

#[test]
fn every_property_of_a_response_can_be_read_and_set_where_it_exists() {
    for service in SERVICES {
        for condition in [
            "response.id.len() == 36",
            "response.headers.vary == \"origin\"",
            "response.is_primary()",
            "response.headers_are_available()",
            "response.context[\"x\"] == ()",
        ] {
            let after = at_response(service, &format!("if !({condition}) {{ throw \"no\"; }}"));
            assert_eq!(after.status, StatusCode::OK, "{service}: {condition}");
        }
    }
    let after = at_response(
        "router_service",
        "response.headers.guid = `${response.status_code}`;",
    );
    assert_eq!(after.headers["guid"], "200");
    assert_eq!(after.body, response().body);
    for service in &SERVICES[1..] {
        let after = at_response(
            service,
            r##"
            response.body.data["c"] = response.body.data.a + response.body.data.b;
            response.body.errors += #{ message: "n", extensions: #{ code: "C" } };
            response.body.extensions["f"] = ();
            response.body.label = "l";
            "##,
        );
        assert_eq!(
            std::str::from_utf8(&after.body).unwrap(),
            r#"{"label":"l","data":{"a":1,"b":2,"c":3},"errors":[{"message":"m","path":["a"]},{"extensions":{"code":"C"},"message":"n"}],"extensions":{"e":1,"f":null}}"#
        );
    }
    for (service, property) in [
        ("router_service", "body"),
        ("supergraph_service", "status_code"),
    ] {
        let after = at_response(service, &format!("let x = response.{property};"));
        assert_eq!(
            after.status,
            StatusCode::INTERNAL_SERVER_ERROR,
            "{service} {property}"
        );
        assert!(after.headers.get("vary").is_none());
    }
    let after = at_response(
        "router_service",
        "response.status_code = status_code_from_int(201);",
    );
    assert_eq!(after.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[test]
fn ten_guids_are_ten_headers() {
    let after = at_response(
        "router_service",
        "for i in 1..=10 { response.headers[`GUID${i}`] = uuid_v4(); }",
    );
    let guids = (1..=10).map(|number| after.headers[format!("guid{number}")].clone());
    let different: std::collections::HashSet<_> = guids.collect();
    assert_eq!(different.len(), 10);
}

#[test]
fn statuses_compare_and_print() {
    for condition in [
        "response.status_code == status_code_from_int(200)",
        "response.status_code != status_code_from_int(201)",
        "response.status_code.to_string() == \"200\"",
    ] {
        let after = at_response(
            "router_service",
            &format!("if !({condition}) {{ throw \"no\"; }}"),
        );
        assert_eq!(after.status, StatusCode::OK, "{condition}");
    }
}

#[test]
fn every_helper_does_what_it_says() {
    for condition in [
        "uuid_v4().len() == 36 && uuid_v4() != uuid_v4()",
        "unix_now() > 1600000000 && unix_ms_now() / 1000 - unix_now() < 5",
        "urlencode(\"a b&ü~\") == \"a%20b%26%C3%BC~\"",
        "urldecode(\"a%20b%26\") == \"a b&\"",
        "base64::encode(\"a?>~\") == \"YT8+fg==\"",
        "base64::encode(\"a?>~\", base64::STANDARD) == \"YT8+fg==\"",
        "base64::encode(\"a?>~\", base64::STANDARD_NO_PAD) == \"YT8+fg\"",
        "base64::encode(\"a?>~\", base64::URL_SAFE) == \"YT8-fg==\"",
        "base64::encode(\"a?>~\", base64::URL_SAFE_NO_PAD) == \"YT8-fg\"",
        "base64::decode(\"YT8+fg==\") == \"a?>~\"",
        "base64::decode(\"YT8-fg\", base64::URL_SAFE_NO_PAD) == \"a?>~\"",
        "json::encode(#{a: [1, \"x\", ()]}) == `{\"a\":[1,\"x\",null]}`",
        "json::decode(`{\"a\":{\"b\":[true]}}`).a.b[0]",
        "sha256::digest(\"abc\") == \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"",
        "env::get(\"STAGE\") == \"test\"",
        "Router.APOLLO_SDL.contains(\"type Query\") && apollo_sdl == Router.APOLLO_SDL",
        "Router.APOLLO_START.elapsed >= 0.0 && apollo_start.elapsed >= 0.0",
        "Router.APOLLO_AUTHENTICATION_JWT_CLAIMS == \"apollo::authentication::jwt_claims\"",
        "Router.APOLLO_OPERATION_ID == \"apollo::supergraph::operation_id\"",
        "Router.APOLLO_PERSISTED_QUERY_ID_KEY == \"apollo::supergraph::persisted_query_id\"",
        "Router.APOLLO_COST_ESTIMATED_KEY == \"apollo::demand_control::estimated_cost\"",
        "status_code_from_int(404).to_string() == \"404\"",
    ] {
        holds("router_service", condition);
    }
    for body in [
        "print(1)",
        "log_info(#{a: 1})",
        "log_error(\"x\")",
        "log_warn(())",
        "log_debug(1.5)",
        "log_trace([])",
        "eprint(1)",
        "debug(1)",
    ] {
        let (_, _, thrown) = at_request("router_service", &format!("{body};"));
        assert!(thrown.is_none(), "{body}: {thrown:?}");
    }
    for (body, words) in [
        ("urldecode(\"%ff\")", "utf-8"),
        ("base64::decode(\"?\")", "rhai execution error"),
        ("base64::decode(\"/w==\")", "utf-8"),
        ("json::decode(\"{\")", "EOF"),
        ("env::get(\"NOTHING\")", "`NOTHING`"),
        ("traceid()", "trace unavailable"),
        ("status_code_from_int(1)", "100 to 999"),
    ] {
        let message = thrown("router_service", &format!("{body};"));
        assert!(message.contains(words), "{body}: {message}");
    }
}

#[test]
fn what_is_thrown_decides_status_and_body() {
    for (throw, status, body) in [
        (
            r##"#{status: 401, message: "who"}"##,
            401,
            json!({"errors": [{"message": "who"}]}),
        ),
        (
            r##"#{status: 418, body: #{data: #{a: 1}, errors: [#{message: "m"}]}}"##,
            418,
            json!({"data": {"a": 1}, "errors": [{"message": "m"}]}),
        ),
    ] {
        for service in SERVICES {
            let (_, _, response) = at_request(service, &format!("throw {throw};"));
            let response = response.unwrap();
            assert_eq!(response.status.as_u16(), status, "{throw}");
            assert_eq!(
                serde_json::from_slice::<Value>(&response.body).unwrap(),
                body
            );
            assert_eq!(response.headers["content-type"], "application/json");
        }
    }
    for (throw, status) in [
        ("\"boom\"", 500),
        ("42", 500),
        ("#{message: \"m\"}", 500),
        ("#{status: 99, message: \"m\"}", 500),
        ("#{status: 70000}", 500),
        ("#{status: 403}", 403),
    ] {
        let (_, _, response) = at_request("router_service", &format!("throw {throw};"));
        let response = response.unwrap();
        assert_eq!(response.status.as_u16(), status, "{throw}");
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        let message = body["errors"][0]["message"].as_str().unwrap();
        assert!(message.starts_with("rhai execution error: '"), "{message}");
        assert!(message.contains("line 1"), "{message}");
    }
    let after = at_response(
        "supergraph_service",
        "throw #{status: 503, message: \"m\"};",
    );
    assert_eq!(after.status.as_u16(), 503);
    assert!(after.headers.get("vary").is_none());
}

#[test]
fn callbacks_wrap_those_registered_before_them() {
    let main = r#"
        fn supergraph_service(service) {
            service.map_request(|r| { r.context["trail"] += "A"; });
            service.map_response(|r| { r.context["trail"] += "b"; });
            service.map_request(Fn("second"));
            service.map_response(|r| { r.context["trail"] += "d"; });
        }
        fn second(r) {
            r.context["trail"] += "C";
            if "stop" in r.headers { throw #{status: 400, message: "stop"}; }
        }
    "#;
    let worker = scripted(main, "http://localhost:1");
    let service = worker.supergraph.unwrap();
    for (headers, trail) in [(vec![], "CA"), (vec![("stop", "1")], "Cd")] {
        let exchange = exchange(&[]);
        exchange.context.insert("trail", json!(""));
        let _step = run(service.request(&exchange, &mut request(&headers)));
        assert_eq!(exchange.context.text("trail").unwrap(), trail);
    }
    let exchange = exchange(&[]);
    exchange.context.insert("trail", json!(""));
    run(service.response(&exchange, &mut response()));
    assert_eq!(exchange.context.text("trail").unwrap(), "bd");
}

#[test]
fn a_subgraph_request_is_changed_through_request_subgraph() {
    run(async {
        let origin = origin().await;
        let main = r##"
            fn subgraph_service(service, subgraph) {
                service.map_request(|request| {
                    request.subgraph.headers["source"] = `rhai ${subgraph}`;
                    request.subgraph.uri.path = "/changed";
                    request.subgraph.body.variables = #{ id: request.subgraph_request_id.len() };
                    request.subgraph.headers["client"] = request.headers["x-a"];
                    request.subgraph.headers["operation"] = request.body.operation_name;
                    request.headers["ignored"] = "1";
                });
                service.map_response(|response| {
                    response.body.data["status"] = response.status_code.to_string();
                    response.body.data["kind"] = response.headers["content-type"];
                });
            }
        "##;
        let worker = scripted(main, &origin.url);
        let outcome = fetch(&worker, &exchange(&[("x-a", "1")])).await;
        assert_eq!(
            outcome.body,
            r#"{"data":{"a":1,"kind":"application/json","status":"200"}}"#
        );
        let seen = origin.last();
        assert_eq!(seen.path, "/changed");
        assert_eq!(seen.all("source"), ["rhai one"]);
        assert_eq!(seen.all("client"), ["1"]);
        assert_eq!(seen.all("operation"), ["Q"]);
        assert_eq!(seen.all("ignored"), [""; 0]);
        assert_eq!(seen.json()["variables"], json!({"id": 36}));
    });
}

#[test]
fn a_throw_at_a_subgraph_is_the_subgraphs_answer() {
    run(async {
        let origin = origin().await;
        let main = r##"fn subgraph_service(service, subgraph) {
            service.map_request(|request| { request.headers = request.headers; });
        }"##;
        let outcome = fetch(&scripted(main, &origin.url), &exchange(&[])).await;
        assert_eq!(outcome.status, Some(StatusCode::INTERNAL_SERVER_ERROR));
        let main = r##"fn subgraph_service(service, subgraph) {
            service.map_request(|request| { throw #{status: 403, message: "no"}; });
        }"##;
        let outcome = fetch(&scripted(main, &origin.url), &exchange(&[])).await;
        assert_eq!(outcome.body, r#"{"errors":[{"message":"no"}]}"#);
        assert!(origin.seen().is_empty());
    });
}

#[test]
fn response_callbacks_see_problems_of_the_fetch_as_errors() {
    run(async {
        let origin = serve(|_| Some(crate::stand::json("nonsense"))).await;
        let main = r##"fn subgraph_service(service, subgraph) {
            service.map_response(|response| {
                response.body.extensions = #{ code: response.body.errors[0].extensions.code };
            });
        }"##;
        let outcome = fetch(&scripted(main, &origin.url), &exchange(&[])).await;
        let body: Value = serde_json::from_slice(&outcome.body).unwrap();
        assert_eq!(body["extensions"]["code"], "SUBREQUEST_MALFORMED_RESPONSE");
    });
}

/// The trace of a request whose client began it with this id.
fn traced(id: &str) -> Active {
    let yaml = "telemetry: {exporters: {tracing: {propagation: {trace_context: true}}}}";
    let config = config(yaml).telemetry.exporters.tracing;
    let tracer = Tracer::new(&config, &Arc::default()).expect("traces are forwarded");
    let mut headers = http::HeaderMap::new();
    let parent = format!("00-{id}-00f067aa0ba902b7-01");
    headers.insert("traceparent", parent.parse().expect("a header value"));
    Arc::new(tracer).begin(&headers).expect("a trace").0
}

#[test]
fn the_trace_id_is_that_of_the_request() {
    let main = "fn router_service(s) { s.map_request(|r| { r.context[\"n\"] = traceid().to_string(); }); }";
    let worker = scripted(main, "http://localhost:1");
    let (_, thrown) = routed(&worker);
    let body = String::from_utf8_lossy(&thrown.expect("no request is traced").body).into_owned();
    assert!(body.contains("trace unavailable"), "{body}");
    let mut exchange = exchange(&[]);
    exchange.trace = Some(traced("4bf92f3577b34da6a3ce929d0e0e4736"));
    let service = worker.router.as_ref().expect("the script has a callback");
    let step = run(service.request(&exchange, &mut request(&[])));
    assert!(matches!(step, Step::Continue), "{step:?}");
    let id = exchange.context.text("n");
    assert_eq!(id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
}

#[test]
fn contexts_and_bodies_print_their_contents() {
    holds(
        "supergraph_service",
        "request.body.to_string() == `{\"query\":\"query Q{a}\",\"operationName\":\"Q\",\"variables\":{\"n\":1},\"extensions\":{\"x\":[{\"y\":\"deep\"}]}}`",
    );
    holds(
        "supergraph_service",
        "`${request.context}` == `{\"number\":3}`",
    );
    let main =
        "fn supergraph_service(s) { s.map_response(|r| { r.context[\"n\"] = `${r.body}`; }); }";
    let worker = scripted(main, "http://localhost:1");
    let exchange = exchange(&[]);
    let service = worker.supergraph.expect("the script has a callback");
    let mut response = response();
    let before = response.body.clone();
    run(service.response(&exchange, &mut response));
    let printed = exchange.context.text("n").expect("it is printed");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let before: Value = serde_json::from_slice(&before).expect("JSON");
    assert_eq!(printed, before);
}

/// Runs the router stage of a script once. Returns the context, and the response of a thrown error.
pub(crate) fn routed(worker: &ExtensionsWorker) -> (Exchange, Option<Response>) {
    let exchange = exchange(&[]);
    let service = worker.router.as_ref().expect("the script has a callback");
    match run(service.request(&exchange, &mut request(&[]))) {
        Step::Continue => (exchange, None),
        Step::Break(response) => (exchange, Some(response)),
    }
}
