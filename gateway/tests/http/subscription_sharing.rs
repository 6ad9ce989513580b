//! Tests subscriptions of several clients that share one subscription at the subgraph.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Request, post};
use crate::connections::{metric_falls_to, metric_reaches};
use crate::deferred::Stream;
use crate::gateway::{Gateway, Setup};
use crate::sockets::{Sockets, event};
use crate::stub::Stub;
use crate::subscriptions::{
    ALL, COUNT, MULTIPART, PRICES, SUPERGRAPH, config, fatal, gateway, open, part, payload,
    payload_of_whole, price, reviews, start, with_review,
};

fn count(number: u32) -> Value {
    json!({"data": {"count": number}})
}

/// Subscribes with this value of `x-mine`. The response has begun, so the subgraph has accepted the
/// subscription.
fn join_as(gateway: &Gateway, mine: &str, query: &str) -> Stream {
    let body = json!({ "query": query }).to_string();
    Stream::send_as(gateway, MULTIPART, mine, &body)
}

fn join(gateway: &Gateway, query: &str) -> Stream {
    join_as(gateway, "yes", query)
}

#[test]
fn what_several_clients_ask_alike_is_one_subscription_at_the_subgraph() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let (mut first, mut session, _) = open(&gateway, &sockets, MULTIPART, PRICES);
    let mut second = join(&gateway, PRICES);
    session.event(price(1, 10));
    for stream in [&mut first, &mut second] {
        assert_eq!(payload(stream), with_review(1, 10));
    }
    // The event is completed for each client, with one request for reviews each.
    assert_eq!(reviews.seen().len(), 2);
    // A later client receives only later events.
    let mut third = join(&gateway, PRICES);
    metric_reaches(&gateway, "graphql_subscriptions ", 3);
    metric_reaches(&gateway, "graphql_subscriptions_upstream ", 1);
    metric_reaches(&gateway, "graphql_subscriptions_joined_total ", 2);
    session.event(price(2, 20));
    for stream in [&mut first, &mut second, &mut third] {
        assert_eq!(payload(stream), with_review(2, 20));
    }
    // The first client leaves, and the others stay.
    drop(first);
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"client\"}",
        1,
    );
    session.event(price(3, 30));
    for stream in [&mut second, &mut third] {
        assert_eq!(payload(stream), with_review(3, 30));
    }
    assert!(sockets.is_alone());
    // The last client ends the subscription.
    drop((second, third));
    let goodbye = json!({"id": "1", "type": "complete"});
    assert_eq!(session.try_read(), Some(goodbye));
    assert_eq!(session.try_read(), None);
    let (mut again, mut session, _) = open(&gateway, &sockets, MULTIPART, PRICES);
    session.event(price(4, 40));
    assert_eq!(payload(&mut again), with_review(4, 40));
}

#[test]
fn the_end_is_for_all_and_nobody_joins_what_has_ended() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let (mut first, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut second = join(&gateway, COUNT);
    session.event(json!({"count": 1}));
    session.complete();
    for stream in [&mut first, &mut second] {
        assert_eq!(payload(stream), count(1));
        assert_eq!(part(stream), (Value::Null, true));
    }
    let (mut first, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut second = join(&gateway, COUNT);
    session.close(1011, "oh");
    for stream in [&mut first, &mut second] {
        let told = payload(stream);
        let code = &told["errors"][0]["extensions"]["code"];
        assert_eq!(code, "WEBSOCKET_CLOSE_ERROR", "{told}");
        assert_eq!(part(stream), (Value::Null, true));
    }
    let (_third, _session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
}

#[test]
fn workers_share_them() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let config = config(&sockets, &reviews, ALL);
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .workers("2")
        .start();
    let (first, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut others: Vec<_> = (0..5).map(|_| join(&gateway, COUNT)).collect();
    assert!(sockets.is_alone());
    drop(first);
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"client\"}",
        1,
    );
    session.event(json!({"count": 1}));
    for stream in &mut others {
        assert_eq!(payload(stream), count(1));
    }
    // The worker that receives the events stops. All clients receive the error.
    gateway.signal(Signal::TERM);
    for stream in &mut others {
        assert_eq!(fatal(stream), "GATEWAY_STOPPING");
    }
    while session.try_read().is_some() {}
}

#[test]
fn those_who_come_while_it_opens_wait_for_the_same_answer() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let more = "supergraph: {early_cancel: true}\n";
    let gateway = gateway(&sockets, &reviews, more);
    let body = json!({ "query": COUNT }).to_string();
    let headers = &[
        ("content-type", "application/json"),
        ("accept", MULTIPART),
        ("x-mine", "yes"),
    ];
    for is_accepted in [true, false] {
        // The first client leaves before the subscription is open.
        let mut first = gateway.connect();
        first.begin(&Request {
            headers,
            ..post(&body)
        });
        let mut session = sockets.connected();
        assert_eq!(session.read()["type"], "connection_init");
        let streams = thread::scope(|scope| {
            let asking = [0, 1].map(|_| scope.spawn(|| join(&gateway, COUNT)));
            metric_reaches(&gateway, "graphql_subscriptions ", 3);
            drop(first);
            metric_falls_to(&gateway, "graphql_subscriptions ", 2);
            if is_accepted {
                session.send(json!({"type": "connection_ack"}));
                assert_eq!(session.read()["type"], "subscribe");
            } else {
                session.close(4403, "Forbidden");
            }
            asking.map(|asking| asking.join().unwrap())
        });
        assert!(sockets.is_alone());
        for mut stream in streams {
            if is_accepted {
                // Both receive the event before one leaves.
                session.event(json!({"count": 1}));
                assert_eq!(payload(&mut stream), count(1));
            } else {
                let told = payload_of_whole(&mut stream);
                let message = told["errors"][0]["message"].as_str().unwrap();
                assert!(message.contains("4403"), "{told}");
            }
        }
        if is_accepted {
            while session.try_read().is_some() {}
        }
    }
}

/// True if two clients share one subscription at the subgraph, with these keys.
fn is_shared(more: &str, mine: &str, body: Value, others: &str, other: Value) -> bool {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let coprocessor = Stub::coprocessor(|message| {
        // The client's header determines the claims and the connection parameters.
        let mine = message["headers"]["x-mine"][0].clone();
        let entries = &mut message["context"]["entries"];
        if mine.as_str().is_some_and(|mine| mine.starts_with("claims")) {
            entries["apollo::authentication::jwt_claims"] = json!({ "sub": mine });
        } else if mine.as_str().is_some_and(|mine| mine.starts_with("init")) {
            let parameters = json!({ "token": mine });
            entries["apollo.subscription.custom_connection_params"] = parameters;
        }
    });
    let more = format!(
        "coprocessor: {{url: '{}', supergraph: {{request: {{headers: true, context: true}}}}}}\n{more}\n",
        coprocessor.url
    );
    let gateway = start(&config(&sockets, &reviews, &more));
    let send =
        |mine: &str, body: &Value| Stream::send_as(&gateway, MULTIPART, mine, &body.to_string());
    thread::scope(|scope| {
        let first = scope.spawn(|| send(mine, &body));
        let (mut session, _) = sockets.subscribed();
        let mut streams = vec![first.join().unwrap()];
        let second = scope.spawn(|| send(others, &other));
        // The response begins when the second client has joined the first, or when its own subscription is
        // accepted.
        let mut own = None;
        while !second.is_finished() && own.is_none() {
            own = sockets.next_within(Duration::from_millis(20));
        }
        if let Some(own) = &mut own {
            own.agree();
        }
        streams.push(second.join().unwrap());
        session.event(json!({"count": 1}));
        if let Some(own) = &mut own {
            own.event(json!({"count": 1}));
        }
        for stream in &mut streams {
            assert_eq!(payload(stream), count(1));
        }
        own.is_none()
    })
}

#[test]
fn what_is_sent_differently_is_not_shared() {
    let rules = "headers: {subgraphs: {prices: {request: [{propagate: {named: x-mine}}]}}}\n";
    let with_rules = format!("{ALL}{rules}");
    let numbers =
        "subscription A($to: Int!) { count(to: $to) } subscription B($to: Int!) { count(to: $to) }";
    let asked = |name: &str, to: u32| json!({"query": numbers, "operationName": name, "variables": {"to": to}});
    let same = || asked("A", 1);
    // If no rule sends the headers, the subgraph receives equal requests.
    assert!(is_shared(ALL, "one", same(), "other", same()));
    assert!(!is_shared(&with_rules, "one", same(), "other", same()));
    assert!(!is_shared(ALL, "one", same(), "one", asked("A", 2)));
    assert!(!is_shared(ALL, "one", same(), "one", asked("B", 1)));
    assert!(!is_shared(ALL, "init1", same(), "init2", same()));
    assert!(is_shared(ALL, "init1", same(), "init1", same()));
    // The subgraph does not receive claims, but they count, as in Apollo Router.
    assert!(!is_shared(ALL, "claims1", same(), "claims2", same()));
    assert!(is_shared(ALL, "claims1", same(), "claims1", same()));
}

#[test]
fn what_counts_and_where_can_be_said() {
    let same = || json!({ "query": COUNT });
    let one_and_other = |deduplication: &str, of: &str| {
        let more = format!(
            "subscription: {{{deduplication}, mode: {{passthrough: {{all: {{}}}}}}}}\nheaders: {{all: {{request: [{{propagate: {{named: x-mine}}}}]}}}}\n"
        );
        let (one, other) = (format!("{of}1"), format!("{of}2"));
        is_shared(&more, &one, same(), &other, same())
    };
    let ignored = "deduplication: {ignored_headers: [X-Mine]}";
    assert!(one_and_other(ignored, ""));
    // The claims still count.
    assert!(!one_and_other(ignored, "claims"));
    let all = "deduplication: {all: {ignored_headers: [x-mine], ignore_auth_context: true}}";
    assert!(one_and_other(all, "claims"));
    let none =
        "deduplication: {all: {enabled: false}, subgraphs: {prices: {ignored_headers: [x-mine]}}}";
    assert!(one_and_other(none, ""));
    for off in [
        "enable_deduplication: false",
        "deduplication: {enabled: false}",
        "deduplication: {subgraphs: {prices: {enabled: false}}}",
    ] {
        let more = format!("subscription: {{{off}, mode: {{passthrough: {{all: {{}}}}}}}}\n");
        assert!(!is_shared(&more, "a", same(), "a", same()), "{off}");
    }
}

#[test]
fn each_client_has_its_own_headers_in_what_completes_an_event() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let rules = "headers: {subgraphs: {reviews: {request: [{propagate: {named: x-mine}}]}}}\n";
    let gateway = gateway(&sockets, &reviews, rules);
    let (mut first, mut session, _) = open(&gateway, &sockets, MULTIPART, PRICES);
    let mut second = join_as(&gateway, "other", PRICES);
    session.event(price(1, 10));
    for stream in [&mut first, &mut second] {
        assert_eq!(payload(stream), with_review(1, 10));
    }
    let seen = reviews.seen();
    let mut mine: Vec<_> = seen.iter().map(|it| it.header("x-mine")).collect();
    mine.sort_unstable();
    assert_eq!(mine, [Some("other"), Some("yes")]);
}

#[test]
fn a_client_that_never_reads_keeps_nothing_from_the_others() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let more = "server: {http: {write_timeout: 60s}}\n";
    let gateway = gateway(&sockets, &reviews, more);
    let query = "subscription { priceChanged { id } }";
    let (_never, mut session, _) = open(&gateway, &sockets, MULTIPART, query);
    let mut reads = join(&gateway, query);
    let long = |number: usize| {
        let id = format!("{number:0>50000}").repeat(2);
        json!({"priceChanged": {"__typename": "Product", "id": id}})
    };
    for number in 1..=400 {
        session.send(event(long(number)));
        let told = payload(&mut reads);
        assert_eq!(
            told["data"]["priceChanged"]["id"],
            long(number)["priceChanged"]["id"]
        );
    }
    // 40 MB. Its queue keeps four events, and the sockets a few.
    metric_reaches(&gateway, "graphql_subscriptions_events_skipped_total", 200);
}

#[test]
fn a_reload_ends_them_for_all_and_the_next_generation_has_its_own() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let (mut first, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut second = join(&gateway, COUNT);
    let changed = format!("{ALL}supergraph: {{introspection: true}}\n");
    let changed = config(&sockets, &reviews, &changed);
    fs::write(gateway.folder.path().join("router.yaml"), changed).unwrap();
    gateway.signal(Signal::HUP);
    for stream in [&mut first, &mut second] {
        assert_eq!(fatal(stream), "SUBSCRIPTION_CONFIG_RELOAD");
    }
    while session.try_read().is_some() {}
    let (mut first, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut second = join(&gateway, COUNT);
    session.event(json!({"count": 1}));
    for stream in [&mut first, &mut second] {
        assert_eq!(payload(stream), count(1));
    }
}
