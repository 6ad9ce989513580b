//! Tests that the clients of one address leave subscriptions for clients of other addresses.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::client::{Connection, Request, post};
use crate::connections::{metric_falls_to, metric_reaches};
use crate::gateway::{Gateway, Setup};
use crate::sockets::Sockets;
use crate::subscriptions::{COUNT, MULTIPART, SUPERGRAPH, config, open, reviews};

/// The addresses of two clients. The limit does not apply to this machine itself, 127.0.0.1.
const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

fn start(sockets: &Sockets, more: &str) -> Gateway {
    Setup::new(&config(sockets, &reviews(), more))
        .file("supergraph.graphql", SUPERGRAPH)
        .workers("1")
        .start()
}

/// Sends the subscription from this client address.
fn ask(gateway: &Gateway, from: Ipv4Addr, body: &Value) -> Connection {
    let mut connection = gateway.connect_from(from);
    connection.begin(&Request {
        headers: &[
            ("content-type", "application/json"),
            ("accept", MULTIPART),
            ("connection", "close"),
        ],
        ..post(&body.to_string())
    });
    connection
}

fn count() -> Value {
    json!({ "query": COUNT })
}

fn is_refused(mut connection: Connection) {
    let answer = connection.read(false);
    assert_eq!(answer.status, 429, "{}", answer.text());
    assert!(answer.text().contains("SUBSCRIPTION_MAX_LIMIT"));
}

#[test]
fn one_address_has_as_many_subscriptions_as_are_left_for_others() {
    let sockets = Sockets::start();
    let with = |more: &str| {
        let mode = "mode: {passthrough: {all: {}}}";
        let most = "max_opened_subscriptions: 9";
        start(
            &sockets,
            &format!("subscription: {{{most}, {more}{mode}}}\n"),
        )
    };
    let open_as = |gateway: &Gateway, from, so_many: usize, all: u64| {
        let asked: Vec<_> = (0..so_many).map(|_| ask(gateway, from, &count())).collect();
        metric_reaches(gateway, "graphql_subscriptions ", all);
        is_refused(ask(gateway, from, &count()));
        asked
    };
    let gateway = with("");
    // All clients share one subscription at the subgraph.
    let (_own, _session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let one = open_as(&gateway, ONE, 4, 5);
    let _other = open_as(&gateway, OTHER, 2, 7);
    metric_reaches(&gateway, "graphql_subscriptions_refused_total ", 2);
    // A client that leaves makes room for its own address and for others.
    drop(one);
    metric_falls_to(&gateway, "graphql_subscriptions ", 3);
    let _more = open_as(&gateway, OTHER, 2, 5);
    let gateway = with("max_opened_subscriptions_per_address: 7, ");
    let (_own, _session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    open_as(&gateway, ONE, 7, 8);
}

#[test]
fn one_address_has_as_many_websockets_as_are_left_for_others() {
    let sockets = Sockets::start();
    let gateway = start(
        &sockets,
        "limits: {max_upstream_connections: 16}\nsubscription: {deduplication: {enabled: false}, mode: {passthrough: {all: {}}}}\n",
    );
    let open_as = |from| {
        let asked = ask(&gateway, from, &count());
        (asked, sockets.subscribed())
    };
    // Eight WebSockets are allowed in total, and one subgraph may have half of them.
    let _one: Vec<_> = (0..3).map(|_| open_as(ONE)).collect();
    let told = ask(&gateway, ONE, &count()).read_to_end();
    assert!(told.contains("REQUEST_CONCURRENCY_LIMITED"), "{told}");
    open_as(OTHER);
}

#[test]
fn one_address_has_as_much_memory_for_its_requests_as_is_left_for_others() {
    let sockets = Sockets::start();
    let gateway = start(
        &sockets,
        "subscription: {requests_max_bytes: 12KiB, mode: {passthrough: {all: {}}}}\n",
    );
    let long = json!({"query": COUNT, "extensions": {"long": "x".repeat(4_000)}});
    let _one = ask(&gateway, ONE, &long);
    let (_session, _) = sockets.subscribed();
    metric_reaches(&gateway, "graphql_subscriptions_request_bytes ", 4_000);
    is_refused(ask(&gateway, ONE, &long));
    let _other = ask(&gateway, OTHER, &long);
    metric_reaches(&gateway, "graphql_subscriptions_request_bytes ", 8_000);
    is_refused(ask(&gateway, OTHER, &count()));
}

#[test]
fn a_websocket_that_others_stay_with_is_no_longer_for_who_opened_it() {
    let sockets = Sockets::start();
    let gateway = start(
        &sockets,
        "limits: {max_upstream_connections: 16}\nsubscription: {mode: {passthrough: {all: {}}}}\n",
    );
    let count = |to: usize| json!({ "query": format!("subscription {{ count(to: {to}) }}") });
    let open_one = |to| {
        let asked = ask(&gateway, ONE, &count(to));
        (asked, sockets.subscribed())
    };
    let (ones, _sessions): (Vec<_>, Vec<_>) = (1..=3).map(open_one).unzip();
    let mut refused = ask(&gateway, ONE, &count(4));
    assert!(
        refused
            .read_to_end()
            .contains("REQUEST_CONCURRENCY_LIMITED")
    );
    let _others: Vec<_> = (1..=3).map(|to| ask(&gateway, OTHER, &count(to))).collect();
    metric_reaches(&gateway, "graphql_subscriptions_joined_total ", 3);
    drop(ones);
    metric_falls_to(&gateway, "graphql_subscriptions ", 3);
    open_one(4);
}
