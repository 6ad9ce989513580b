//! Tests the acceptance list of the extension points, line by line, through the whole gateway.

use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
const NAMES_ANSWER: &str =
    r#"{"data":{"locations":[{"id":"1","name":"A"},{"id":"2","name":"B"}]}}"#;
const BOTH: &str = r#"{"query":"{ locations { name overallRating } }"}"#;

/// A gateway with a coprocessor and these keys for it.
fn with_coprocessor(planets: &Stub, coprocessor: &Stub, keys: &str) -> Gateway {
    let url = &coprocessor.url;
    let more = format!("coprocessor: {{url: '{url}', {keys}}}");
    Gateway::start(&planets.config(&more))
}

fn with_script(planets: &Stub, script: &str) -> Gateway {
    Setup::new(&planets.config("rhai: {scripts: rhai}"))
        .file("rhai/main.rhai", script)
        .start()
}

#[test]
fn a_static_header_reaches_every_subgraph_request_whatever_sets_it() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|message| {
        message["headers"]["source"] = json!(["coprocessor"]);
    });
    let script = "fn subgraph_service(service, subgraph) { service.map_request(|request| { request.subgraph.headers[\"source\"] = \"rhai\"; }); }";
    let rule = "headers: {all: {request: [{insert: {name: source, value: config}}]}}";
    let gateways = [
        Gateway::start(&planets.config(rule)),
        with_script(&planets, script),
        with_coprocessor(
            &planets,
            &coprocessor,
            "subgraph: {all: {request: {headers: true}}}",
        ),
    ];
    for gateway in gateways {
        assert_eq!(gateway.send(&post(BOTH)).status, 200);
    }
    let seen = planets.seen();
    let sources: Vec<&str> = seen.iter().filter_map(|it| it.header("source")).collect();
    assert_eq!(
        sources,
        [
            "config",
            "config",
            "rhai",
            "rhai",
            "coprocessor",
            "coprocessor"
        ]
    );
    // One coprocessor call for each fetch.
    assert_eq!(coprocessor.seen().len(), 2);
}

#[test]
fn the_coprocessor_of_the_client_awareness_lab_gets_its_message() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|_| {});
    let gateway = with_coprocessor(&planets, &coprocessor, "router: {request: {headers: true}}");
    assert_eq!(gateway.send(&post(NAMES)).text(), NAMES_ANSWER);
    let message = coprocessor.only().json();
    let id = message["id"].as_str().unwrap();
    assert_eq!(id.len(), 36);
    let length = NAMES.len().to_string();
    assert_eq!(
        message,
        json!({
            "version": 1, "stage": "RouterRequest", "control": "continue", "id": id,
            "headers": {"host": ["test"], "content-type": ["application/json"], "content-length": [length]},
            "method": "POST",
        })
    );
}

/// A request with these bytes as a header value.
fn with_bytes(value: &[u8]) -> Vec<u8> {
    let length = NAMES.len();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nx-tenant: "
    );
    [head.as_bytes(), value, b"\r\n\r\n", NAMES.as_bytes()].concat()
}

#[test]
fn a_header_that_no_stage_could_read_is_not_sent_on() {
    const SUPERGRAPH_SCRIPT: &str = "fn supergraph_service(service) { service.map_request(|request| { if \"x-tenant\" in request.headers { print(request.headers[\"x-tenant\"]); } }); }";
    let rule = "headers: {all: {request: [{propagate: {named: x-tenant}}]}}\n";
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|_| {});
    let url = &coprocessor.url;
    let stages = [
        "router: {request: {headers: true}}",
        "supergraph: {request: {headers: true}}",
        "execution: {request: {headers: true}}",
        "subgraph: {all: {request: {headers: true}}}",
    ];
    let mut configs = stages
        .map(|keys| format!("{rule}coprocessor: {{url: '{url}', {keys}}}"))
        .to_vec();
    configs.push(format!("{rule}rhai: {{scripts: rhai}}"));
    for config in configs {
        let gateway = Setup::new(&planets.config(&config))
            .file("rhai/main.rhai", SUPERGRAPH_SCRIPT)
            .start();
        let mut connection = gateway.connect();
        connection.write(&with_bytes(b"a\xff"));
        let refused = connection.read(false);
        assert_eq!(refused.status, 400, "{config}");
        assert_eq!(crate::client::code(&refused), "INVALID_GRAPHQL_REQUEST");
        let message = "the header `x-tenant` is not UTF-8";
        assert!(refused.text().contains(message), "{}", refused.text());
        assert!(planets.seen().is_empty() && coprocessor.seen().is_empty());
    }
    // Text passes. Without a stage that reads the headers, all bytes pass.
    let gateway = with_coprocessor(&planets, &coprocessor, "router: {request: {headers: true}}");
    let mut connection = gateway.connect();
    connection.write(&with_bytes("ä".as_bytes()));
    assert_eq!(connection.read(false).text(), NAMES_ANSWER);
    let told = coprocessor.only().json();
    assert_eq!(told["headers"]["x-tenant"], json!(["ä"]));
    let gateway = Gateway::start(&planets.config(""));
    let mut connection = gateway.connect();
    connection.write(&with_bytes(b"a\xff"));
    assert_eq!(connection.read(false).text(), NAMES_ANSWER);
}

#[test]
fn ten_identifiers_are_ten_header_lines() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|message| {
        let ids: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        message["headers"]["GUID"] = json!(ids);
    });
    let gateway = with_coprocessor(
        &planets,
        &coprocessor,
        "router: {response: {headers: true}}",
    );
    let response = gateway.send(&post(NAMES));
    let lines = response.headers.iter().filter(|(name, _)| name == "guid");
    assert_eq!(lines.count(), 10);
    assert_eq!(response.text(), NAMES_ANSWER);
    let script = "fn supergraph_service(service) { service.map_response(|response| { for i in 1..=10 { response.headers[`GUID${i}`] = uuid_v4(); } }); }";
    let response = with_script(&planets, script).send(&post(NAMES));
    for number in 1..=10 {
        let value = response.header(&format!("guid{number}")).unwrap();
        assert_eq!(value.len(), 36);
    }
    assert_eq!(response.text(), NAMES_ANSWER);
}

#[test]
fn a_break_without_a_body_has_an_empty_message() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|message| message["control"] = json!({"break": 401}));
    let gateway = with_coprocessor(&planets, &coprocessor, "router: {request: {headers: true}}");
    let response = gateway.send(&post(NAMES));
    assert_eq!(response.status, 401);
    assert_eq!(response.json()["errors"][0]["message"], "");
    assert_eq!(crate::client::code(&response), "ERROR");
    let media = response.header("content-type").unwrap();
    assert!(media.starts_with("application/json"), "{media}");
    assert!(planets.seen().is_empty());
}

#[test]
fn an_answer_that_says_nothing_changes_nothing() {
    let planets = Stub::planets();
    let coprocessor =
        Stub::start(|_| crate::stub::json(json!({"version": 1, "stage": "RouterResponse"})));
    let gateway = with_coprocessor(
        &planets,
        &coprocessor,
        "router: {response: {headers: true, body: true}}",
    );
    let response = gateway.send(&post(NAMES));
    assert_eq!((response.status, response.text()), (200, NAMES_ANSWER));
    assert_eq!(gateway.send(&post("{")).status, 400);
}

#[test]
fn continue_on_a_response_makes_it_200() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|message| message["control"] = json!("continue"));
    let gateway = with_coprocessor(
        &planets,
        &coprocessor,
        "router: {response: {headers: true}}",
    );
    assert_eq!(gateway.send(&post("{")).status, 200);
}

#[test]
fn a_coprocessor_in_trouble_is_500_and_a_slow_one_504() {
    let planets = Stub::planets();
    let confused = Stub::coprocessor(|message| message["stage"] = json!("RouterResponse"));
    let gateway = with_coprocessor(&planets, &confused, "router: {request: {headers: true}}");
    let response = gateway.send(&post(NAMES));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (500, "INTERNAL_SERVER_ERROR")
    );
    let slow = Stub::start(|_| Answer::Hang);
    let keys = "timeout: 100ms, router: {request: {headers: true}}";
    let response = with_coprocessor(&planets, &slow, keys).send(&post(NAMES));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (504, "GATEWAY_TIMEOUT")
    );
}

#[test]
fn a_coprocessor_that_is_down_at_the_subgraph_stage_is_an_error_of_the_fetch() {
    let planets = Stub::planets();
    let more = "include_subgraph_errors: {all: true}\ncoprocessor: {url: 'http://127.0.0.1:1', subgraph: {all: {request: {headers: true}}}}";
    let response = Gateway::start(&planets.config(more)).send(&post(NAMES));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (200, "SUBREQUEST_HTTP_ERROR")
    );
    assert!(response.json()["data"].is_null());
}

#[test]
fn headers_taken_away_leave_those_of_the_sending() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|message| message["headers"] = json!({}));
    let keys = "subgraph: {all: {request: {headers: true}}}";
    let gateway = with_coprocessor(&planets, &coprocessor, keys);
    gateway.send(&post(NAMES));
    let mut names: Vec<String> = planets
        .only()
        .headers
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    names.sort();
    assert_eq!(names, ["accept", "content-length", "content-type", "host"]);
}

#[test]
fn reading_an_absent_header_fails_unless_asked_for_first() {
    let planets = Stub::planets();
    let bare = "fn supergraph_service(service) { service.map_request(|request| { let x = request.headers[\"x-absent\"]; }); }";
    assert_eq!(with_script(&planets, bare).send(&post(NAMES)).status, 500);
    let guarded = "fn supergraph_service(service) { service.map_request(|request| { if \"x-absent\" in request.headers { let x = request.headers[\"x-absent\"]; } }); }";
    let response = with_script(&planets, guarded).send(&post(NAMES));
    assert_eq!(response.text(), NAMES_ANSWER);
}

#[test]
fn a_broken_supergraph_stage_still_passes_the_router_s_response() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|message| match message["stage"].as_str() {
        Some("SupergraphRequest") => {
            message["control"] = json!({"break": 418});
            message["body"] = json!({"errors": [{"message": "no"}]});
        }
        _ => message["headers"]["x-last"] = json!(["router"]),
    });
    let keys = "supergraph: {request: {body: true}, response: {body: true}}, router: {response: {headers: true}}";
    let response = with_coprocessor(&planets, &coprocessor, keys).send(&post(NAMES));
    assert_eq!(response.status, 418);
    assert_eq!(response.header("x-last"), Some("router"));
    assert_eq!(response.json()["errors"][0]["message"], "no");
    let stages: Vec<Value> = coprocessor
        .seen()
        .iter()
        .map(|seen| seen.json()["stage"].clone())
        .collect();
    assert_eq!(stages, ["SupergraphRequest", "RouterResponse"]);
}

#[test]
fn all_eight_stages_run_in_their_order() {
    let planets = Stub::planets();
    let coprocessor = Stub::coprocessor(|_| {});
    let all = "{request: {headers: true, body: true, context: all}, response: {headers: true, body: true, context: all}}";
    let keys =
        format!("router: {all}, supergraph: {all}, execution: {all}, subgraph: {{all: {all}}}");
    let response = with_coprocessor(&planets, &coprocessor, &keys).send(&post(NAMES));
    assert_eq!(
        response.json(),
        serde_json::from_str::<Value>(NAMES_ANSWER).unwrap()
    );
    let stages: Vec<String> = coprocessor
        .seen()
        .iter()
        .map(|seen| seen.json()["stage"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        stages,
        [
            "RouterRequest",
            "SupergraphRequest",
            "ExecutionRequest",
            "SubgraphRequest",
            "SubgraphResponse",
            "ExecutionResponse",
            "SupergraphResponse",
            "RouterResponse"
        ]
    );
}

#[test]
fn a_query_replaced_by_a_stage_is_the_one_that_is_executed() {
    let planets = Stub::planets();
    for stage in ["SupergraphRequest", "ExecutionRequest"] {
        let coprocessor = Stub::coprocessor(move |message| {
            if message["stage"] == stage {
                message["body"]["query"] = json!("{ location(id: 1) { name } }");
            }
        });
        let keys = "supergraph: {request: {body: true}}, execution: {request: {body: true}}";
        let response = with_coprocessor(&planets, &coprocessor, keys).send(&post(NAMES));
        assert_eq!(
            response.text(),
            r#"{"data":{"location":{"name":"A"}}}"#,
            "{stage}"
        );
    }
}

#[test]
fn clients_are_known_by_their_token_by_configuration_alone() {
    // HS256 over {"client_name":"lab","client_version":"1.2","exp":4102444800} with the key `apollo`.
    const TOKEN: &str = concat!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        ".eyJjbGllbnRfbmFtZSI6ImxhYiIsImNsaWVudF92ZXJzaW9uIjoiMS4yIiwiZXhwIjo0MTAyNDQ0ODAwfQ",
        ".JEApVbtI7GSqmvKnGk7dpgLlq0_iYSZHEeJHjlc4xK4"
    );
    let planets = Stub::planets();
    let keys = r#"{"keys":[{"kty":"oct","alg":"HS256","k":"YXBvbGxv"}]}"#;
    let more = "authentication: {router: {jwt: {header_name: authentication, require_token: true, jwks: [{url: 'file://${env.KEYS}'}]}}}\ntelemetry: {apollo: {client_name_claim: client_name, client_version_claim: client_version}}";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    std::fs::write(&path, keys).unwrap();
    let gateway = Setup::new(&planets.config(more))
        .variable("KEYS", path.to_str().unwrap())
        .start();
    let refused = gateway.send(&post(NAMES));
    assert_eq!(refused.status, 401);
    let value = format!("Bearer {TOKEN}");
    let headers = [
        ("content-type", "application/json"),
        ("authentication", value.as_str()),
    ];
    let request = Request {
        headers: &headers,
        ..post(NAMES)
    };
    let response = gateway.send(&request);
    assert_eq!(response.text(), NAMES_ANSWER);
    let metrics = gateway.ask_health("/metrics");
    let sample = "graphql_client_requests_total{client_name=\"lab\",client_version=\"1.2\"} 1\n";
    assert!(metrics.text().contains(sample), "{}", metrics.text());
}

#[test]
fn conditions_read_operations_bodies_and_baggage() {
    let cases = [
        (
            "supergraph: {request: {condition: {eq: [{query_variable: show}, true]}}}",
            1,
        ),
        (
            "supergraph: {request: {condition: {eq: [{query_variable: show}, false]}}}",
            0,
        ),
        (
            "supergraph: {request: {condition: {exists: {query: string}}}}",
            1,
        ),
        (
            "execution: {request: {condition: {exists: {query: string}}}}",
            1,
        ),
        (
            "supergraph: {response: {condition: {eq: [{query_variable: show}, true]}}}",
            1,
        ),
        (
            "router: {request: {condition: {eq: [{baggage: tenant}, acme]}}}",
            1,
        ),
        (
            "router: {request: {condition: {eq: [{baggage: tenant}, other]}}}",
            0,
        ),
        (
            "supergraph: {response: {condition: {eq: [{response_data: '$.locations[0].name'}, A]}}}",
            1,
        ),
        (
            "supergraph: {response: {condition: {exists: {response_errors: '$[0].message'}}}}",
            0,
        ),
        (
            "subgraph: {all: {request: {condition: {eq: [{subgraph_operation_kind: string}, query]}}}}",
            1,
        ),
        (
            "subgraph: {all: {request: {condition: {eq: [{supergraph_query_variable: show}, true]}}}}",
            1,
        ),
        (
            "subgraph: {all: {response: {condition: {exists: {subgraph_response_data: '$.locations'}}}}}",
            1,
        ),
    ];
    let body = r#"{"query":"query ($show: Boolean!) { locations { name @include(if: $show) } }","variables":{"show":true}}"#;
    for (keys, calls) in cases {
        let planets = Stub::planets();
        let coprocessor = Stub::coprocessor(|_| {});
        let gateway = with_coprocessor(&planets, &coprocessor, keys);
        let request = Request {
            headers: &[
                ("content-type", "application/json"),
                ("baggage", "tenant=acme"),
            ],
            ..post(body)
        };
        assert_eq!(gateway.send(&request).status, 200, "{keys}");
        assert_eq!(coprocessor.seen().len(), calls, "{keys}");
    }
}
