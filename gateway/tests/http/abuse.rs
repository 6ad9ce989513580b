//! Attacks by clients. A request must not pass a check and then run another operation. It must not receive
//! another client's response, or block a worker.

use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::client::{Request, code, get, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json as answer_json};

/// Allows one location, by the variable in the query.
const ONLY_FIRST: &str = r#"fn supergraph_service(service) {
  service.map_request(|request| {
    let body = request.body;
    let denied = body.variables.id == "loc-2" || body.extensions.role == "admin";
    if denied { throw #{status: 403, message: "no"}; }
  });
}"#;

/// A request with this text as its variables, extensions and further members.
fn asking(members: &str) -> String {
    format!(r#"{{"query":"query($id: ID!){{location(id:$id){{name}}}}",{members}}}"#)
}

fn guarded(planets: &Stub) -> Gateway {
    Setup::new(&planets.config("rhai: {scripts: rhai}"))
        .file("rhai/main.rhai", ONLY_FIRST)
        .start()
}

#[test]
fn a_request_that_two_readers_could_read_differently_is_refused() {
    let planets = Stub::planets();
    let gateway = guarded(&planets);
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let cases = [
        // Of two equal keys, two readers can choose different ones.
        (
            r#""variables":{"id":"loc-2","id":"loc-1"}"#.to_owned(),
            "the key `id` is given twice",
        ),
        (
            r#""variables":{"id":"loc-2","\u0069d":"loc-1"}"#.to_owned(),
            "the key `id` is given twice",
        ),
        (
            r#""variables":{"id":"loc-1","x":{"a":[{"b":1,"b":2}]}}"#.to_owned(),
            "the key `b` is given twice",
        ),
        (
            r#""variables":{"id":"loc-1"},"extensions":{"role":"admin","role":"user"}"#.to_owned(),
            "the key `role` is given twice",
        ),
        (
            r#""variables":{"id":"loc-1"},"more":1,"more":2"#.to_owned(),
            "the key `more` is given twice",
        ),
        (
            r#""variables":{"id":"loc-2"},"variables":{"id":"loc-1"}"#.to_owned(),
            "variables",
        ),
        // A reader that fails would see no variables.
        (
            r#""variables":{"id":"loc-2","x":"\ud800"}"#.to_owned(),
            "surrogate",
        ),
        (
            r#""variables":{"id":"loc-2","x":1e999}"#.to_owned(),
            "number",
        ),
        (
            format!(r#""variables":{{"id":"loc-2","x":{}}}"#, deep(200)),
            "nested",
        ),
    ];
    for (members, reason) in cases {
        let response = gateway.send(&post(&asking(&members)));
        assert_eq!(response.status, 400, "{members}: {}", response.text());
        assert_eq!(code(&response), "INVALID_GRAPHQL_REQUEST", "{members}");
        assert!(response.text().contains(reason), "{}", response.text());
    }
    let mut bytes = asking(r#""variables":{"id":"loc-2"},"more":"?""#).into_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'?').unwrap();
    bytes[at] = 0xff;
    let response = gateway.send(&Request {
        body: &bytes,
        ..post("")
    });
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(planets.seen().is_empty());
    // A request without such ambiguity passes, and the script checks it.
    let allowed = asking(r#""variables":{"id":"loc-1","x":{"id":1},"y":[{"id":1},{"id":2}]}"#);
    assert_eq!(gateway.send(&post(&allowed)).status, 200);
    let denied = asking(r#""variables":{"id":"loc-2"}"#);
    assert_eq!(gateway.send(&post(&denied)).status, 403);
}

#[test]
fn parameters_are_held_to_the_same() {
    let planets = Stub::planets();
    let gateway = guarded(&planets);
    let query = "query=query($id:ID!)%7Blocation(id:$id)%7Bname%7D%7D";
    let header = [("apollo-require-preflight", "1")];
    let ask = |more: &str| {
        let target = format!("/?{query}&{more}");
        gateway.send(&Request {
            headers: &header,
            ..get(&target)
        })
    };
    for (more, reason) in [
        (
            r#"variables=%7B%22id%22:%22loc-2%22,%22id%22:%22loc-1%22%7D"#,
            "the key `id` is given twice",
        ),
        (
            r#"variables=%7B%22id%22:%22loc-1%22%7D&variables=%7B%22id%22:%22loc-2%22%7D"#,
            "given twice",
        ),
        (
            r#"variables=%7B%22id%22:%22loc-1%22%7D&extensions=%7B%22a%22:1,%22a%22:2%7D"#,
            "the key `a` is given twice",
        ),
    ] {
        let response = ask(more);
        assert_eq!(response.status, 400, "{more}: {}", response.text());
        assert!(response.text().contains(reason), "{}", response.text());
    }
    assert!(planets.seen().is_empty());
    assert_eq!(ask("variables=%7B%22id%22:%22loc-1%22%7D").status, 200);
}

#[test]
fn a_coprocessor_that_answers_ambiguously_fails_the_request() {
    let planets = Stub::planets();
    let body = asking(r#""variables":{"id":"loc-1"}"#);
    for (stage, message) in [
        (
            "supergraph",
            format!(
                r#""body":{}"#,
                asking(r#""variables":{"id":"loc-2","id":"loc-1"}"#)
            ),
        ),
        (
            "supergraph",
            r#""context":{"entries":{"role":"a","role":"b"}}"#.to_owned(),
        ),
        (
            "supergraph",
            r#""headers":{"x-role":["a"],"x-role":["b"]}"#.to_owned(),
        ),
    ] {
        let text = format!(
            r#"{{"version":1,"stage":"SupergraphRequest","control":"continue",{message}}}"#
        );
        let coprocessor = Stub::start(move |_| answer_json(&text));
        let url = &coprocessor.url;
        let more = format!(
            "coprocessor: {{url: '{url}', {stage}: {{request: {{body: true, headers: true, context: all}}}}}}"
        );
        let gateway = Gateway::start(&planets.config(&more));
        assert_eq!(gateway.send(&post(&body)).status, 500, "{message}");
    }
    assert!(planets.seen().is_empty());
}

/// A subgraph that returns the value of `x-tenant`. Each response waits for a signal.
fn tenants() -> (Stub, mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (release, gate) = mpsc::channel::<()>();
    let (arrive, arrivals) = mpsc::channel::<()>();
    let (gate, arrive) = (Mutex::new(gate), Mutex::new(arrive));
    let stub = Stub::start(move |seen| {
        arrive.lock().unwrap().send(()).unwrap();
        let _ = gate.lock().unwrap().recv();
        let tenant = seen.header("x-tenant").unwrap_or(&seen.target).to_owned();
        answer_json(
            json!({"data": {"locations": [{"__typename": "Location", "id": "1", "name": tenant}]}}),
        )
    });
    (stub, release, arrivals)
}

#[test]
fn queries_that_differ_only_in_what_rules_and_scripts_add_are_not_shared() {
    let rule = "headers: {all: {request: [{insert: {name: x-tenant, path: .extensions.tenant}}]}}";
    let header = r#"fn subgraph_service(service, subgraph) { service.map_request(|request| {
        request.subgraph.headers["x-tenant"] = request.body.extensions.tenant; }); }"#;
    let address = r#"fn subgraph_service(service, subgraph) { service.map_request(|request| {
        request.subgraph.uri.path = "/" + request.body.extensions.tenant; }); }"#;
    for (keys, script) in [
        (rule, ""),
        ("rhai: {scripts: rhai}", header),
        ("rhai: {scripts: rhai}", address),
    ] {
        let (subgraph, release, arrivals) = tenants();
        let keys = format!("{keys}\ntraffic_shaping: {{all: {{deduplicate_query: true}}}}");
        let gateway = Setup::new(&subgraph.config(&keys))
            .file("rhai/main.rhai", script)
            .start();
        let asking = |tenant: &str| {
            json!({"query": "{ locations { name } }", "extensions": {"tenant": tenant}}).to_string()
        };
        // Equal lengths, so that the clients' headers are equal.
        let (red, tan) = (asking("red"), asking("tan"));
        let mut connections = [
            (gateway.connect(), red, "red"),
            (gateway.connect(), tan, "tan"),
        ];
        for (connection, body, _) in &mut connections {
            connection.begin(&post(body));
        }
        for _ in &connections {
            let arrived = arrivals.recv_timeout(Duration::from_secs(20));
            arrived.expect("each tenant's query is sent");
        }
        for _ in &connections {
            release.send(()).unwrap();
        }
        for (connection, _, tenant) in &mut connections {
            let response = connection.read(false);
            assert!(
                response.text().contains(*tenant),
                "{tenant}: {}",
                response.text()
            );
        }
    }
}

#[test]
fn queries_that_are_sent_alike_are_shared_whoever_asks() {
    let (subgraph, release, arrivals) = tenants();
    let keys = "headers: {all: {request: [{propagate: {named: x-tenant}}]}}\ntraffic_shaping: {all: {deduplicate_query: true}}";
    let mut gateway = Setup::new(&subgraph.config(keys))
        .flag("--log=debug")
        .start();
    let mut connections = [gateway.connect(), gateway.connect()];
    // A header that no rule sends to the subgraph differs.
    for (connection, user) in connections.iter_mut().zip(["1", "2"]) {
        let headers = [
            ("content-type", "application/json"),
            ("x-tenant", "red"),
            ("x-user", user),
        ];
        let body = r#"{"query":"{ locations { name } }"}"#;
        connection.begin(&Request {
            headers: &headers,
            ..post(body)
        });
    }
    arrivals.recv().unwrap();
    gateway.wait_for("a fetch joins an equal one");
    release.send(()).unwrap();
    for connection in &mut connections {
        assert!(connection.read(false).text().contains("red"));
    }
    assert_eq!(subgraph.seen().len(), 1);
}

#[test]
fn headers_of_the_clients_connection_go_no_further() {
    let planets = Stub::planets();
    let rules =
        "[{propagate: {named: x-hop}}, {propagate: {named: te}}, {propagate: {matching: '.*'}}]";
    let gateway =
        Gateway::start(&planets.config(&format!("headers: {{all: {{request: {rules}}}}}")));
    let headers = [
        ("content-type", "application/json"),
        ("connection", "keep-alive, X-Hop"),
        ("connection", "x-second"),
        ("x-hop", "1"),
        ("x-second", "1"),
        ("x-end", "1"),
        ("te", "trailers"),
        ("expect", "a-miracle"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "keep-alive"),
    ];
    let body = r#"{"query":"{ locations { id name } }"}"#;
    gateway.send(&Request {
        headers: &headers,
        ..post(body)
    });
    let seen = planets.only();
    let mut names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["accept", "content-length", "content-type", "host", "x-end"]
    );
}

#[test]
fn an_endless_script_ends_without_telling_the_client_why() {
    let planets = Stub::planets();
    let looping = "loop { }";
    for (body, limits) in [
        (looping, ""),
        (looping, ", limits: {max_operations: 1000, timeout: 1h}"),
        ("let s = \"x\"; loop { s += s; }", ""),
        (
            "let a = [1]; loop { a += a; }",
            ", limits: {max_array_size: 100, timeout: 1h}",
        ),
        (
            "let m = #{}; let n = 0; loop { m[`${n}`] = n; n += 1; m.len(); }",
            ", limits: {max_map_size: 100, timeout: 1h}",
        ),
        // A script cannot catch it.
        (
            "loop { try { loop { } } catch { } }",
            ", limits: {timeout: 100ms}",
        ),
        (
            "request.context.upsert(\"x\", |x| { loop { } });",
            ", limits: {timeout: 100ms}",
        ),
    ] {
        let script = format!(
            "fn supergraph_service(service) {{ service.map_request(|request| {{ {body} }}); }}"
        );
        check_stopped(&planets, &script, limits);
    }
    let script = "fn f(n) { f(n + 1) } fn supergraph_service(service) { service.map_response(|response| { f(0); }); }";
    check_stopped(&planets, script, "");
}

fn check_stopped(planets: &Stub, script: &str, limits: &str) {
    let mut gateway = Setup::new(&planets.config(&format!("rhai: {{scripts: rhai{limits}}}")))
        .file("rhai/main.rhai", script)
        .start();
    let response = gateway.send(&post(r#"{"query":"{ locations { id } }"}"#));
    assert_eq!(response.status, 500, "{script}: {}", response.text());
    assert_eq!(
        code(&response),
        "INTERNAL_SERVER_ERROR",
        "{script}: {}",
        response.text()
    );
    assert_eq!(
        response.json()["errors"][0]["message"],
        "internal server error"
    );
    // The log contains the script and the key to change.
    gateway.wait_for("main.rhai");
    assert_eq!(gateway.ask_health("/health").status, 200);
}

const REST: &str = "
query_collections:
  - name: all
    queries:
      - {name: read, query: 'query ($n: Int) { thing(n: $n) }'}
      - {name: write, query: 'mutation ($n: Int) { change(n: $n) }'}
";

fn rest(handler: &Stub, methods: &str) -> Setup {
    let url = &handler.url;
    let field = format!("arguments: [{{name: n, type: Int}}], output_type: Int, handler: '{url}'");
    Setup::merged(&format!(
        "{REST}actions: [{{name: thing, type: query, {field}}}, {{name: change, {field}}}]
rest_endpoints:
  - {{name: read, url: thing, methods: [GET, POST], query: {{collection_name: all, query_name: read}}}}
  - {{name: write, url: change, methods: {methods}, query: {{collection_name: all, query_name: write}}}}
"
    ))
}

#[test]
fn a_foreign_page_cannot_send_what_a_rest_endpoint_carries_out() {
    let handler = Stub::start(|_| Answer::With(200, Some("application/json"), b"7".to_vec()));
    let gateway = rest(&handler, "[POST, PUT]").start();
    let send = |method, headers: &[(&str, &str)], body: &str| {
        let target = "/api/rest/change";
        gateway.send(&Request {
            method,
            target,
            headers,
            body: body.as_bytes(),
        })
    };
    let body = r#"{"n":1}"#;
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
    ] {
        let response = send("POST", headers, body);
        assert_eq!(response.status, 400, "{}", response.text());
        assert_eq!(response.json()["code"], "csrf", "{}", response.text());
        assert!(response.json()["error"].as_str().unwrap().contains("CSRF"));
    }
    assert!(handler.seen().is_empty());
    assert_eq!(
        send("POST", &[("content-type", "application/json")], body).status,
        200
    );
    assert_eq!(
        send("POST", &[("apollo-require-preflight", "1")], body).status,
        200
    );
    // A browser sends a preflight request before a PUT, and a GET changes no data.
    assert_eq!(send("PUT", &[], body).status, 200);
    assert_eq!(gateway.send(&get("/api/rest/thing?n=1")).status, 200);
}

#[test]
fn a_mutation_cannot_be_stored_for_get() {
    let handler = Stub::start(|_| Answer::Hang);
    let (status, log) = rest(&handler, "[POST, GET]").fail();
    assert!(!status.success(), "{log}");
    assert!(
        log.contains("is a mutation, which GET must not carry out"),
        "{log}"
    );
}

#[test]
fn variables_of_rest_are_given_once() {
    let handler = Stub::start(|_| Answer::With(200, Some("application/json"), b"7".to_vec()));
    let gateway = rest(&handler, "[POST]").start();
    for (target, body, reason) in [
        (
            "/api/rest/thing?n=1&n=2",
            "",
            "the parameter `n` is given twice",
        ),
        (
            "/api/rest/thing?n=1&%6E=2",
            "",
            "the parameter `n` is given twice",
        ),
        (
            "/api/rest/thing",
            r#"{"n":1,"n":2}"#,
            "the key `n` is given twice",
        ),
    ] {
        let request = Request {
            target,
            ..post(body)
        };
        let response = gateway.send(&request);
        assert_eq!(response.status, 400, "{}", response.text());
        assert_eq!(response.json()["code"], "bad-request");
        assert!(response.text().contains(reason), "{}", response.text());
    }
    assert!(handler.seen().is_empty());
}
