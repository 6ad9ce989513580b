//! Coprocessors: the message of each stage, the effect of a response, the failures.

use gateway_extensions::{Exchange, ExtensionsWorker, Response, Service, StageRequest, Step};
use http::StatusCode;
use serde_json::{Value, json};

use crate::stand::{
    Answer, CLIENT_QUERY, SDL, Seen, Stand, exchange, json as answer, plan, run, serve, worker,
};

pub(crate) fn request() -> StageRequest {
    StageRequest {
        method: http::Method::POST,
        uri: "/graphql?x=1".parse().unwrap(),
        headers: exchange(&[("x-a", "1"), ("x-a", "2"), ("x-b", "b")])
            .client
            .headers
            .clone(),
        body: CLIENT_QUERY.into(),
    }
}

pub(crate) fn response() -> Response {
    Response {
        status: StatusCode::BAD_REQUEST,
        headers: [(http::header::VARY, "origin".parse().unwrap())]
            .into_iter()
            .collect(),
        body: r#"{"data":{"b":1,"a":2},"errors":[{"message":"m"}],"extensions":{"e":1}}"#.into(),
        part: None,
    }
}

/// An exchange with context entries under new names.
pub(crate) fn noted() -> Exchange {
    let exchange = exchange(&[]);
    exchange.context.insert("mine", json!(1));
    exchange
        .context
        .insert("apollo::telemetry::client_name", json!("web"));
    exchange
}

/// All switches of a stage as JSON (which is YAML).
pub(crate) const REQUEST_ALL: &str = r#""headers": true, "body": true, "context": "all""#;

pub(crate) fn config(url: &str, stage: &str, side: &str, switches: &str) -> String {
    let block = match stage {
        "subgraph" => format!(r#"{{"all": {{"{side}": {{{switches}}}}}}}"#),
        _ => format!(r#"{{"{side}": {{{switches}}}}}"#),
    };
    format!(r#"{{"coprocessor": {{"url": "{url}", "timeout": "2s", "{stage}": {block}}}}}"#)
}

pub(crate) fn service<'a>(worker: &'a ExtensionsWorker, stage: &str) -> &'a Service {
    match stage {
        "router" => worker.router.as_ref(),
        "supergraph" => worker.supergraph.as_ref(),
        _ => worker.execution.as_ref(),
    }
    .expect("the stage is configured")
}

/// A coprocessor that returns its message with `changed` merged into it.
pub(crate) async fn echo(changed: Value) -> Stand {
    serve(move |seen| {
        let mut message = seen.json();
        for (key, value) in changed.as_object().unwrap() {
            message[key] = value.clone();
        }
        Some(answer(message))
    })
    .await
}

/// Sends a request through a stage with a coprocessor that returns exactly `given`.
async fn requested(
    stage: &str,
    switches: &str,
    given: Value,
) -> (Seen, Step, StageRequest, Exchange) {
    let coprocessor = serve(move |_| Some(answer(&given))).await;
    let worker = worker(
        &config(&coprocessor.url, stage, "request", switches),
        "http://localhost:1",
    );
    let (exchange, mut request) = (noted(), request());
    let step = service(&worker, stage)
        .request(&exchange, &mut request)
        .await;
    (coprocessor.last(), step, request, exchange)
}

async fn responded(stage: &str, switches: &str, given: Value) -> (Seen, Response, Exchange) {
    let coprocessor = serve(move |_| Some(answer(&given))).await;
    let worker = worker(
        &config(&coprocessor.url, stage, "response", switches),
        "http://localhost:1",
    );
    let (exchange, mut response) = (noted(), response());
    service(&worker, stage)
        .response(&exchange, &mut response)
        .await;
    (coprocessor.last(), response, exchange)
}

pub(crate) fn name(stage: &str, side: &str) -> String {
    let mut text = stage[..1].to_uppercase() + &stage[1..];
    text += &(side[..1].to_uppercase() + &side[1..]);
    text
}

fn going_on(stage: &str) -> Value {
    json!({"version": 1, "stage": name(stage, "request"), "control": "continue"})
}

fn unchanged(stage: &str) -> Value {
    json!({"version": 1, "stage": name(stage, "response")})
}

pub(crate) fn code(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["errors"][0]["extensions"]["code"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn the_seeds_client_awareness_message_has_these_members_and_no_others() {
    let (seen, step, ..) = run(requested(
        "router",
        r#""headers": true"#,
        going_on("router"),
    ));
    assert!(matches!(step, Step::Continue));
    let mut message = seen.json();
    let id = message["id"].take();
    assert_eq!(id.as_str().unwrap().len(), 36);
    assert_eq!(
        message,
        json!({
            "version": 1, "stage": "RouterRequest", "control": "continue", "id": null,
            "headers": {"x-a": ["1", "2"], "x-b": ["b"]}, "method": "POST"
        })
    );
    assert_eq!(seen.method, "POST");
    assert_eq!(seen.all("content-type"), ["application/json"]);
    assert_eq!(seen.all("accept"), ["application/json"]);
}

#[test]
fn each_request_stage_sends_what_is_switched_on() {
    let client: Value = serde_json::from_str(CLIENT_QUERY).unwrap();
    let entries = json!({"entries": {"mine": 1, "apollo::telemetry::client_name": "web"}});
    let headers = json!({"x-a": ["1", "2"], "x-b": ["b"]});
    for (stage, switches, expected) in [
        (
            "router",
            r#""body": true, "path": true, "sdl": true, "context": "all", "headers": true"#,
            json!({
            "body": CLIENT_QUERY, "path": "/graphql?x=1", "sdl": SDL, "context": entries,
            "headers": headers, "method": "POST"}),
        ),
        (
            "supergraph",
            r#""body": true, "method": true, "sdl": true, "context": "all", "headers": true"#,
            json!({
            "body": client, "method": "POST", "sdl": SDL, "context": entries, "headers": headers}),
        ),
        (
            "execution",
            r#""body": true, "method": true, "context": "all", "headers": true"#,
            json!({
            "body": client, "method": "POST", "context": entries, "headers": headers}),
        ),
        (
            "supergraph",
            r#""context": "deprecated""#,
            json!({
            "context": {"entries": {"mine": 1, "apollo_telemetry::client_name": "web"}}}),
        ),
        (
            "supergraph",
            r#""context": true"#,
            json!({
            "context": {"entries": {"mine": 1, "apollo_telemetry::client_name": "web"}}}),
        ),
        (
            "supergraph",
            r#""context": {"selective": ["mine", "nothing"]}"#,
            json!({
            "context": {"entries": {"mine": 1}}}),
        ),
    ] {
        let (seen, ..) = run(requested(stage, switches, going_on(stage)));
        let mut message = seen.json();
        for member in ["version", "stage", "control", "id"] {
            message.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(message, expected, "{stage} {switches}");
    }
}

#[test]
fn execution_may_see_the_query_plan() {
    run(async {
        let coprocessor = echo(json!({})).await;
        let yaml = config(
            &coprocessor.url,
            "execution",
            "request",
            r#""query_plan": true"#,
        );
        let worker = worker(&yaml, "http://localhost:1");
        assert!(worker.wants_query_plan());
        let mut exchange = exchange(&[]);
        exchange.query_plan = Some(plan());
        let _step = service(&worker, "execution")
            .request(&exchange, &mut request())
            .await;
        assert_eq!(
            coprocessor.last().json()["queryPlan"],
            json!({"kind": "QueryPlan", "node": null})
        );
    });
}

#[test]
fn each_response_stage_sends_what_is_switched_on_and_no_control() {
    let body: Value = serde_json::from_slice(&response().body).unwrap();
    for (stage, switches, expected) in [
        (
            "router",
            r#""body": true, "headers": true, "status_code": true, "sdl": true"#,
            json!({
            "body": std::str::from_utf8(&response().body).unwrap(), "headers": {"vary": ["origin"]},
            "statusCode": 400, "sdl": SDL}),
        ),
        (
            "supergraph",
            r#""body": true, "status_code": true"#,
            json!({"body": body, "statusCode": 400}),
        ),
        (
            "execution",
            r#""body": true, "headers": true"#,
            json!({"body": body, "headers": {"vary": ["origin"]}}),
        ),
        (
            "supergraph",
            r#""body": {"data": true}"#,
            json!({"body": {"data": {"b": 1, "a": 2}}}),
        ),
        (
            "supergraph",
            r#""body": {"errors": true, "extensions": true}"#,
            json!({
            "body": {"errors": [{"message": "m"}], "extensions": {"e": 1}}}),
        ),
    ] {
        let (seen, ..) = run(responded(stage, switches, unchanged(stage)));
        let mut message = seen.json();
        assert_eq!(message["stage"], name(stage, "response"));
        for member in ["version", "stage", "id"] {
            message.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(message, expected, "{stage} {switches}");
    }
}

#[test]
fn selected_members_that_are_absent_are_sent_empty() {
    run(async {
        let coprocessor = echo(json!({})).await;
        let switches = r#""body": {"data": true, "errors": true, "extensions": true}"#;
        let yaml = config(&coprocessor.url, "supergraph", "response", switches);
        let worker = worker(&yaml, "http://localhost:1");
        let mut response = Response {
            body: "{}".into(),
            ..response()
        };
        service(&worker, "supergraph")
            .response(&noted(), &mut response)
            .await;
        assert_eq!(
            coprocessor.last().json()["body"],
            json!({"data": null, "errors": [], "extensions": {}})
        );
    });
}

#[test]
fn an_answer_with_version_and_stage_only_changes_nothing() {
    for stage in ["router", "supergraph", "execution"] {
        let (_, after, _) = run(responded(stage, REQUEST_ALL, unchanged(stage)));
        assert_eq!(after.status, response().status);
        assert_eq!(after.headers, response().headers);
        assert_eq!(after.body, response().body);
        let (_, step, after, _) = run(requested(stage, REQUEST_ALL, going_on(stage)));
        assert!(matches!(step, Step::Continue));
        assert_eq!(after.headers, request().headers);
        assert_eq!(after.body, request().body);
    }
}

#[test]
fn an_echo_of_everything_changes_nothing() {
    run(async {
        let coprocessor = echo(json!({"unknown": 1, "status_code": 200})).await;
        for stage in ["router", "supergraph", "execution"] {
            let yaml = config(&coprocessor.url, stage, "request", REQUEST_ALL);
            let worker = worker(&yaml, "http://localhost:1");
            let (exchange, mut after) = (noted(), request());
            let step = service(&worker, stage).request(&exchange, &mut after).await;
            assert!(matches!(step, Step::Continue), "{stage}: {step:?}");
            assert_eq!(after.headers, request().headers);
            assert_eq!(after.uri, request().uri);
            let body: Value = serde_json::from_slice(&after.body).unwrap();
            assert_eq!(body, serde_json::from_str::<Value>(CLIENT_QUERY).unwrap());
        }
        // As Go writes it: a response message with `"control": null`.
        let coprocessor = echo(json!({"control": null})).await;
        let yaml = config(&coprocessor.url, "router", "response", REQUEST_ALL);
        let worker = worker(&yaml, "http://localhost:1");
        let mut after = response();
        service(&worker, "router")
            .response(&noted(), &mut after)
            .await;
        assert_eq!(
            (after.status, after.body),
            (response().status, response().body)
        );
    });
}

#[test]
fn returned_headers_replace_all_and_lose_what_belongs_to_a_connection() {
    let headers = json!({
        "GUID": ["1", "2", "3"], "Content-Length": ["7"], "connection": ["close"],
        "Transfer-Encoding": ["chunked"]
    });
    let mut given = unchanged("router");
    given["headers"] = headers.clone();
    let (_, after, _) = run(responded("router", r#""headers": true"#, given));
    let lines: Vec<_> = after
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    assert_eq!(
        lines,
        [("guid", b"1".as_slice()), ("guid", b"2"), ("guid", b"3")]
    );
    let mut given = going_on("supergraph");
    given["headers"] = headers;
    let (_, _, after, _) = run(requested("supergraph", r#""headers": true"#, given));
    assert_eq!(after.headers.get_all("guid").iter().count(), 3);
    assert_eq!(after.headers.len(), 3);
}

#[test]
fn bodies_and_uris_are_replaced() {
    let mut given = going_on("router");
    given["body"] = json!("new text");
    given["uri"] = json!("http://elsewhere/");
    let (_, _, after, _) = run(requested("router", REQUEST_ALL, given));
    assert_eq!(
        (after.body.as_ref(), after.uri.to_string().as_str()),
        (b"new text".as_slice(), "/graphql?x=1")
    );

    let mut given = going_on("supergraph");
    given["body"] = json!({"query": "{b}"});
    given["uri"] = json!("http://elsewhere/p");
    let (_, _, after, _) = run(requested("supergraph", REQUEST_ALL, given));
    assert_eq!(
        (after.body.as_ref(), after.uri.to_string().as_str()),
        (br#"{"query":"{b}"}"#.as_slice(), "http://elsewhere/p")
    );

    let mut given = unchanged("router");
    given["body"] = json!("plain");
    let (_, after, _) = run(responded("router", REQUEST_ALL, given));
    assert_eq!(after.body, "plain");

    let mut given = unchanged("execution");
    given["body"] = json!({"data": null});
    let (_, after, _) = run(responded("execution", REQUEST_ALL, given));
    assert_eq!(after.body, r#"{"data":null}"#);
}

#[test]
fn members_that_were_not_sent_stay_as_they_were() {
    let mut given = unchanged("supergraph");
    given["body"] = json!({"data": {"x": 1}, "errors": [{"message": "theirs"}]});
    let (_, after, _) = run(responded("supergraph", r#""body": {"data": true}"#, given));
    assert_eq!(
        after.body,
        r#"{"data":{"x":1},"errors":[{"message":"m"}],"extensions":{"e":1}}"#
    );
}

#[test]
fn control_of_a_response_stage_sets_the_status() {
    for (control, status) in [
        (json!("continue"), 200),
        (json!({"break": 418}), 418),
        (json!(null), 400),
    ] {
        let mut given = unchanged("router");
        given["control"] = control;
        given["statusCode"] = json!(299);
        let (_, after, _) = run(responded("router", r#""headers": true"#, given));
        assert_eq!(after.status.as_u16(), status);
        assert_eq!(after.body, response().body);
    }
}

#[test]
fn context_is_upserted_on_the_way_in_and_replaced_on_the_way_out() {
    let mut given = going_on("supergraph");
    given["context"] = json!({"entries": {"new": [1], "apollo_telemetry::client_version": "2"}});
    let (_, _, _, exchange) = run(requested("supergraph", r#""context": "deprecated""#, given));
    assert_eq!(exchange.context.get("new"), Some(json!([1])));
    assert_eq!(exchange.context.get("mine"), Some(json!(1)));
    assert_eq!(
        exchange
            .context
            .text("apollo::telemetry::client_version")
            .as_deref(),
        Some("2")
    );

    for (switch, kept) in [
        (r#""context": "all""#, vec!["new"]),
        (
            r#""context": {"selective": ["mine"]}"#,
            vec!["apollo::telemetry::client_name", "new"],
        ),
    ] {
        let mut given = unchanged("supergraph");
        given["context"] = json!({"entries": {"new": 1}});
        let (_, _, exchange) = run(responded("supergraph", switch, given));
        let keys: Vec<String> = exchange
            .context
            .entries(|entries| entries.keys().cloned().collect());
        let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, kept, "{switch}");
    }
}

#[test]
fn a_break_is_the_clients_answer() {
    let error = |message: &str, code: &str| json!({"errors": [{"message": message, "extensions": {"code": code}}]});
    let broken = |reason: &str| {
        error(
            &format!("couldn't deserialize coprocessor output body: {reason}"),
            "EXTERNAL_DESERIALIZATION_ERROR",
        )
    };
    for (stage, body, expected) in [
        ("router", None, error("", "ERROR")),
        (
            "router",
            Some(json!("no entry")),
            error("no entry", "ERROR"),
        ),
        (
            "router",
            Some(json!(r#"{"data":{"a":1}}"#)),
            json!({"data": {"a": 1}}),
        ),
        (
            "supergraph",
            Some(json!({"errors": [{"message": "m"}]})),
            json!({"errors": [{"message": "m"}]}),
        ),
        (
            "supergraph",
            None,
            broken("expected an object, found nothing"),
        ),
        (
            "execution",
            Some(json!("text")),
            broken("expected an object, found a string"),
        ),
        (
            "execution",
            Some(json!({})),
            broken("it has neither `data` nor a non-empty list of `errors`"),
        ),
    ] {
        let mut given = going_on(stage);
        given["control"] = json!({"break": 401});
        given["headers"] = json!({"x-a": ["1"], "host": ["h"]});
        given["context"] = json!({"entries": {"new": 1}});
        if let Some(body) = body {
            given["body"] = body;
        }
        let (_, step, _, exchange) = run(requested(stage, REQUEST_ALL, given));
        let Step::Break(response) = step else {
            panic!("{stage} went on")
        };
        assert_eq!(response.status.as_u16(), 401);
        assert_eq!(
            serde_json::from_slice::<Value>(&response.body).unwrap(),
            expected,
            "{stage}"
        );
        assert_eq!(response.headers["content-type"], "application/json");
        assert_eq!(response.headers["x-a"], "1");
        assert!(!response.headers.contains_key("host"));
        assert_eq!(exchange.context.get("new"), Some(json!(1)));
    }
}

#[test]
fn whatever_is_wrong_with_an_answer_is_500_without_a_reason() {
    let with = |key: &str, value: Value| {
        let mut given = going_on("supergraph");
        given[key] = value;
        given
    };
    let without = |key: &str| {
        let mut given = going_on("supergraph");
        given.as_object_mut().unwrap().remove(key);
        given
    };
    for given in [
        json!("nonsense"),
        with("version", json!(2)),
        without("version"),
        with("stage", json!("SupergraphResponse")),
        without("stage"),
        without("control"),
        with("control", json!(null)),
        with("control", json!("stop")),
        with("control", json!({"break": 99})),
        with("control", json!({"break": 1000})),
        with("control", json!({"break": "401"})),
        with("headers", json!({"a b": ["1"]})),
        with("headers", json!({"a": ["1\n2"]})),
        with("body", json!("text")),
        with("uri", json!("http://a b")),
    ] {
        let what = given.to_string();
        let (_, step, ..) = run(requested("supergraph", REQUEST_ALL, given));
        let Step::Break(response) = step else {
            panic!("{what} was accepted")
        };
        assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR, "{what}");
        assert_eq!(
            serde_json::from_slice::<Value>(&response.body).unwrap(),
            json!({"errors": [{"message": "internal server error", "extensions": {"code": "INTERNAL_SERVER_ERROR"}}]})
        );
    }
}

#[test]
fn graphql_answers_are_validated_unless_that_is_switched_off() {
    for (body, is_valid) in [
        (json!({"data": {"a": 1}}), true),
        (json!({"errors": [{"message": "m"}]}), true),
        (json!({"errors": []}), false),
        (json!({"errors": [{}]}), false),
        (json!({}), false),
        (json!("text"), false),
    ] {
        let mut given = unchanged("supergraph");
        given["body"] = body.clone();
        let (_, after, _) = run(responded("supergraph", REQUEST_ALL, given));
        let expected = if is_valid { 400 } else { 500 };
        assert_eq!(after.status.as_u16(), expected, "{body}");
    }
    run(async {
        let coprocessor = echo(json!({"body": "text"})).await;
        let yaml = config(&coprocessor.url, "supergraph", "response", REQUEST_ALL)
            .replace(r#""timeout""#, r#""response_validation": false, "timeout""#);
        let mut after = response();
        let worker = worker(&yaml, "http://localhost:1");
        service(&worker, "supergraph")
            .response(&noted(), &mut after)
            .await;
        assert_eq!(
            (after.status, after.body),
            (response().status, response().body)
        );
    });
}

#[test]
fn a_status_that_is_not_2xx_fails_even_with_a_good_body() {
    run(async {
        let coprocessor = serve(|seen| {
            Some(Answer {
                status: 500,
                ..answer(seen.json())
            })
        })
        .await;
        let yaml = config(&coprocessor.url, "router", "request", REQUEST_ALL);
        let worker = worker(&yaml, "http://localhost:1");
        let step = service(&worker, "router")
            .request(&noted(), &mut request())
            .await;
        assert!(matches!(step, Step::Break(response) if response.status == 500));
    });
}

#[test]
fn a_coprocessor_that_sleeps_is_504() {
    run(async {
        let coprocessor = serve(|_| None).await;
        for stage in ["router", "supergraph", "execution"] {
            let yaml =
                config(&coprocessor.url, stage, "request", REQUEST_ALL).replace("2s", "20ms");
            let worker = worker(&yaml, "http://localhost:1");
            let step = service(&worker, stage)
                .request(&noted(), &mut request())
                .await;
            let Step::Break(response) = step else {
                panic!("{stage} went on")
            };
            assert_eq!(response.status, StatusCode::GATEWAY_TIMEOUT);
            assert_eq!(code(&response.body), "GATEWAY_TIMEOUT");
        }
    });
}

pub(crate) fn down() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}
