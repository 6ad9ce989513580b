//! Tests keys of the configuration by their effect on clients.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::client::{Connection, Request, get, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{self, Answer, Stub};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;

fn query(text: &str) -> String {
    json!({ "query": text }).to_string()
}

#[test]
fn include_subgraph_errors_decides_what_of_an_error_is_told() {
    let subgraph = Stub::start(|_| {
        stub::json(
            r#"{"data":{"locations":null},"errors":[{"message":"secret","path":["locations"],"extensions":{"code":"X","trace":"T"}}]}"#,
        )
    });
    let redacted = "Subgraph errors redacted";
    let cases = [
        ("{}", redacted, Value::Null),
        ("{all: false}", redacted, Value::Null),
        (
            "{all: true}",
            "secret",
            json!({"code": "X", "trace": "T", "service": "locations"}),
        ),
        (
            "{all: true, subgraphs: {locations: false}}",
            redacted,
            Value::Null,
        ),
        (
            "{all: false, subgraphs: {locations: true}}",
            "secret",
            json!({"code": "X", "trace": "T", "service": "locations"}),
        ),
        (
            "{all: {allow_extensions_keys: [code], redact_message: true}}",
            redacted,
            json!({"code": "X"}),
        ),
        (
            "{all: {deny_extensions_keys: [trace], redact_message: false}}",
            "secret",
            json!({"code": "X", "service": "locations"}),
        ),
        (
            "{all: {allow_extensions_keys: [code], redact_message: false}, subgraphs: {locations: {allow_extensions_keys: [trace], exclude_global_keys: [code]}}}",
            "secret",
            json!({"trace": "T"}),
        ),
    ];
    for (policy, message, extensions) in cases {
        let config = subgraph.config(&format!("include_subgraph_errors: {policy}"));
        let error = Gateway::start(&config).send(&post(NAMES)).json()["errors"][0].clone();
        assert_eq!(error["message"], message, "{policy}");
        assert_eq!(error["path"], json!(["locations"]), "{policy}");
        assert_eq!(error["extensions"], extensions, "{policy}");
    }
}

#[test]
fn limits_refuse_or_only_warn() {
    let planets = Stub::planets();
    let cases = [
        (
            "max_height: 2",
            "{ locations { id name } }",
            "MAX_HEIGHT_LIMIT",
        ),
        (
            "max_root_fields: 1",
            "{ a: __typename b: __typename }",
            "MAX_ROOT_FIELDS_LIMIT",
        ),
        ("max_depth: 1", "{ locations { id } }", "MAX_DEPTH_LIMIT"),
        (
            "max_aliases: 1",
            "{ a: __typename b: __typename }",
            "MAX_ALIASES_LIMIT",
        ),
        (
            "parser_max_tokens: 3",
            "{ locations { id } }",
            "PARSING_ERROR",
        ),
        (
            "parser_max_recursion: 1",
            "{ locations { id } }",
            "PARSING_ERROR",
        ),
    ];
    for (limit, text, code) in cases {
        let gateway = Gateway::start(&planets.config(&format!("limits: {{{limit}}}")));
        let response = gateway.send(&post(&query(text)));
        assert_eq!(
            (response.status, crate::client::code(&response).as_str()),
            (400, code),
            "{limit}: {}",
            response.text()
        );
        if limit.starts_with("max") {
            let config = planets.config(&format!("limits: {{{limit}, warn_only: true}}"));
            let mut gateway = Gateway::start(&config);
            assert_eq!(gateway.send(&post(&query(text))).status, 200, "{limit}");
            gateway.wait_for("a request beyond the limits");
        }
    }
}

#[test]
fn nested_introspection_is_bounded_unless_told_otherwise() {
    let planets = Stub::planets();
    let text = query(
        "{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }",
    );
    let config =
        |more: &str| planets.config(&format!("supergraph: {{introspection: true}}\n{more}"));
    let response = Gateway::start(&config("")).send(&post(&text));
    assert_eq!(response.status, 400, "{}", response.text());
    let free = config("limits: {introspection_max_depth: false}");
    assert_eq!(Gateway::start(&free).send(&post(&text)).status, 200);
}

#[test]
fn what_is_wrong_with_a_query_can_be_kept_from_the_client() {
    let planets = Stub::planets();
    let more = "supergraph: {redact_query_validation_errors: true}";
    let response = Gateway::start(&planets.config(more)).send(&post(&query("{ nothing }")));
    assert_eq!(
        response.json(),
        json!({"errors": [{"message": "invalid query", "extensions": {"code": "UNKNOWN_ERROR"}}]})
    );
}

#[test]
fn csrf_is_turned_off_or_asks_for_other_headers() {
    let planets = Stub::planets();
    let typename = get("/?query=%7B__typename%7D");
    let off = Gateway::start(&planets.config("csrf: {unsafe_disabled: true}"));
    assert_eq!(off.send(&typename).status, 200);
    let own = Gateway::start(&planets.config("csrf: {required_headers: [x-mine]}"));
    for (header, status) in [
        (("x-mine", "1"), 200),
        (("x-mine", ""), 400),
        (("apollo-require-preflight", "1"), 400),
    ] {
        let headers = [header];
        let request = Request {
            headers: &headers,
            ..typename
        };
        assert_eq!(own.send(&request).status, status, "{header:?}");
    }
}

#[test]
fn parameters_of_a_get_must_be_json_where_json_is_due() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("csrf: {unsafe_disabled: true}"));
    for (target, status, code) in [
        ("/", 400, "INVALID_GRAPHQL_REQUEST"),
        (
            "/?query=%7B__typename%7D&variables=%7B",
            400,
            "INVALID_GRAPHQL_REQUEST",
        ),
        (
            "/?query=%7B__typename%7D&variables=1",
            400,
            "INVALID_GRAPHQL_REQUEST",
        ),
        (
            "/?query=%7B__typename%7D&extensions=x",
            400,
            "INVALID_GRAPHQL_REQUEST",
        ),
        ("/?query=%FF", 400, "PARSING_ERROR"),
    ] {
        let response = gateway.send(&get(target));
        assert_eq!(
            (response.status, crate::client::code(&response).as_str()),
            (status, code),
            "{target}: {}",
            response.text()
        );
    }
    let target = "/?query=query%20A%7Ba:__typename%7Dquery%20B%7Bb:__typename%7D&operationName=B";
    assert_eq!(
        gateway.send(&get(target)).text(),
        r#"{"data":{"b":"Query"}}"#
    );
}

#[test]
fn the_endpoint_can_be_everything_below_a_path() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("supergraph: {path: '/graphql/*'}"));
    for (target, status) in [("/graphql/a/b", 200), ("/other", 404)] {
        let request = Request {
            target,
            ..post(NAMES)
        };
        assert_eq!(gateway.send(&request).status, status, "{target}");
    }
}

#[test]
fn health_has_its_own_path_and_words_and_can_be_turned_off() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("health_check: {path: /healthz}"));
    for target in [
        "/healthz",
        "/healthz?live",
        "/healthz?READY",
        "/healthz?ready=",
    ] {
        let health = gateway.ask_health(target);
        assert_eq!(
            (health.status, health.text()),
            (200, r#"{"status":"UP"}"#),
            "{target}"
        );
    }
    assert_eq!(gateway.ask_health("/health").status, 404);
    let gateway = Gateway::start(&planets.config("health_check: {enabled: false}"));
    assert_eq!(gateway.ask_health("/health").status, 404);
    assert_eq!(gateway.ask_health("/metrics").status, 200);
}

#[test]
fn a_subgraph_can_be_on_a_unix_socket() {
    // The path of a socket has at most 107 bytes, but TMPDIR can be longer.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = folder.path().join("subgraph.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (seen, requests) = mpsc::channel();
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        seen.send(line.trim_end().to_owned()).unwrap();
        let body = r#"{"data":{"locations":[]}}"#;
        let length = body.len();
        write!(stream.get_mut(), "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        // Reads until the gateway closes the connection.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let config = format!(
        "override_subgraph_url: {{locations: 'unix://{}?path=/p'}}",
        path.display()
    );
    let response = Gateway::start(&config).send(&post(NAMES));
    assert_eq!(response.text(), r#"{"data":{"locations":[]}}"#);
    assert_eq!(requests.recv().unwrap(), "POST /p HTTP/1.1");
}

/// A subgraph that reports the arrival of a request and the end of its connection.
fn abandoned() -> (String, mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).unwrap() > 0);
        tell.send("asked").unwrap();
        while stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
        tell.send("closed").unwrap();
    });
    (url, told)
}

#[test]
fn with_early_cancel_work_ends_with_its_client() {
    let (url, told) = abandoned();
    let config = format!(
        "override_subgraph_url: {{locations: '{url}'}}\nsupergraph: {{early_cancel: true, experimental_log_on_broken_pipe: true}}"
    );
    let mut gateway = Gateway::start(&config);
    let mut client = gateway.connect();
    client.begin(&post(NAMES));
    assert_eq!(told.recv().unwrap(), "asked");
    drop(client);
    assert_eq!(told.recv().unwrap(), "closed");
    gateway.wait_for("went away");
}

#[test]
fn an_answer_that_never_ends_is_given_up() {
    let subgraph = Stub::start(|_| Answer::Endless);
    let config = subgraph.config("include_subgraph_errors: {all: true}");
    let gateway = Gateway::start(&config);
    let response = gateway.send(&post(NAMES));
    assert_eq!(crate::client::code(&response), "SUBREQUEST_HTTP_ERROR");
    let message = &response.json()["errors"][0]["message"];
    let message = message.as_str().unwrap();
    assert!(message.contains("longer than"), "{message}");
    let announced = Stub::start(|_| {
        Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{".to_vec())
    });
    let config = announced.config("include_subgraph_errors: {all: true}");
    let response = Gateway::start(&config).send(&post(NAMES));
    assert_eq!(crate::client::code(&response), "SUBREQUEST_HTTP_ERROR");
}

#[test]
fn scripts_see_the_environment_under_its_prefix() {
    let planets = Stub::planets();
    let script = r#"fn supergraph_service(service) {
        service.map_response(|response| { response.headers["stage"] = env::get("STAGE"); });
    }"#;
    let gateway = Setup::new(&planets.config("rhai: {scripts: rhai}"))
        .file("rhai/main.rhai", script)
        .variable("P_STAGE", "test")
        .variable("APOLLO_ROUTER_CONFIG_ENV_PREFIX", "P")
        .start();
    assert_eq!(gateway.send(&post(NAMES)).header("stage"), Some("test"));
}

#[test]
fn development_shows_schema_page_and_errors() {
    let subgraph = Stub::start(|_| stub::json(r#"{"data":null,"errors":[{"message":"open"}]}"#));
    let gateway = Setup::new(&subgraph.config("")).flag("--dev").start();
    let schema = query("{ __schema { queryType { name } } }");
    assert_eq!(gateway.send(&post(&schema)).status, 200);
    let error = gateway.send(&post(NAMES)).json()["errors"][0].clone();
    assert_eq!(error["message"], "open");
    let page = Request {
        headers: &[("accept", "text/html")],
        ..get("/")
    };
    assert_eq!(gateway.send(&page).status, 200);
}

#[test]
fn origins_of_version_1_are_allowed() {
    let planets = Stub::planets();
    let config = planets.config("cors: {origins: ['https://old.example']}");
    let request = Request {
        headers: &[
            ("content-type", "application/json"),
            ("origin", "https://old.example"),
        ],
        ..post(NAMES)
    };
    assert_eq!(
        Gateway::start(&config)
            .send(&request)
            .header("access-control-allow-origin"),
        Some("https://old.example")
    );
}

#[test]
fn metrics_can_have_an_address_of_their_own() {
    let planets = Stub::planets();
    // The path of a socket has at most 107 bytes, but TMPDIR can be longer.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let socket = folder.path().join("metrics.sock");
    let more = format!(
        "telemetry: {{exporters: {{metrics: {{prometheus: {{enabled: true, listen: '{}', path: /numbers}}}}}}}}",
        socket.display()
    );
    let gateway = Gateway::start(&planets.config(&more));
    assert_eq!(gateway.ask_health("/metrics").status, 404);
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    stream
        .write_all(b"GET /numbers HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("process_resident_memory_bytes"), "{text}");
}

#[test]
fn a_request_without_a_host_and_one_with_a_bad_head_are_refused() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    for head in [
        "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST / HTTP/9.9\r\nhost: t\r\n\r\n",
        "POST / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: nonsense\r\nhost: t\r\n\r\n",
    ] {
        let mut connection = Connection::open(&gateway.address);
        connection.write(head.as_bytes());
        assert_eq!(connection.read(false).status, 400, "{head:?}");
    }
    assert_eq!(gateway.send(&post(NAMES)).status, 200);
}
