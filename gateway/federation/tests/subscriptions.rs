//! Plans subscriptions and executes them for their events.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Fetch, OperationKind, OperationOptions, Operations, Prepared,
    SUBSCRIPTION_DISABLED, SubgraphAnswer, SubgraphRequest, Supergraph,
};

const SDL: &str = include_str!("../../tests/stocks/supergraph.graphql");

const PRICES: &str =
    "subscription Prices($id: ID) { priceChanged(id: $id) { price reviews { score } } }";

fn operations(subscriptions: bool) -> Operations {
    let supergraph = Supergraph::parse(SDL).expect("the supergraph of these tests");
    let options = OperationOptions {
        subscriptions,
        ..OperationOptions::default()
    };
    Operations::new(Arc::new(supergraph), options)
}

fn code(operations: &Operations, query: &str) -> String {
    let refusal = operations.prepare(query, None).expect_err(query);
    refusal.errors[0].code().unwrap_or_default().to_owned()
}

/// Returns one event, and reviews for all other requests.
struct Event {
    body: &'static str,
    seen: RefCell<Vec<String>>,
}

impl Fetch for Event {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let told = format!("{} {} {body}", request.kind.as_str(), request.name);
        self.seen.borrow_mut().push(told);
        if request.kind == OperationKind::Subscription {
            return SubgraphAnswer::from_body(self.body);
        }
        SubgraphAnswer::from_body(r#"{"data":{"_entities":[{"reviews":[{"score":5}]}]}}"#)
    }
}

fn answer(operations: &Operations, prepared: &Prepared, body: &'static str) -> (String, usize) {
    let event = Event {
        body,
        seen: RefCell::default(),
    };
    let variables = prepared.coerce(Some(br#"{"id":"7"}"#)).expect("an id");
    let policies = ErrorPolicies::new(operations.supergraph(), |_| ErrorPolicy::Include);
    let executed = {
        let mut future = Box::pin(prepared.execute(&variables, &event, &policies));
        let mut task = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(executed) = future.as_mut().poll(&mut task) {
                break executed;
            }
        }
    };
    let body = String::from_utf8(executed.into_body().to_vec()).expect("JSON is text");
    let seen = event.seen.into_inner();
    assert!(seen[0].starts_with("subscription prices "), "{seen:?}");
    (body, seen.len())
}

#[test]
fn an_event_is_completed_by_the_other_subgraphs() {
    let operations = operations(true);
    let prepared = operations.prepare(PRICES, None).unwrap();
    assert_eq!(prepared.kind(), OperationKind::Subscription);
    let variables = prepared.coerce(Some(br#"{"id":"7"}"#)).expect("an id");
    let request = prepared.subscription(&variables).unwrap();
    assert_eq!(request.name, "prices");
    assert_eq!(
        std::str::from_utf8(&request.body).unwrap(),
        r#"{"query":"subscription Prices__prices__0($id:ID){priceChanged(id:$id){__typename id price}}","operationName":"Prices__prices__0","variables":{"id":"7"}}"#
    );
    let event = r#"{"data":{"priceChanged":{"__typename":"Product","id":"7","price":3}}}"#;
    let whole = r#"{"data":{"priceChanged":{"price":3,"reviews":[{"score":5}]}}}"#;
    // Once for each event.
    for _ in 0..2 {
        let answered = answer(&operations, &prepared, event);
        assert_eq!(answered, (whole.to_owned(), 2));
    }
    let nothing = answer(&operations, &prepared, r#"{"data":{"priceChanged":null}}"#);
    assert_eq!(nothing, (r#"{"data":{"priceChanged":null}}"#.to_owned(), 1));
}

#[test]
fn what_is_no_event_is_an_error() {
    let operations = operations(true);
    let prepared = operations.prepare(PRICES, None).unwrap();
    for body in ["", "[]", "{}", r#"{"data":"#] {
        let (answer, _) = answer(&operations, &prepared, body);
        assert!(answer.contains("\"errors\""), "{body}: {answer}");
    }
}

#[test]
fn without_them_a_subscription_is_refused() {
    assert_eq!(code(&operations(false), PRICES), SUBSCRIPTION_DISABLED);
    // An invalid subscription is reported as invalid, not as disabled.
    let invalid = "subscription { nothing }";
    assert_eq!(
        code(&operations(false), invalid),
        "GRAPHQL_VALIDATION_FAILED"
    );
}

#[test]
fn a_subscription_has_one_root_field() {
    let operations = operations(true);
    let two = "subscription { silence failing }";
    assert_eq!(code(&operations, two), "GRAPHQL_VALIDATION_FAILED");
}

#[test]
fn plans_show_the_subscription() {
    let operations = operations(true);
    let prepared = operations.prepare(PRICES, None).unwrap();
    let text = prepared.plan_text();
    assert!(text.contains("Subscription(service: \"prices\")"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&prepared.plan_json()).unwrap();
    let first = &json["node"]["nodes"][0];
    assert_eq!(first["kind"], "Subscription", "{json}");
    assert_eq!(first["primary"]["operationKind"], "subscription", "{json}");
}

#[test]
fn a_query_beside_a_subscription_has_none() {
    let operations = operations(true);
    let query = operations.prepare("{ products { id } }", None).unwrap();
    let variables = query.coerce(None).unwrap();
    assert!(query.subscription(&variables).is_none());
}
