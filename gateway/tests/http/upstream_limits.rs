//! Tests limits on the connections to services, and the other requests while a service is slow.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json as value};

use crate::client::{code, post};
use crate::deferred::Stream;
use crate::gateway::{Gateway, Setup};
use crate::sockets::{Session, Sockets};
use crate::stub::{Stub, json};
use crate::subscriptions::{MULTIPART, SUPERGRAPH, open, part, payload};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
const ANSWER: &str = r#"{"data":{"locations":[{"id":"1","name":"A"}]}}"#;
const RATINGS: &str = r#"{"query":"{ locations { id overallRating } }"}"#;
const RATED: &str = r#"{"data":{"locations":[{"id":"1","overallRating":4.0}]}}"#;
const PATIENCE: Duration = Duration::from_secs(20);

/// A service with responses that wait until the sender is dropped.
fn held(answer: &'static str) -> (Stub, mpsc::Sender<()>) {
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let stub = Stub::start(move |_| {
        let _ = gate.lock().unwrap().recv();
        json(answer)
    });
    (stub, release)
}

fn config(locations: &Stub, reviews: &Stub, more: &str) -> String {
    format!(
        "include_subgraph_errors: {{all: true}}\n\
         override_subgraph_url: {{locations: {}, reviews: {}}}\n{more}",
        locations.url, reviews.url
    )
}

fn metric(gateway: &Gateway, name: &str) -> u64 {
    let page = gateway.ask_health("/metrics");
    let line = page.text().lines().find_map(|it| it.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {}", page.text()));
    line.trim().parse().unwrap()
}

fn wait_for(gateway: &Gateway, name: &str, wanted: u64) {
    let start = test_client::now();
    while metric(gateway, name) != wanted {
        assert!(
            start.elapsed() < PATIENCE,
            "{name}: {}",
            metric(gateway, name)
        );
    }
}

/// Sends requests to a slow subgraph from eight clients: some are sent, two wait, the others fail at once.
fn crowd(more: &str, sent: usize) {
    let (slow, release) = held(r#"{"data":{"_entities":[{"overallRating":4.0}]}}"#);
    let quick = Stub::start(|_| {
        json(r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"A"}]}}"#)
    });
    let gateway = Gateway::start(&config(&quick, &slow, more));
    let mut clients: Vec<_> = (0..8).map(|_| gateway.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.begin(&post(RATINGS));
        // One after the other, because the first fetch of each goes to another subgraph.
        let start = test_client::now();
        let known = |name| usize::try_from(metric(&gateway, name)).unwrap();
        while slow.seen().len()
            + known("http_client_requests_waiting ")
            + known("http_client_requests_refused_total ")
            <= number
        {
            assert!(start.elapsed() < PATIENCE);
        }
    }
    let refused = 8 - 2 - sent;
    wait_for(
        &gateway,
        "http_client_requests_refused_total ",
        refused as u64,
    );
    wait_for(&gateway, "http_client_requests_waiting ", 2);
    // Other requests are served meanwhile.
    assert_eq!(gateway.send(&post(NAMES)).text(), ANSWER);
    assert_eq!(slow.seen().len(), sent);
    drop(release);
    let answers: Vec<_> = clients.iter_mut().map(|it| it.read(false)).collect();
    let others: Vec<_> = answers.iter().filter(|it| it.text() != RATED).collect();
    assert_eq!(others.len(), refused);
    for answer in others {
        assert_eq!(
            (answer.status, code(answer).as_str()),
            (200, "REQUEST_CONCURRENCY_LIMITED")
        );
        let body = answer.json();
        assert_eq!(
            body["errors"][0]["message"],
            "too many requests wait for 'reviews'"
        );
        // The data of the other subgraphs is present.
        assert_eq!(body["data"]["locations"][0]["id"], "1");
    }
    assert_eq!(slow.seen().len(), sent + 2);
}

#[test]
fn a_slow_subgraph_gets_so_many_connections_and_no_more() {
    crowd(
        "limits: {max_upstream_connections_per_origin: 3, max_upstream_waiting: 2}",
        3,
    );
}

#[test]
fn a_subgraph_may_have_a_limit_of_its_own() {
    crowd(
        "limits: {max_upstream_waiting: 2}\n\
         traffic_shaping: {subgraphs: {reviews: {max_connections: 1}}}",
        1,
    );
}

#[test]
fn clients_cannot_use_up_the_descriptors_by_asking_a_slow_subgraph() {
    let (slow, release) = held(ANSWER);
    let gateway = Setup::new(&config(&slow, &slow, ""))
        .descriptors(128)
        .start();
    // The maximum number of clients. Each needs a connection to the subgraph.
    let mut clients: Vec<_> = (0..50).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.begin(&post(NAMES));
    }
    // Three eighths of 128 descriptors are 48 connections in total. Half of them are for one address.
    wait_for(&gateway, "http_client_requests_waiting ", 50 - 24);
    // A request takes its place before it is sent, so the subgraph may see it later.
    let start = test_client::now();
    while slow.seen().len() < 24 {
        assert!(start.elapsed() < PATIENCE, "{} of 24", slow.seen().len());
    }
    assert_eq!(metric(&gateway, "http_client_requests_waiting "), 50 - 24);
    assert_eq!(slow.seen().len(), 24);
    drop(release);
    for client in &mut clients {
        assert_eq!(client.read(false).text(), ANSWER);
    }
}

#[test]
fn requests_beyond_what_may_wait_for_a_coprocessor_get_503() {
    let planets = Stub::planets();
    let (slow, release) = held("{}");
    let more = format!(
        "limits: {{max_upstream_connections_per_origin: 1, max_upstream_waiting: 1}}\n\
         coprocessor: {{url: {}, router: {{request: {{headers: true}}}}}}",
        slow.url
    );
    let gateway = Gateway::start(&planets.config(&more));
    let mut clients = [gateway.connect(), gateway.connect()];
    for client in &mut clients {
        client.begin(&post(NAMES));
    }
    wait_for(&gateway, "http_client_requests_waiting ", 1);
    let answer = gateway.send(&post(NAMES));
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (503, "REQUEST_CONCURRENCY_LIMITED")
    );
    drop(release);
    for client in &mut clients {
        // The subgraph received the request, but its response is invalid.
        assert_eq!(client.read(false).status, 500);
    }
}

/// A subgraph with subscriptions and one without, and a gateway with these keys and `descriptors` file
/// descriptors.
fn with_subscriptions(more: &str, descriptors: u32) -> (Sockets, Stub, Gateway) {
    let sockets = Sockets::start();
    let reviews = Stub::start(|_| json(r#"{"data":{"topReview":{"score":5}}}"#));
    let config = format!(
        "override_subgraph_url: {{prices: '{}', reviews: '{}'}}\n\
         include_subgraph_errors: {{all: true}}\n\
         subscription: {{mode: {{passthrough: {{all: {{}}}}}}}}\n{more}",
        sockets.url, reviews.url
    );
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .descriptors(descriptors)
        .start();
    (sockets, reviews, gateway)
}

/// A subscription that differs for each number, from the subgraph's view.
fn numbered(number: usize) -> String {
    format!("subscription {{ count(to: {number}) }}")
}

fn subscribed(gateway: &Gateway, sockets: &Sockets, number: usize) -> (Stream, Session) {
    let (stream, session, _) = open(gateway, sockets, MULTIPART, &numbered(number));
    (stream, session)
}

/// The error of a subscription that finds no connection.
fn refused(gateway: &Gateway, number: usize) -> Value {
    let mut stream = Stream::begin(gateway, MULTIPART, &numbered(number));
    let (mut part, is_last) = part(&mut stream);
    assert!(is_last, "{part}");
    assert_eq!(part["payload"]["data"], value!({"count": null}));
    part["payload"]["errors"][0].take()
}

const REVIEW: &str = r#"{"query":"{ topReview { score } }"}"#;

#[test]
fn a_subscription_has_a_connection_of_those_that_there_may_be() {
    for limits in [
        "limits: {max_upstream_connections: 8}",
        "limits: {max_upstream_connections_per_origin: 4}",
        "traffic_shaping: {subgraphs: {prices: {max_connections: 4}}}",
    ] {
        let (sockets, _reviews, gateway) = with_subscriptions(limits, 1024);
        let (first, mut first_session) = subscribed(&gateway, &sockets, 1);
        let (mut second, mut second_session) = subscribed(&gateway, &sockets, 2);
        let told = refused(&gateway, 3);
        assert_eq!(
            told["extensions"]["code"], "REQUEST_CONCURRENCY_LIMITED",
            "{limits}: {told}"
        );
        assert_eq!(
            told["message"],
            "too many subscriptions and requests have a connection to 'prices'"
        );
        assert_eq!(metric(&gateway, "http_client_requests_refused_total "), 1);
        assert!(sockets.is_alone());
        assert_eq!(gateway.send(&post(REVIEW)).status, 200);
        // The place of a finished subscription is free for the next.
        drop(first);
        while first_session.try_read().is_some() {}
        wait_for(&gateway, "graphql_subscriptions ", 1);
        drop(first_session);
        // The connection to the reviews stays open.
        wait_for(&gateway, "http_client_connections ", 2);
        let (_third, _session) = subscribed(&gateway, &sockets, 3);
        second_session.event(value!({"count": 1}));
        assert_eq!(payload(&mut second), value!({"data": {"count": 1}}));
    }
}

#[test]
fn clients_cannot_use_up_the_descriptors_by_subscribing() {
    let (sockets, reviews, gateway) = with_subscriptions("", 128);
    // Three eighths of 128 descriptors are 48 connections in total. Subscriptions have half of them, and one
    // address has half of that.
    let open: Vec<_> = (0..12)
        .map(|number| subscribed(&gateway, &sockets, number))
        .collect();
    for number in 12..40 {
        let told = refused(&gateway, number);
        assert_eq!(told["extensions"]["code"], "REQUEST_CONCURRENCY_LIMITED");
    }
    assert!(sockets.is_alone());
    assert_eq!(metric(&gateway, "http_client_connections "), 12);
    assert_eq!(gateway.send(&post(REVIEW)).status, 200);
    assert_eq!(reviews.seen().len(), 1);
    drop(open);
    wait_for(&gateway, "http_client_connections ", 1);
    subscribed(&gateway, &sockets, 40);
}
