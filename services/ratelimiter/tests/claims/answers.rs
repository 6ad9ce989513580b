//! Tests the responses of the contract in all forms.

use serde_json::{Value, json};
use test_client::{Redis, Response, TestClient};

use crate::server::{is_limited, start};

fn code(response: &Response) -> (u16, String) {
    let code = &response.json()["errors"][0]["extensions"]["code"];
    (response.status, code.as_str().unwrap().to_owned())
}

fn input(fields: &str) -> String {
    format!("{{ ratelimit(ratelimitInput: {{{fields}}}) {{ ipFrom isRateLimited }} }}")
}

/// Sends six failures with two e-mails, from these addresses in turn. Returns the last response.
fn attack(client: &mut TestClient, addresses: &[&str]) -> bool {
    let steps = addresses.iter().cycle().take(6).enumerate();
    let limited: Vec<_> = steps
        .map(|(k, ip)| is_limited(client, "LOGIN_FAILED", ip, ["a@b.se", "c@d.se"][k % 2]))
        .collect();
    assert_eq!(limited[..5], [false; 5]);
    limited[5]
}

#[test]
fn the_sixth_failure_is_limited_and_so_is_a_success_afterwards() {
    let server = start(&[]);
    let mut client = server.client();
    assert!(attack(&mut client, &["10.0.0.1"]));
    assert!(is_limited(
        &mut client,
        "LOGIN_SUCCEEDED",
        "10.0.0.1",
        "e@f.se"
    ));
    assert!(!is_limited(
        &mut client,
        "LOGIN_FAILED",
        "10.0.0.2",
        "a@b.se"
    ));
}

#[test]
fn headers_say_when_a_client_may_try_again() {
    let failure = |number: usize| {
        let email = ["a@b.se", "c@d.se"][number % 2];
        input(&format!(
            "eventName: LOGIN_FAILED, ip: \"10.0.0.9\", email: \"{email}\""
        ))
    };
    let redis = Redis::start();
    let url = redis.url();
    for flags in [&[][..], &["--redis-url", &url]] {
        let server = start(flags);
        let mut client = server.client();
        let mut ask = |query: &str| {
            let response = client.query(query);
            let of = |name: &str| response.header(name).map(str::to_owned);
            assert_eq!(response.status, 200);
            (of("retry-after"), of("ratelimit"), of("ratelimit-policy"))
        };
        let some = |text: &str| Some(text.to_owned());
        let policy = some("\"login\";q=5;w=6");
        let left = some("\"login\";r=4;t=6");
        assert_eq!(ask(&failure(0)), (None, left, policy.clone()));
        for number in 1..5 {
            ask(&failure(number));
        }
        let (retry, limit, policy_of_ban) = ask(&failure(5));
        assert_eq!(retry, some("90"), "{flags:?}");
        assert_eq!(limit, some("\"login\";r=0;t=90"));
        assert_eq!(policy_of_ban, policy);
        // The strictest of several decisions counts.
        let mixed = "{ a: ratelimit(ratelimitInput: {eventName: LOGIN_SUCCEEDED, ip: \"10.0.0.9\", email: \"a@b.se\"}) { isRateLimited } \
             b: ratelimit(ratelimitInput: {eventName: LOGIN_SUCCEEDED, ip: \"10.0.0.8\", email: \"a@b.se\"}) { isRateLimited } }";
        let (retry, limit, _) = ask(mixed);
        assert_eq!(retry, some("90"), "{flags:?}");
        assert!(limit.unwrap().contains("r=0"));
        // A request without a decision has none of the headers.
        assert_eq!(ask("{ serverinfo { hostname } }"), (None, None, None));
    }
}

#[test]
fn spellings_of_an_address_share_their_counter() {
    let server = start(&["--window-seconds", "600"]);
    let mut client = server.client();
    assert!(attack(
        &mut client,
        &["01.2.3.4", "1.2.3.4", "::ffff:1.2.3.4", "::FFFF:0102:304"]
    ));
    assert!(attack(
        &mut client,
        &["2001:db8::1", "2001:DB8:0:0::1", "2001:0db8::0001"]
    ));
}

#[test]
fn a_network_of_ipv6_shares_its_counter() {
    let networks = [
        &["2001:db8:0:1::2", "2001:db8:0:1:ffff::3", "2001:db8:0:1::4"][..],
        &["2001:db8:0:2::1", "2001:db8:0:3::1"],
    ];
    let attacks = |flags: &[&str]| {
        networks.map(|addresses| {
            let server = start(&[&["--window-seconds", "600"], flags].concat());
            attack(&mut server.client(), addresses)
        })
    };
    assert_eq!(attacks(&[]), [true, false]);
    assert_eq!(attacks(&["--ipv6-prefix", "60"]), [true, true]);
    assert_eq!(attacks(&["--ipv6-prefix", "128"]), [false, false]);
    assert_eq!(attacks(&["--compat", "original"]), [false, false]);
}

/// The path of a GET with this document.
fn by_get(query: &str) -> String {
    let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("/?query={encoded}")
}

#[test]
fn a_compressed_body_is_refused_as_such() {
    let server = start(&[]);
    let headers = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ];
    let body = r#"{"query":"{ serverinfo { hostname } }"}"#;
    let mut client = server.client();
    let refused = client.request("POST", "/", &headers, body);
    assert_eq!(refused.status, 415, "{}", refused.body);
    assert!(refused.body.contains("gzip"), "{}", refused.body);
}

#[test]
fn a_get_changes_nothing() {
    let server = start(&["--window-seconds", "600"]);
    let mut client = server.client();
    let fields = r#"eventName: LOGIN_FAILED, ip: "10.0.0.1", email: "a@b.se""#;
    let field = format!("ratelimit(ratelimitInput: {{{fields}}}) {{ isRateLimited }}");
    for query in [
        format!("{{ {field} }}"),
        format!("{{ serverinfo: {field} }}"),
        format!("{{ ... on Query {{ ... {{ {field} }} }} }}"),
        format!("query {{ ...F }} fragment F on Query {{ {field} }}"),
        format!("{{ __typename @skip(if: false) {field} }}"),
    ] {
        let response = client.get(&by_get(&query));
        assert_eq!(response.status, 405, "{query}: {}", response.body);
        assert_eq!(response.header("allow"), Some("POST"));
        let simple = [("content-type", "text/plain")];
        let body = json!({"query": query}).to_string();
        assert_eq!(client.request("POST", "/", &simple, body).status, 415);
    }
    assert_eq!(client.metric("ratelimiter_gets_refused_total"), 5);
    let decided = "ratelimiter_decisions_total{result=\"passed\",store=\"memory\",rule=\"fixed\"}";
    assert_eq!(client.metric(decided), 0);
    let reading = "query A { serverinfo { hostname } } query B { __typename }";
    let response = client.get(&format!("{}&operationName=B", by_get(reading)));
    assert_eq!(response.status, 200, "{}", response.body);
    let original = start(&["--compat", "original"]);
    let response = original.client().get(&by_get(&format!("{{ {field} }}")));
    assert_eq!(response.status, 200, "{}", response.body);
}

#[test]
fn web_pages_are_allowed_by_name_only() {
    let ask = |flags: &[&str], origin: &str| {
        let server = start(flags);
        let mut client = server.client();
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let preflight = client.request("OPTIONS", "/", &headers, b"");
        assert_eq!(preflight.status, 204);
        let answer = client.request("GET", "/?query=%7B__typename%7D", &headers[..1], b"");
        let allowed = |response: &Response| {
            let origin = response.header("access-control-allow-origin");
            origin.map(str::to_owned)
        };
        assert_eq!(allowed(&preflight), allowed(&answer));
        let methods = preflight.header("access-control-allow-methods");
        assert_eq!(methods.is_some(), allowed(&preflight).is_some());
        allowed(&answer)
    };
    let page = "http://page.example";
    let named = [
        "--cors-origins",
        "http://other.example, http://page.example",
    ];
    assert_eq!(ask(&[], page), None);
    assert_eq!(ask(&named, page).as_deref(), Some(page));
    assert_eq!(ask(&named, "http://evil.example"), None);
    assert_eq!(ask(&["--compat", "original"], page).as_deref(), Some("*"));
}

#[test]
fn the_original_tells_e_mails_apart_by_case() {
    let attacks = |flags: &[&str]| {
        let server = start(&[&["--window-seconds", "600"], flags].concat());
        let mut client = server.client();
        let limited: Vec<_> = (0..6)
            .map(|k| {
                is_limited(
                    &mut client,
                    "LOGIN_FAILED",
                    "10.0.0.1",
                    ["a@b.se", "A@b.se"][k % 2],
                )
            })
            .collect();
        limited[5]
    };
    assert!(!attacks(&[]));
    assert!(attacks(&["--compat", "original"]));
}

#[test]
fn aliases_are_decided_one_after_the_other() {
    let server = start(&["--window-seconds", "600"]);
    let fields: String = (0..8)
        .map(|k| format!("a{k}: ratelimit(ratelimitInput: {{eventName: LOGIN_FAILED, ip: \"10.0.0.9\", email: \"a{k}@b.se\"}}) {{ isRateLimited }} "))
        .collect();
    let answer = server.client().query(&format!("{{ {fields} }}")).json();
    let limited: Vec<_> = (0..8)
        .map(|k| {
            answer["data"][format!("a{k}")]["isRateLimited"]
                .as_bool()
                .unwrap()
        })
        .collect();
    assert_eq!(
        limited,
        [false, false, false, false, false, true, true, true]
    );
}

#[test]
fn an_input_that_is_none_is_reported_property_by_property() {
    let server = start(&[]);
    let query = input(r#"eventName: LOGIN_FAILED, ip: "1.2.3", email: "a@b""#);
    let response = server.client().query(&query);
    let target = json!({"eventName": "login_failed", "ip": "1.2.3", "email": "a@b"});
    let element = |value: &str, property: &str, constraints: Value| json!({"target": target, "value": value, "property": property, "children": [], "constraints": constraints});
    let expected = json!({
        "errors": [{
            "message": "Argument Validation Error",
            "locations": [{"line": 1, "column": 3}],
            "path": ["ratelimit"],
            "extensions": {"code": "INTERNAL_SERVER_ERROR", "exception": {"validationErrors": [
                element("1.2.3", "ip", json!({"isIp": "ip must be an ip address"})),
                element("a@b", "email", json!({"isEmail": "email must be an email"})),
            ]}},
        }],
        "data": {"ratelimit": null},
    });
    assert_eq!((response.status, response.json()), (200, expected));
    let strict = start(&["--errors", "strict"]);
    let response = strict.client().query(&query);
    assert_eq!(code(&response), (200, "BAD_USER_INPUT".to_owned()));
}

#[test]
fn mistakes_have_the_status_and_the_code_of_the_contract() {
    let server = start(&[]);
    let mut client = server.client();
    for (query, expected) in [
        (
            input(r#"eventName: login_failed, ip: "1.2.3.4", email: "a@b.se""#),
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            input(r#"eventName: "LOGIN_FAILED", ip: "1.2.3.4", email: "a@b.se""#),
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            input(r#"eventName: LOGIN_FAILED, ip: "1.2.3.4""#),
            "GRAPHQL_VALIDATION_FAILED",
        ),
        ("{ nothing }".to_owned(), "GRAPHQL_VALIDATION_FAILED"),
        (
            "{ serverinfo(a: 1) { hostname } }".to_owned(),
            "GRAPHQL_VALIDATION_FAILED",
        ),
        ("{ serverinfo".to_owned(), "GRAPHQL_PARSE_FAILED"),
        (
            "query A { __typename } query B { __typename }".to_owned(),
            "INTERNAL_SERVER_ERROR",
        ),
        ("mutation { a }".to_owned(), "INTERNAL_SERVER_ERROR"),
        (
            "query($x: String!) { __typename @include(if: $x) }".to_owned(),
            "INTERNAL_SERVER_ERROR",
        ),
    ] {
        let response = client.query(&query);
        assert_eq!(code(&response), (400, expected.to_owned()), "{query}");
        assert!(response.json().get("data").is_none(), "{query}");
    }
    let wrong = client
        .query(&input(r#"eventName: login_failed, ip: "", email: """#))
        .body;
    assert!(wrong.contains("LOGIN_FAILED or LOGIN_SUCCEEDED"), "{wrong}");
    let query = "query($x: RatelimitInput!) { ratelimit(ratelimitInput: $x) { ipFrom } }";
    for value in [
        json!({"eventName": "login_failed", "ip": "1.2.3.4", "email": "a@b.se"}),
        json!({"eventName": "LOGIN_FAILED", "ip": null, "email": "a@b.se"}),
        json!({"eventName": "LOGIN_FAILED", "ip": "1.2.3.4"}),
    ] {
        let body = json!({"query": query, "variables": {"x": value}}).to_string();
        let response = client.post("/", body.as_bytes());
        assert_eq!(code(&response), (400, "INTERNAL_SERVER_ERROR".to_owned()));
        let message = response.json()["errors"][0]["message"].to_string();
        assert!(
            message.contains("Variable \\\"$x\\\" got invalid value"),
            "{message}"
        );
    }
}

#[test]
fn variables_may_be_a_text_that_holds_json() {
    let server = start(&[]);
    let mut client = server.client();
    let query = "query($ip: String!) { ratelimit(ratelimitInput: {eventName: LOGIN_FAILED, ip: $ip, email: \"a@b.se\"}) { ipFrom } }";
    let body = json!({"query": query, "variables": "{\"ip\": \"01.2.3.4\"}"}).to_string();
    let answer = client.post("/", body.as_bytes()).json();
    assert_eq!(answer["data"]["ratelimit"]["ipFrom"], "01.2.3.4");
    let body = json!({"query": query, "variables": "{"}).to_string();
    let response = client.post("/", body.as_bytes());
    assert_eq!(response.status, 400);
    assert!(response.body.contains("Variables are invalid JSON"));
}

#[test]
fn every_path_is_the_endpoint_and_browsers_get_a_page() {
    let server = start(&[]);
    let mut client = server.client();
    for path in ["/", "/graphql", "/any/where"] {
        let response = client.get(&format!("{path}?query=%7B__typename%7D"));
        assert_eq!(response.json(), json!({"data": {"__typename": "Query"}}));
        assert!(
            response
                .head
                .contains("content-type: application/json; charset=utf-8")
        );
        assert!(!response.head.contains("access-control-"));
        let page = client.request("GET", path, &[("accept", "text/html,*/*")], b"");
        assert!(page.body.contains("<html"), "{}", page.body);
        let program = [("accept", "application/json, text/html;q=0.5")];
        let target = format!("{path}?query=%7B__typename%7D");
        let answer = client.request("GET", &target, &program, b"");
        assert_eq!(answer.json(), json!({"data": {"__typename": "Query"}}));
    }
    let options = client.ask(b"OPTIONS / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(options.status, 204);
    assert_eq!(options.header("allow"), Some("GET,HEAD,POST,OPTIONS"));
    assert_eq!(
        client
            .ask(b"DELETE / HTTP/1.1\r\nHost: test\r\n\r\n")
            .status,
        405
    );
    let batch = client.post(
        "/",
        br#"[{"query":"{__typename}"},{"query":"{serverinfo{hostname}}"}]"#,
    );
    assert_eq!(
        (batch.status, batch.json().as_array().unwrap().len()),
        (200, 2)
    );
}

#[test]
fn introspection_is_refused_in_production_only() {
    let query = "{ __schema { queryType { fields { name type { kind name } } } } }";
    let open = start(&[]).client().query(query).json();
    let fields = json!([
        {"name": "ratelimit", "type": {"kind": "OBJECT", "name": "RatelimitResponse"}},
        {"name": "serverinfo", "type": {"kind": "OBJECT", "name": "Serverinfo"}},
    ]);
    assert_eq!(open["data"]["__schema"]["queryType"]["fields"], fields);
    let production = start(&["--node-env", "production"]);
    let refused = production.client().query(query);
    assert_eq!(
        code(&refused),
        (400, "GRAPHQL_VALIDATION_FAILED".to_owned())
    );
}

#[test]
fn an_instance_may_have_a_name_of_its_own() {
    let name = |flags: &[&str]| {
        let server = start(flags);
        let answer = server.client().query("{ serverinfo { hostname } }").json();
        answer["data"]["serverinfo"]["hostname"].clone()
    };
    assert_eq!(name(&["--hostname", "limiter-3"]), "limiter-3");
    assert_ne!(name(&[]), "");
}

#[test]
fn a_client_that_ipv6_only_carries_has_the_counter_of_its_ipv4_address() {
    let server = start(&["--workers", "1"]);
    let mut client = server.client();
    for (bans, others) in [
        (
            "192.0.2.1",
            [
                "64:ff9b::192.0.2.1",
                "64:ff9b:1::192.0.2.1",
                "2002:c000:201:7::1",
            ],
        ),
        (
            "2002:c000:202:1::1",
            ["192.0.2.2", "2002:c000:202:2::1", "::ffff:0:192.0.2.2"],
        ),
        // Another client of the same Teredo server.
        ("2001:0:4136:e378:8000:63bf:3fff:fdfc", ["192.0.2.3"; 3]),
    ] {
        for email in ["a@b.se", "c@d.se", "e@f.se"] {
            for _ in 0..5 {
                is_limited(&mut client, "LOGIN_FAILED", bans, email);
            }
        }
        for other in others {
            assert!(
                is_limited(&mut client, "LOGIN_SUCCEEDED", other, "a@b.se"),
                "{other}"
            );
        }
    }
    for free in [
        "64:ff9b::192.0.2.9",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2002:c000:209::1",
    ] {
        assert!(
            !is_limited(&mut client, "LOGIN_SUCCEEDED", free, "a@b.se"),
            "{free}"
        );
    }
}

#[test]
fn variables_in_a_text_must_be_as_unambiguous_as_others() {
    let server = start(&["--workers", "1"]);
    let mut client = server.client();
    let query = "query($ip: String!) { ratelimit(ratelimitInput: \
        {eventName: LOGIN_FAILED, ip: $ip, email: \"a@b.se\"}) { ipFrom } }";
    let mut ask = |variables: &str| {
        let body = json!({"query": query, "variables": variables}).to_string();
        client.post("/graphql", body)
    };
    let once = ask(r#"{"ip":"10.0.0.1"}"#);
    assert_eq!(once.json()["data"]["ratelimit"]["ipFrom"], "10.0.0.1");
    for twice in [
        r#"{"ip":"10.0.0.1","ip":"10.0.0.2"}"#,
        r#"{"ip":"10.0.0.1","\u0069p":"10.0.0.2"}"#,
    ] {
        let refused = ask(twice);
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(refused.body.contains("given twice"), "{}", refused.body);
    }
}

#[test]
fn a_page_that_leads_its_name_here_counts_nothing() {
    let body = r#"{"query":"{ ratelimit(ratelimitInput: {eventName: LOGIN_FAILED, ip: \"10.0.0.1\", email: \"a@b.se\"}) { ipFrom } }"}"#;
    let request = |host: &str| {
        let length = body.len();
        format!(
            "POST /graphql HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let server = start(&["--allowed-hosts", "limiter.example"]);
    let mut client = server.client();
    let foreign = client.ask(request("evil.example:4000").as_bytes());
    assert_eq!(code(&foreign), (421, "BAD_REQUEST".to_owned()));
    assert!(foreign.body.contains("--allowed-hosts"), "{}", foreign.body);
    for own in [
        "localhost:4000",
        "127.0.0.1",
        "[::1]:4000",
        "limiter.example",
    ] {
        assert_eq!(client.ask(request(own).as_bytes()).status, 200, "{own}");
    }
}

#[test]
fn help_does_not_show_secrets_of_the_environment() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_ratelimiter"))
        .arg("--help")
        .envs([
            ("REDIS_URL", "redis://user:hunter2@redis:6379"),
            ("REDIS_HOST", "redis://:hunter2@redis:6379"),
            ("RATELIMIT_EMAIL_KEY", "hunter2"),
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(
        text.contains("REDIS_URL") && !text.contains("hunter2"),
        "{text}"
    );
}
