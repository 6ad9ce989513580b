//! Tests actions through the whole gateway: requests to the handler, and the treatment of its response.

use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::remote_schemas::quiet_address;
use crate::stub::{self, Answer, Seen, Stub};

const TYPES: &str = "
types: |
  scalar uuid
  type product { id: uuid! name: String parts: [product!] }
  input wish { name: String! tags: [String!] of: ID }
";

/// Trusts clients that send session headers.
const TRUSTED: &str = "session_variables: {trust_clients: true}\n";

/// A gateway with one query action `product` that has these additional keys.
fn with_action(handler: &str, keys: &str) -> Gateway {
    let action = format!(
        "  - {{name: product, type: query, arguments: [{{name: id, type: ID}}, {{name: wish, type: wish}}], output_type: product, handler: '{handler}', {keys}}}"
    );
    Gateway::merged(&format!("{TYPES}{TRUSTED}actions:\n{action}\n"))
}

/// Checks that the log line with this text is short, although the request is long.
fn short_line(gateway: &mut Gateway, part: &str) {
    let line = gateway.wait_for(part);
    let message = line["message"].as_str().unwrap();
    assert!(message.len() < 3_000, "{} bytes", message.len());
    assert!(message.contains('…'), "{message}");
}

fn answering(body: &'static str) -> impl Fn(&Seen) -> Answer + Send + Sync {
    move |_| stub::json(body)
}

fn error(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["data"], Value::Null, "{answer}");
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1, "{answer}");
    answer["errors"][0].clone()
}

#[test]
fn a_handler_gets_the_payload_and_the_client_what_it_selected() {
    let handler = Stub::start(answering(
        r#"{"id":"1","name":"A\u00e9","more":1,"parts":[{"id":2.50,"name":null}]}"#,
    ));
    let gateway = with_action(&handler.url, "");
    let query = "query Q($n: String!, $of: ID, $no: [String!]) { p: product(id: 7, wish: {name: $n, of: $of, tags: $no}) { n: name ...F __typename } } fragment F on product { parts { id i: id name } }";
    let body = json!({"query": query, "variables": {"n": "x", "of": 3}}).to_string();
    let request = Request {
        headers: &[
            ("content-type", "application/json"),
            ("X-Hasura-Role", "user"),
            ("x-own", "1"),
        ],
        ..post(&body)
    };
    assert_eq!(
        gateway.send(&request).text(),
        r#"{"data":{"p":{"n":"Aé","parts":[{"id":2.50,"i":2.50,"name":null}],"__typename":"product"}}}"#
    );
    let seen = handler.only();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("x-own"), None);
    assert_eq!(
        seen.json(),
        json!({
            "action": {"name": "product"},
            "input": {"id": "7", "wish": {"name": "x", "of": "3"}},
            "session_variables": {"x-hasura-role": "user"},
            "request_query": query,
        })
    );
}

#[test]
fn transforms_make_the_request_and_read_the_answer() {
    let handler = Stub::start(answering(
        r#"{"product":{"id":"1","name":"A"},"status":"ok"}"#,
    ));
    let keys = r#"headers: [{name: x-key, value: k}], request_transform: {version: 2, template_engine: Kriti, method: GET, url: '{{$base_url}}/api/{{escapeUri $body.input.id}}', query_params: {name: '{{$body.input.wish?.name}}', none: '{{$body.input?.nothing}}', role: "{{$session_variables['x-hasura-role']}}"}, body: {action: remove}, request_headers: {remove_headers: [content-type], add_headers: {x-id: 'no {{$body.input.id}}'}}}, response_transform: {version: 2, body: {action: transform, template: '{{ if $response.status == 200 }} {{$body.product}} {{ else }} null {{ end }}'}}"#;
    let gateway = with_action(&format!("{}/base", handler.url), keys);
    assert_eq!(
        gateway.ask(r#"{ product(id: "a b/c", wish: {name: "x&y"}) { id } }"#),
        r#"{"data":{"product":{"id":"1"}}}"#
    );
    let seen = handler.only();
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.target, "/base/api/a%20b%2Fc?name=x%26y&role=admin");
    assert_eq!(seen.header("content-type"), None);
    assert_eq!(seen.header("x-id"), Some("no a b/c"));
    assert_eq!(seen.header("x-key"), Some("k"));
    assert_eq!(seen.body, "");
}

#[test]
fn bodies_are_json_or_forms_as_the_transform_says() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    for (body, sent, media) in [
        (
            "{action: transform, template: '{\"n\": {{$body.input.id}}, \"q\": \"<{{$body.action.name}}>\"}'}",
            r#"{"n":"5","q":"<product>"}"#,
            "application/json",
        ),
        (
            "{action: x_www_form_urlencoded, form_template: {a: '{{$body.input.id}} &', b: '{{$body.input?.x}}'}}",
            "a=5+%26",
            "application/x-www-form-urlencoded",
        ),
    ] {
        let before = handler.seen().len();
        let gateway = with_action(
            &handler.url,
            &format!("request_transform: {{version: 2, body: {body}}}"),
        );
        assert_eq!(
            gateway.ask("{ product(id: 5) { id } }"),
            r#"{"data":{"product":{"id":"1"}}}"#
        );
        let seen = handler.seen();
        assert_eq!(seen[before].body, sent);
        assert_eq!(seen[before].header("content-type"), Some(media));
    }
}

#[test]
fn a_template_that_fails_is_an_error_and_nobody_is_asked() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    let keys = "request_transform: {version: 2, url: '{{$base_url}}/{{$body.input.id}}'}";
    let gateway = with_action(&handler.url, keys);
    let expected = json!({"message": "Request Transformation Failed", "extensions": {"code": "unexpected", "path": "$.selectionSet.product"}});
    assert_eq!(error(&gateway.ask("{ product { id } }")), expected);
    assert!(handler.seen().is_empty());
    let keys = "response_transform: {version: 2, body: {action: transform, template: '{{$body.product}}'}}";
    let gateway = with_action(&handler.url, keys);
    assert_eq!(
        error(&gateway.ask("{ product { id } }"))["message"],
        "Response Transformation Failed"
    );
    // With `--dev`, the error contains the reason.
    let config = format!(
        "{TYPES}actions: [{{name: product, type: query, output_type: product, handler: '{}', {keys}}}]",
        handler.url
    );
    let gateway = Setup::merged(&config).flag("--dev").start();
    let told = error(&gateway.ask("{ product { id } }"));
    let reason = told["extensions"]["internal"].as_str().unwrap();
    assert!(reason.contains("`$body` has no \"product\""), "{reason}");
}

#[test]
fn answers_of_another_form_are_errors() {
    for (answer, message) in [
        ("{", "not a valid json response from webhook"),
        (
            "[]",
            "expecting object for action webhook response but got array",
        ),
        (
            "\"x\"",
            "expecting object for action webhook response but got string",
        ),
        (
            "{\"name\":\"A\"}",
            "field \"id\" expected in webhook response, but not found",
        ),
        ("{\"id\":null}", "expecting not null value for field \"id\""),
        (
            "{\"id\":1,\"parts\":{}}",
            "expecting array for action webhook response but got object",
        ),
        (
            "{\"id\":1,\"parts\":[null]}",
            "expecting not null value for field \"parts\"",
        ),
    ] {
        let handler = Stub::start(answering(answer));
        let gateway = with_action(&handler.url, "");
        let told = error(&gateway.ask("{ product { id parts { id } } }"));
        assert_eq!(
            told,
            json!({"message": message, "extensions": {"code": "unexpected", "path": "$.selectionSet.product"}})
        );
    }
    let handler = Stub::start(answering("null"));
    let gateway = with_action(&handler.url, "");
    assert_eq!(
        gateway.ask("{ product { id } }"),
        r#"{"data":{"product":null}}"#
    );
}

#[test]
fn refusals_of_a_handler_become_errors() {
    let unexpected = |message: &str| json!({"message": message, "extensions": {"code": "unexpected", "path": "$.selectionSet.product"}});
    for (status, body, expected) in [
        (
            400,
            r#"{"message":"no"}"#,
            json!({"message": "no", "extensions": {"path": "$", "code": "unexpected"}}),
        ),
        (
            404,
            r#"{"message":"no","code":"gone"}"#,
            json!({"message": "no", "extensions": {"path": "$", "code": "gone"}}),
        ),
        (
            422,
            r#"{"message":"no","code":"x","extensions":{"a":[1]}}"#,
            json!({"message": "no", "extensions": {"a": [1]}}),
        ),
        (400, r#"{"error":"no"}"#, unexpected("internal error")),
        (
            400,
            "no",
            unexpected("not a valid json response from webhook"),
        ),
        (500, r#"{"message":"no"}"#, unexpected("internal error")),
        (302, "", unexpected("internal error")),
    ] {
        let handler =
            Stub::start(move |_| Answer::With(status, Some("application/json"), body.into()));
        let gateway = with_action(&handler.url, "");
        assert_eq!(
            error(&gateway.ask("{ product { id } }")),
            expected,
            "{status} {body}"
        );
    }
}

#[test]
fn a_handler_that_is_not_there_or_too_slow_is_an_error() {
    let expected = json!({"message": "http exception when calling webhook", "extensions": {"code": "unexpected", "path": "$.selectionSet.product"}});
    let gateway = with_action(&format!("http://{}", quiet_address()), "");
    assert_eq!(error(&gateway.ask("{ product { id } }")), expected);
    let slow = Stub::start(|_| Answer::Hang);
    let gateway = with_action(&slow.url, "timeout: 100ms");
    assert_eq!(error(&gateway.ask("{ product { id } }")), expected);
}

#[test]
fn the_clients_headers_reach_a_handler_only_when_forwarded() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    for (keys, expected) in [("", None), ("forward_client_headers: true", Some("1"))] {
        let gateway = with_action(&handler.url, keys);
        let request = Request {
            headers: &[("content-type", "application/json"), ("x-own", "1")],
            ..post(r#"{"query":"{ product { id } }"}"#)
        };
        assert_eq!(gateway.send(&request).status, 200);
        let seen = handler.seen();
        assert_eq!(seen.last().unwrap().header("x-own"), expected);
    }
}

/// As in Hasura, the list replaces the default list, in which `user-agent` is.
#[test]
fn ignored_client_headers_stay_away_from_a_handler() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    let ignoring = "forward_client_headers: true, ignored_client_headers: [authorization, X-Own]";
    let gateway = with_action(&handler.url, ignoring);
    let request = Request {
        headers: &[
            ("content-type", "application/json"),
            ("authorization", "secret"),
            ("x-own", "1"),
            ("x-other", "2"),
            ("user-agent", "curl"),
            ("accept-encoding", "gzip"),
        ],
        ..post(r#"{"query":"{ product { id } }"}"#)
    };
    assert_eq!(gateway.send(&request).status, 200);
    let seen = handler.seen();
    let header = |name| seen.last().unwrap().header(name);
    assert_eq!(header("authorization"), None);
    assert_eq!(header("x-own"), None);
    assert_eq!(header("x-other"), Some("2"));
    assert_eq!(header("user-agent"), Some("curl"));
    assert_ne!(header("accept-encoding"), Some("gzip"));
}

#[test]
fn one_template_writes_the_whole_query_of_a_handler() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    for (template, target) in [
        ("a={{$body.input.id}}&b=2", "/?a=7&b=2"),
        ("?a=two words", "/?a=two+words"),
        ("", "/"),
    ] {
        let keys = format!("request_transform: {{version: 2, query_params: \"{template}\"}}");
        let gateway = with_action(&handler.url, &keys);
        let _ = gateway.ask("{ product(id: 7) { id } }");
        let seen = handler.seen();
        assert_eq!(seen.last().unwrap().target, target);
    }
}

#[test]
fn actions_of_a_mutation_run_one_after_the_other() {
    let handler = Stub::start(|seen| match seen.json()["action"]["name"].as_str() {
        Some("second") => Answer::With(400, None, br#"{"message":"stop"}"#.to_vec()),
        _ => stub::json("1"),
    });
    let url = &handler.url;
    let action = |name| format!("{{name: {name}, output_type: Int!, handler: '{url}'}}");
    let (first, second, third) = (action("first"), action("second"), action("third"));
    let gateway = Gateway::merged(&format!("actions: [{first}, {second}, {third}]"));
    assert_eq!(
        gateway.ask("mutation { b: first a: first }"),
        r#"{"data":{"b":1,"a":1}}"#
    );
    assert_eq!(
        error(&gateway.ask("mutation { first second third }"))["message"],
        "stop"
    );
    let names: Vec<Value> = handler
        .seen()
        .iter()
        .map(|it| it.json()["action"]["name"].clone())
        .collect();
    assert_eq!(names, ["first", "first", "first", "second"]);
}

#[test]
fn a_chain_of_two_gateways_tells_the_same_data_and_the_same_errors() {
    let leaf = Stub::start(|seen| match seen.target.as_str() {
        "/api/rest/product?limit=2" => {
            stub::json(r#"{"product":[{"id":"1","name":"A"},{"id":"2","name":"B"}]}"#)
        }
        _ => Answer::Raw(Vec::new()),
    });
    let examples = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("examples")
            .join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let internal = Setup::merged(&examples("internal.yaml"))
        .variable("PRODUCTS_URL", &leaf.url)
        .start();
    let url = format!("http://{}/v1/graphql", internal.address);
    let root = Setup::merged(&format!("supergraph: {{path: /v1/graphql}}\nremote_schemas: [{{name: product, url: '{url}', forward_client_headers: true}}]"))
        .start();
    let ask = |gateway: &Gateway, limit: u8| {
        let query = json!({"query": "query ($n: Int) { p: product(limit: $n) { ...F } } fragment F on product { id name }", "variables": {"n": limit}}).to_string();
        let request = Request {
            target: "/v1/graphql",
            ..post(&query)
        };
        gateway.send(&request).text().to_owned()
    };
    let data = r#"{"data":{"p":[{"id":"1","name":"A"},{"id":"2","name":"B"}]}}"#;
    assert_eq!(ask(&internal, 2), data);
    assert_eq!(ask(&root, 2), data);
    assert_eq!(
        error(&ask(&internal, 3))["message"],
        "http exception when calling webhook"
    );
    assert_eq!(ask(&root, 3), ask(&internal, 3));
    let rest = internal.send(&crate::client::get("/api/rest/products/2"));
    assert_eq!(
        rest.text(),
        r#"{"product":[{"id":"1","name":"A"},{"id":"2","name":"B"}]}"#
    );
    drop(internal);
    let told = error(&ask(&root, 2));
    assert_eq!(told["extensions"]["code"], "remote-schema-error");
    assert_eq!(
        told["message"],
        "HTTP exception occurred while sending the request to `product`"
    );
}

#[test]
fn the_size_of_an_answer_is_limited_as_that_of_a_subgraph() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    let url = &handler.url;
    let start = |size: &str| {
        Gateway::merged(&format!(
            "{TYPES}{TRUSTED}limits: {{subgraph: {{subgraphs: {{product: {{http_max_response_size: {size}}}}}}}}}\nactions: [{{name: product, type: query, output_type: product, handler: '{url}'}}]\n"
        ))
    };
    let query = "{ product { id } }";
    let expected = r#"{"data":{"product":{"id":"1"}}}"#;
    assert_eq!(start("10B").ask(query), expected);
    let refused = error(&start("9B").ask(query));
    assert_eq!(refused["message"], "http exception when calling webhook");
}

#[test]
fn what_a_client_has_sent_is_shortened_in_the_log_where_it_is_part_of_an_error() {
    let long = "x".repeat(100_000);
    let keys = "request_transform: {version: 2, template_engine: Kriti, url: 'http://[{{$body.input.id}}'}";
    let mut gateway = with_action("http://127.0.0.1:9", keys);
    error(&gateway.ask(&format!(r#"{{ product(id: "{long}") {{ id }} }}"#)));
    short_line(&mut gateway, "is not a URL");

    let script = r#"fn supergraph_service(service) { service.map_request(|request| throw request.body.query); }"#;
    let config = Stub::planets().config("rhai: {scripts: rhai}");
    let mut gateway = Setup::new(&config).file("rhai/main.rhai", script).start();
    let query = format!("{{ locations {{ name }} }} # {long}");
    let answer = gateway.send(&post(&json!({ "query": query }).to_string()));
    assert_eq!(answer.status, 500);
    short_line(&mut gateway, "rhai at");
}

/// A handler must not be called for a role that its action does not name, not even in a part of a mutation.
#[test]
fn only_the_named_roles_may_call_an_action() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    let url = &handler.url;
    let gateway = Gateway::merged(&format!(
        "{TYPES}{TRUSTED}actions:\n  \
         - {{name: open, type: query, output_type: product, handler: '{url}'}}\n  \
         - {{name: users, type: query, output_type: product, handler: '{url}', permissions: [{{role: user}}]}}\n  \
         - {{name: change, output_type: product, handler: '{url}', permissions: [{{role: user}}]}}\n  \
         - {{name: drop, output_type: product, handler: '{url}', permissions: []}}\n"
    ));
    let ask = |role: &'static str, query: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("x-hasura-role", role),
        ];
        let body = json!({ "query": query }).to_string();
        let request = Request {
            headers: &headers,
            ..post(&body)
        };
        gateway.send(&request).text().to_owned()
    };
    for (role, query, is_allowed) in [
        ("user", "{ users { id } }", true),
        ("admin", "{ users { id } }", true),
        ("anonymous", "{ users { id } }", false),
        ("users", "{ users { id } }", false),
        ("anonymous", "{ open { id } }", true),
        ("anonymous", "{ open { id } users { id } }", false),
        (
            "anonymous",
            "{ open { id } users @include(if: false) { id } }",
            true,
        ),
        ("user", "mutation { change { id } }", true),
        ("user", "mutation { change { id } drop { id } }", false),
        ("admin", "mutation { change { id } drop { id } }", true),
    ] {
        let before = handler.seen().len();
        let answer = ask(role, query);
        assert_eq!(
            !answer.contains("errors"),
            is_allowed,
            "{role} {query}: {answer}"
        );
        assert_eq!(handler.seen().len() > before, is_allowed, "{role} {query}");
    }
    let refused = error(&ask("anonymous", "{ me: users { id } }"));
    assert_eq!(
        refused["message"],
        "field 'users' not found in type: 'query_root'"
    );
    assert_eq!(refused["extensions"]["code"], "validation-failed");
}

/// A handler must not receive another number than the client has written.
#[test]
fn a_number_that_a_float_cannot_hold_is_refused_by_name() {
    let handler = Stub::start(answering(r#"{"id":"1"}"#));
    let gateway = Gateway::merged(&format!(
        "types: 'scalar numeric type product {{ id: ID }}'\nactions: [{{name: pay, type: query, arguments: [{{name: sum, type: numeric}}], output_type: product, handler: '{}'}}]\n",
        handler.url
    ));
    for number in ["1e400", "12345678901234567.89", "18446744073709551616"] {
        let answer = gateway.ask(&format!("{{ pay(sum: {number}) {{ id }} }}"));
        let refused = error(&answer);
        assert_eq!(
            refused["extensions"]["code"], "validation-failed",
            "{answer}"
        );
        assert!(answer.contains(number), "{answer}");
    }
    let infinite =
        r#"{"query":"query($s: numeric) { pay(sum: $s) { id } }","variables":{"s":1e400}}"#;
    let answer = gateway.send(&post(infinite));
    let text = answer.text();
    assert!(text.contains("send it as a string"), "{text}");
    assert!(handler.seen().is_empty());
    gateway.ask("{ pay(sum: 12345678901234.56) { id } }");
    assert_eq!(
        handler.only().json()["input"]["sum"].to_string(),
        "12345678901234.56"
    );
}

const INPUTS: &str = "
types: |
  scalar jsonb
  type answer { done: Boolean }
  enum color { RED BLUE }
  input inner { name: String = \"dflt\" ids: [ID!] colors: [color!]! = RED }
  input filter { ids: [Int!] inner: inner all: [[inner!]] any: jsonb limit: Int! = 10 }
";

/// Name and type of an argument, a literal, the same value in a variable, and the value for the handler.
const COERCED: [[&str; 5]; 10] = [
    ["l", "[Int!]", "5", "5", "[5]"],
    ["l", "[Int!]", "null", "null", "null"],
    ["l", "[Int!]", "[1, 2]", "[1,2.0]", "[1,2]"],
    ["id", "ID", "7", "7", "\"7\""],
    ["n", "Int", "3", "3.0", "3"],
    [
        "f",
        "filter",
        "{ids: 5}",
        r#"{"ids":5}"#,
        r#"{"ids":[5],"limit":10}"#,
    ],
    [
        "f",
        "filter",
        "{inner: {}}",
        r#"{"inner":{}}"#,
        r#"{"inner":{"name":"dflt","colors":["RED"]},"limit":10}"#,
    ],
    [
        "f",
        "filter",
        "{limit: 1, inner: {name: null, ids: 8, colors: BLUE}}",
        r#"{"limit":1,"inner":{"name":null,"ids":8,"colors":"BLUE"}}"#,
        r#"{"limit":1,"inner":{"name":null,"ids":["8"],"colors":["BLUE"]}}"#,
    ],
    [
        "f",
        "filter",
        "{all: {}, any: {ids: 5}}",
        r#"{"all":{},"any":{"ids":5}}"#,
        r#"{"all":[[{"name":"dflt","colors":["RED"]}]],"any":{"ids":5},"limit":10}"#,
    ],
    [
        "x",
        "jsonb",
        "{l: 5, id: [7]}",
        r#"{"l":5,"id":[7]}"#,
        r#"{"l":5,"id":[7]}"#,
    ],
];

/// The specification, sections 3.10 to 3.12. A handler that is no GraphQL server coerces nothing itself.
#[test]
fn inputs_are_coerced_to_their_types_in_literals_and_in_variables() {
    let handler = Stub::start(answering(r#"{"done":true}"#));
    let gateway = Gateway::merged(&format!(
        "{INPUTS}actions:\n  - {{name: take, type: query, arguments: [{{name: l, type: '[Int!]'}}, {{name: f, type: filter}}, {{name: id, type: ID}}, {{name: n, type: Int}}, {{name: x, type: jsonb}}], output_type: answer, handler: '{}'}}\n",
        handler.url
    ));
    let input = || {
        let seen = handler.seen();
        seen.last().expect("a request").json()["input"].clone()
    };
    for [name, kind, literal, variable, expected] in COERCED {
        let expected: Value = serde_json::from_str(&format!("{{\"{name}\":{expected}}}")).unwrap();
        let done = gateway.ask(&format!("{{ take({name}: {literal}) {{ done }} }}"));
        assert_eq!(done, r#"{"data":{"take":{"done":true}}}"#, "{literal}");
        assert_eq!(input(), expected, "{literal}");
        let ask = |query: &str, variables: &str| {
            let query = serde_json::to_string(query).unwrap();
            let sent = gateway.send(&post(&format!(
                "{{\"query\":{query},\"variables\":{variables}}}"
            )));
            assert_eq!(sent.text(), r#"{"data":{"take":{"done":true}}}"#, "{query}");
        };
        let query = format!("query($v: {kind}) {{ take({name}: $v) {{ done }} }}");
        ask(&query, &format!("{{\"v\":{variable}}}"));
        assert_eq!(input(), expected, "{variable}");
        let query = format!("query($v: {kind} = {literal}) {{ take({name}: $v) {{ done }} }}");
        ask(&query, "{}");
        assert_eq!(input(), expected, "default {literal}");
        ask(
            &format!("query($v: {kind}) {{ take({name}: $v) {{ done }} }}"),
            "{}",
        );
        assert_eq!(input(), json!({}), "no value");
    }
}

#[test]
fn a_variable_inside_an_input_is_coerced_at_its_place() {
    let handler = Stub::start(answering(r#"{"done":true}"#));
    let gateway = Gateway::merged(&format!(
        "{INPUTS}actions:\n  - {{name: take, type: query, arguments: [{{name: f, type: filter}}], output_type: answer, handler: '{}'}}\n",
        handler.url
    ));
    let query = "query($id: ID!, $name: String, $limit: Int, $inner: [inner!]!) { take(f: {inner: {ids: [$id], name: $name}, all: [$inner], limit: $limit}) { done } }";
    let body = json!({"query": query, "variables": {"id": 4, "inner": {"ids": 9}}}).to_string();
    // `$limit` may be absent although the field is not null, because the field has a default.
    let answer = gateway.send(&post(&body));
    assert_eq!(answer.text(), r#"{"data":{"take":{"done":true}}}"#);
    assert_eq!(
        handler.only().json()["input"]["f"],
        json!({
            "inner": {"ids": ["4"], "name": "dflt", "colors": ["RED"]},
            "all": [[{"ids": ["9"], "name": "dflt", "colors": ["RED"]}]],
            "limit": 10,
        })
    );
}

#[test]
fn defaults_that_lead_back_to_themselves_are_refused() {
    let types = "types: |\n  type t { a: Int }\n  input a { b: a = {} }\n";
    let (status, said) = Setup::merged(types).fail();
    assert_eq!(status.code(), Some(2));
    let expected = "the default of `a.b` leads back to itself";
    assert!(said.contains(expected), "{said}");
}
