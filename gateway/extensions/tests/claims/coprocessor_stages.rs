//! Coprocessors: every switch, every failure and every ignored member, at each of the eight
//! stages.

use gateway_extensions::Step;
use serde_json::{Value, json};

use crate::coprocessors::{
    REQUEST_ALL, code, config, down, echo, name, noted, request, response, service,
};
use crate::stand::{Stand, fetch, json as answer, origin, plan, run, serve, worker};

/// A stage, its side, and its switches with the message member that each switch adds.
type Stage = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// The eight stages with their switches.
const STAGES: [Stage; 8] = [
    (
        "router",
        "request",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("sdl", "sdl"),
            ("path", "path"),
            ("method", "method"),
        ],
    ),
    (
        "router",
        "response",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("sdl", "sdl"),
            ("status_code", "statusCode"),
        ],
    ),
    (
        "supergraph",
        "request",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("sdl", "sdl"),
            ("method", "method"),
        ],
    ),
    (
        "supergraph",
        "response",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("sdl", "sdl"),
            ("status_code", "statusCode"),
        ],
    ),
    (
        "execution",
        "request",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("sdl", "sdl"),
            ("method", "method"),
            ("query_plan", "queryPlan"),
        ],
    ),
    (
        "execution",
        "response",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("sdl", "sdl"),
            ("status_code", "statusCode"),
        ],
    ),
    (
        "subgraph",
        "request",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("method", "method"),
            ("uri", "uri"),
            ("service_name", "serviceName"),
            ("subgraph_request_id", "subgraphRequestId"),
        ],
    ),
    (
        "subgraph",
        "response",
        &[
            ("headers", "headers"),
            ("body", "body"),
            ("status_code", "statusCode"),
            ("service_name", "serviceName"),
            ("subgraph_request_id", "subgraphRequestId"),
        ],
    ),
];

/// The state of a message after a stage.
#[derive(Debug)]
struct Left {
    /// The status of the break, the response or the subgraph request. 0 if a request continues.
    status: u16,
    body: String,
}

/// Sends a message through one stage of this configuration.
async fn pass(yaml: &str, stage: &str, side: &str, origin: &Stand) -> Left {
    let worker = worker(yaml, &origin.url);
    let mut exchange = noted();
    exchange.query_plan = Some(plan());
    let text = |body: &[u8]| String::from_utf8(body.to_vec()).unwrap();
    if stage == "subgraph" {
        let outcome = fetch(&worker, &exchange).await;
        return Left {
            status: outcome.status.map_or(0, |status| status.as_u16()),
            body: text(&outcome.body),
        };
    }
    let service = service(&worker, stage);
    if side == "request" {
        let mut request = request();
        return match service.request(&exchange, &mut request).await {
            Step::Continue => Left {
                status: 0,
                body: text(&request.body),
            },
            Step::Break(response) => Left {
                status: response.status.as_u16(),
                body: text(&response.body),
            },
        };
    }
    let mut response = response();
    service.response(&exchange, &mut response).await;
    Left {
        status: response.status.as_u16(),
        body: text(&response.body),
    }
}

/// The members of a message without any switch.
fn always(stage: &str, side: &str) -> Vec<&'static str> {
    let mut members = vec!["id", "stage", "version"];
    if side == "request" {
        members.push("control");
        if matches!(stage, "router" | "subgraph") {
            members.push("method");
        }
    }
    members
}

#[test]
fn each_switch_adds_its_member_and_no_other() {
    run(async {
        let origin = origin().await;
        let coprocessor = echo(json!({})).await;
        for (stage, side, switches) in STAGES {
            let context = [("\"context\": \"all\"".to_owned(), "context")];
            let switches = switches
                .iter()
                .map(|(switch, member)| (format!("\"{switch}\": true"), *member));
            for (switch, member) in switches.chain(context) {
                let yaml = config(&coprocessor.url, stage, side, &switch);
                pass(&yaml, stage, side, &origin).await;
                let message = coprocessor.last().json();
                let mut expected = always(stage, side);
                if !expected.contains(&member) {
                    expected.push(member);
                }
                expected.sort_unstable();
                let mut found: Vec<&String> = message.as_object().unwrap().keys().collect();
                found.sort_unstable();
                assert_eq!(found, expected, "{stage} {side} {switch}");
                assert_eq!(message["stage"], name(stage, side));
                assert!(!message[member].is_null(), "{stage} {side} {switch}");
            }
        }
    });
}

/// Checks the client's error after a failed stage.
fn assert_failed(left: &Left, stage: &str, is_timeout: bool, what: &str) {
    let (status, expected) = match (stage, is_timeout) {
        ("subgraph", _) => (200, "SUBREQUEST_HTTP_ERROR"),
        (_, true) => (504, "GATEWAY_TIMEOUT"),
        (_, false) => (500, "INTERNAL_SERVER_ERROR"),
    };
    let found = code(left.body.as_bytes());
    assert_eq!(
        (left.status, found.as_str()),
        (status, expected),
        "{stage} {what}"
    );
    if stage == "subgraph" {
        let start = r#"{"errors":[{"extensions":{"code":"#;
        assert!(left.body.starts_with(start), "{}", left.body);
        assert!(
            left.body.contains("HTTP fetch failed from 'one': "),
            "{}",
            left.body
        );
    }
}

#[test]
fn each_failure_has_its_answer_at_each_stage() {
    run(async {
        let origin = origin().await;
        let silent = serve(|_| None).await;
        let confused = echo(json!({"stage": "Nothing"})).await;
        let old = echo(json!({"version": 0})).await;
        let babbling = serve(|_| Some(answer("no JSON"))).await;
        let illegal = echo(json!({"headers": {"a b": ["1"]}})).await;
        let refusing = serve(|seen| {
            let mut answer = answer(seen.json());
            answer.status = 503;
            Some(answer)
        })
        .await;
        let down = down();
        for (stage, side, _) in STAGES {
            for (what, url) in [
                ("down", &down),
                ("another stage", &confused.url),
                ("another version", &old.url),
                ("no JSON", &babbling.url),
                ("an illegal header", &illegal.url),
                ("a status of 503", &refusing.url),
            ] {
                let yaml = config(url, stage, side, REQUEST_ALL);
                let left = pass(&yaml, stage, side, &origin).await;
                assert_failed(&left, stage, false, &format!("{side} {what}"));
            }
            let yaml = config(&silent.url, stage, side, REQUEST_ALL).replace("2s", "20ms");
            let left = pass(&yaml, stage, side, &origin).await;
            assert_failed(&left, stage, true, &format!("{side} timeout"));
        }
    });
}

#[test]
fn a_slow_coprocessor_at_a_subgraph_with_traffic_shaping_is_a_gateway_timeout() {
    run(async {
        let origin = origin().await;
        let silent = serve(|_| None).await;
        for shaping in [r#"{"all": {}}"#, r#"{"subgraphs": {"one": {}}}"#] {
            let mut yaml =
                config(&silent.url, "subgraph", "request", REQUEST_ALL).replace("2s", "20ms");
            yaml.pop();
            yaml += &format!(r#", "traffic_shaping": {shaping}}}"#);
            let left = pass(&yaml, "subgraph", "request", &origin).await;
            assert_eq!(code(left.body.as_bytes()), "GATEWAY_TIMEOUT", "{shaping}");
        }
    });
}

#[test]
fn members_that_cannot_be_set_are_ignored_at_each_stage() {
    let ignored = json!({
        "id": "another", "serviceName": "another", "subgraphRequestId": "another",
        "path": "/another", "method": "DELETE", "sdl": "another", "statusCode": 299,
        "queryPlan": {}, "hasNext": true, "unknown": [1], "status_code": 299,
    });
    run(async {
        let origin = origin().await;
        let coprocessor = echo(ignored).await;
        for (stage, side, _) in STAGES {
            let yaml = config(&coprocessor.url, stage, side, r#""headers": true"#);
            let left = pass(&yaml, stage, side, &origin).await;
            match (stage, side) {
                ("subgraph", _) => {
                    assert_eq!(
                        (left.status, left.body.as_str()),
                        (200, r#"{"data":{"a":1}}"#)
                    );
                    assert_eq!(origin.last().method, "POST");
                    assert_eq!(origin.last().path, "/");
                }
                (_, "request") => assert_eq!(left.status, 0, "{stage}"),
                _ => assert_eq!(left.status, 400, "{stage}"),
            }
        }
    });
}

#[test]
fn an_outgoing_request_can_be_rewritten_in_every_member() {
    run(async {
        let origin = origin().await;
        let coprocessor = echo(json!({
            "body": {"query": "{b}"}, "headers": {"X-New": ["1", "2"]},
            "uri": format!("{}/elsewhere?q=1", origin.url),
            "context": {"entries": {"seen": true}},
        }))
        .await;
        let yaml = config(&coprocessor.url, "subgraph", "request", REQUEST_ALL);
        let worker = worker(&yaml, &origin.url);
        let exchange = noted();
        fetch(&worker, &exchange).await;
        let seen = origin.last();
        assert_eq!(seen.body, r#"{"query":"{b}"}"#);
        assert_eq!(seen.all("x-new"), ["1", "2"]);
        assert_eq!(seen.path, "/elsewhere?q=1");
        assert_eq!(exchange.context.get("seen"), Some(json!(true)));
    });
}

#[test]
fn a_subgraph_response_stage_sets_status_context_and_selected_members() {
    run(async {
        let origin = serve(|_| {
            Some(answer(
                r#"{"data":{"a":1},"errors":[{"message":"m"}],"extensions":{"e":1}}"#,
            ))
        })
        .await;
        let coprocessor = echo(json!({
            "control": {"break": 403}, "context": {"entries": {"seen": true}},
            "body": {"data": {"a": 2}, "errors": []},
        }))
        .await;
        let switches = r#""body": {"data": true}, "context": "all""#;
        let yaml = config(&coprocessor.url, "subgraph", "response", switches);
        let worker = worker(&yaml, &origin.url);
        let exchange = noted();
        let outcome = fetch(&worker, &exchange).await;
        assert_eq!(coprocessor.last().json()["body"], json!({"data": {"a": 1}}));
        assert_eq!(outcome.status.unwrap(), 403);
        assert_eq!(
            outcome.body,
            r#"{"data":{"a":2},"errors":[{"message":"m"}],"extensions":{"e":1}}"#
        );
        let left = exchange
            .context
            .entries(|all| all.keys().cloned().collect::<Vec<_>>());
        assert_eq!(left, ["seen"]);
    });
}

#[test]
fn a_header_that_is_not_utf_8_is_not_sent() {
    run(async {
        let coprocessor = echo(json!({})).await;
        let yaml = config(&coprocessor.url, "router", "request", r#""headers": true"#);
        let worker = worker(&yaml, "http://localhost:1");
        let mut request = request();
        let value = http::HeaderValue::from_bytes(b"\xff").unwrap();
        request.headers.append("x-b", value);
        let step = service(&worker, "router")
            .request(&noted(), &mut request)
            .await;
        assert!(matches!(step, Step::Continue));
        assert_eq!(coprocessor.last().json()["headers"]["x-b"], json!(["b"]));
    });
}

#[test]
fn conditions_decide_at_each_stage_that_may_have_one() {
    run(async {
        let origin = origin().await;
        for (stage, side, _) in STAGES {
            if stage == "execution" {
                continue;
            }
            for (condition, calls) in [
                (r#"{"eq": ["a", "a"]}"#, 1),
                (r#"{"eq": ["a", "b"]}"#, 0),
                (r#"{"not": {"eq": ["a", "b"]}}"#, 1),
                (r#"{"any": [{"eq": ["a", "b"]}, {"eq": ["b", "b"]}]}"#, 1),
                (r#"{"all": [{"eq": ["a", "b"]}, {"eq": ["b", "b"]}]}"#, 0),
                (r#"{"exists": {"env": "STAGE"}}"#, 1),
                (r#"{"exists": {"env": "NOTHING"}}"#, 0),
            ] {
                let coprocessor = echo(json!({})).await;
                let switches = format!(r#""headers": true, "condition": {condition}"#);
                let yaml = config(&coprocessor.url, stage, side, &switches);
                pass(&yaml, stage, side, &origin).await;
                assert_eq!(
                    coprocessor.seen().len(),
                    calls,
                    "{stage} {side} {condition}"
                );
            }
        }
        for (stage, condition, calls) in [
            ("router", r#"{"eq": [{"response_status": "code"}, 400]}"#, 1),
            ("router", r#"{"eq": [{"response_status": "code"}, 200]}"#, 0),
            (
                "supergraph",
                r#"{"eq": [{"response_header": "vary"}, "origin"]}"#,
                1,
            ),
            ("supergraph", r#"{"exists": {"response_header": "x"}}"#, 0),
            (
                "supergraph",
                r#"{"eq": [{"on_graphql_error": true}, true]}"#,
                1,
            ),
            (
                "subgraph",
                r#"{"eq": [{"on_graphql_error": true}, true]}"#,
                0,
            ),
        ] {
            let coprocessor = echo(json!({})).await;
            let switches = format!(r#""headers": true, "condition": {condition}"#);
            let yaml = config(&coprocessor.url, stage, "response", &switches);
            pass(&yaml, stage, "response", &origin).await;
            let found: Vec<Value> = coprocessor.seen().iter().map(|it| it.json()).collect();
            assert_eq!(found.len(), calls, "{stage} {condition}");
        }
    });
}
