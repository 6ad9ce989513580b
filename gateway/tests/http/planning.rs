//! Tests attacks with operations that are expensive to plan.

use serde_json::{Value, json};

use crate::client::{code, post};
use crate::gateway::Gateway;
use crate::stub::{Answer, Stub};

/// An operation near the limit of selections. Each number gives another operation.
fn expensive(number: usize) -> String {
    let fields: String = (0..400).map(|index| format!("a{index}:name ")).collect();
    let parts: String = (0..9)
        .map(|index| format!("b{index}:locations{{...F}} "))
        .collect();
    query(&format!(
        "query Q{number} {{{parts}}} fragment F on Location{{{fields}}}"
    ))
}

fn query(text: &str) -> String {
    json!({"query": text}).to_string()
}

fn metric(gateway: &Gateway, name: &str) -> u64 {
    let metrics = gateway.ask_health("/metrics");
    let text = metrics.text();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    let value = lines.find_map(|rest| rest.strip_prefix(' '));
    let value = value.unwrap_or_else(|| panic!("no {name} in {text}"));
    value.parse().unwrap()
}

const QUEUED: &str = "apollo_router_compute_jobs_queued";

#[test]
fn a_cheap_operation_does_not_wait_for_expensive_ones() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("limits: {max_aliases: null}"));
    let mut others: Vec<_> = (0..8)
        .map(|number| {
            let mut connection = gateway.connect();
            connection.begin(&post(&expensive(number)));
            connection
        })
        .collect();
    // One operation is in progress. At first it can be two, before the gateway detects that they are
    // expensive.
    while metric(&gateway, QUEUED) < 6 {}
    let response = gateway.send(&post(&query("{ locations { name } }")));
    assert_eq!(response.status, 200, "{}", response.text());
    // The other operations still wait.
    assert!(metric(&gateway, QUEUED) > 0);
    // Planning stops for clients that leave, although other work continues without its client.
    others.clear();
    while metric(&gateway, QUEUED) > 0 {}
}

#[test]
fn names_are_resolved_while_operations_wait_to_be_planned() {
    // Each response ends its connection, so the next request resolves the name again.
    let subgraph = Stub::start(|_| {
        let body = r#"{"data":{"locations":[{"id":"1","name":"A"}]}}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 x\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        Answer::Raw(answer.into_bytes())
    });
    let url = subgraph.url.replace("127.0.0.1", "localhost");
    let gateway = Gateway::start(&format!(
        "override_subgraph_url: {{locations: '{url}'}}\nlimits: {{max_aliases: null}}\n"
    ));
    let known = query("{ locations { id name } }");
    assert_eq!(gateway.send(&post(&known)).status, 200);
    let mut others: Vec<_> = (0..8)
        .map(|number| {
            let mut connection = gateway.connect();
            connection.begin(&post(&expensive(number)));
            connection
        })
        .collect();
    while metric(&gateway, QUEUED) < 6 {}
    let response = gateway.send(&post(&known));
    assert_eq!(
        response.text(),
        r#"{"data":{"locations":[{"id":"1","name":"A"}]}}"#
    );
    assert!(metric(&gateway, QUEUED) > 0, "the planner was idle already");
    assert_eq!(subgraph.seen().len(), 2);
    others.clear();
}

#[test]
fn more_than_can_wait_is_told_to_come_again() {
    let planets = Stub::planets();
    let gateway = Gateway::start(
        &planets
            .config("limits: {max_aliases: null}\nsupergraph: {query_planning: {queue_size: 2}}"),
    );
    let mut others: Vec<_> = (0..12)
        .map(|number| {
            let mut connection = gateway.connect();
            connection.begin(&post(&expensive(number)));
            connection
        })
        .collect();
    while metric(&gateway, "apollo_router_compute_jobs_queue_is_full_total") == 0 {}
    let refused = others.iter_mut().find_map(|connection| {
        let response = connection.read(false);
        (response.status == 503).then_some(response)
    });
    let refused = refused.expect("one was counted as refused");
    assert_eq!(code(&refused), "REQUEST_CONCURRENCY_LIMITED");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(
        refused
            .text()
            .contains("concurrency limited during query processing")
    );
}

#[test]
fn an_operation_that_takes_too_long_is_refused_and_remembered() {
    let planets = Stub::planets();
    let config = "limits: {max_aliases: null}\nsupergraph: {query_planning: {timeout: 1ms}}\n";
    let gateway = Gateway::start(&planets.config(config));
    let body = expensive(0);
    let mut connection = gateway.connect();
    let mut sent = 0;
    // The first requests may receive status 503, if the thread was slow to end the work.
    let refusal = loop {
        sent += 1;
        let response = connection.send(&post(&body));
        if code(&response) == "QUERY_PLANNING_FAILED" {
            break response;
        }
        assert_eq!(response.status, 503, "{}", response.text());
    };
    assert!(
        refusal.text().contains("could not be planned within 1ms"),
        "{}",
        refusal.text()
    );
    let work = "apollo_router_query_planning_plan_duration_seconds_count";
    for _ in 0..2 * sent + 10 {
        assert_eq!(
            code(&connection.send(&post(&body))),
            "QUERY_PLANNING_FAILED"
        );
    }
    // Earlier operations may finish meanwhile. Each is first tried with little effort.
    assert!(metric(&gateway, work) <= 2 * sent);
}

#[test]
fn an_operation_that_means_too_much_is_refused_before_it_is_validated() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    // An attack that used to take 5 s: 9.6 KB with 18,000 fields.
    let fields: String = (0..600).map(|index| format!("a{index}:nothing ")).collect();
    let parts: String = (0..30)
        .map(|index| format!("b{index}:locations{{...F}} "))
        .collect();
    let body = query(&format!("{{{parts}}} fragment F on Location{{{fields}}}"));
    let response = gateway.send(&post(&body));
    assert_eq!(response.status, 400);
    let told: Value = response.json();
    let message = told["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("more than 4000 selections"), "{message}");
}

#[test]
fn long_names_count_as_the_selections_that_they_cost_as_much_as() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let long = "n".repeat(700_000);
    for text in [
        format!("{{{long}:locations{{id}}}}"),
        format!("{{locations{{{long}:id}}}}"),
        format!("{{locations{{{long}}}}}"),
        format!("query {long}{{locations{{id}}}}"),
        format!("query(${long}:ID!){{location(id:${long}){{id}}}}"),
        format!("{{locations{{...{long}}}}} fragment {long} on Location{{id}}"),
        format!("{{locations{{... on {long}{{id}}}}}}"),
        format!("{{location({long}:1,id:1){{id}}}}"),
        format!("{{locations{{id @{long}}}}}"),
    ] {
        let response = gateway.send(&post(&query(&text)));
        assert_eq!(response.status, 400);
        let told: Value = response.json();
        let message = told["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains("more than 4000 selections"), "{message}");
    }
    assert!(planets.seen().is_empty());
    // Strings are not names.
    let text = format!("{{location(id:\"{long}\"){{name}}}}");
    assert_eq!(gateway.ask(&text), r#"{"data":{"location":{"name":"A"}}}"#);
}

#[test]
fn the_limits_on_operations_hold_without_configuration() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let numbered = |count: usize, field: &str| -> String {
        (0..count)
            .map(|index| format!("a{index}:{field} "))
            .collect()
    };
    for (text, code_expected) in [
        (
            format!("{{locations{{{}}}}}", numbered(501, "name")),
            "MAX_ALIASES_LIMIT",
        ),
        (
            format!("{{{}}}", numbered(201, "locations{id}")),
            "MAX_ROOT_FIELDS_LIMIT",
        ),
    ] {
        let response = gateway.send(&post(&query(&text)));
        assert_eq!(
            (response.status, code(&response).as_str()),
            (400, code_expected)
        );
    }
    assert_eq!(
        gateway.ask("{locations{id name}}"),
        r#"{"data":{"locations":[{"id":"1","name":"A"},{"id":"2","name":"B"}]}}"#
    );
}
