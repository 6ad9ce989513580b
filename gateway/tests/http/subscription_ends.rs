//! Tests the ends of subscriptions: slow clients, stops, reloads, and limits of time.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use rustix::process::Signal;
use serde_json::json;

use crate::client::post;
use crate::connections::metric_reaches;
use crate::deferred::Stream;
use crate::sockets::{Sockets, event};
use crate::stub::{Answer, Stub, json as answer_json};
use crate::subscriptions::{
    ALL, COUNT, MULTIPART, PRICES, REVIEWS, SERVER_SENT, SUPERGRAPH, config, fatal, gateway, open,
    part, payload, price, reviews, start, with_review,
};

#[test]
fn a_client_that_never_reads_is_cut_while_others_are_served() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let more = "server: {http: {write_timeout: 500ms}}\n";
    let gateway = gateway(&sockets, &reviews, more);
    let (stream, mut session, _) = open(&gateway, &sockets, MULTIPART, PRICES);
    let flood = thread::spawn(move || {
        // A flood of long events, until the gateway ends the connection.
        let long = "1".repeat(100_000);
        let data = json!({"priceChanged": {"__typename": "Product", "id": long, "price": 1}});
        let end = test_client::now() + Duration::from_secs(15);
        while session.try_send(event(data.clone())) && test_client::now() < end {}
        test_client::now() < end
    });
    metric_reaches(
        &gateway,
        "http_server_connections_closed_total{cause=\"write_timeout\"}",
        1,
    );
    let other = post(r#"{"query":"{ __typename }"}"#);
    assert_eq!(gateway.send(&other).status, 200);
    assert!(flood.join().unwrap(), "the gateway hung up");
    drop(stream);
}

#[test]
fn events_without_a_pause_do_not_put_off_the_end() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let mode = "subscription: {max_lifetime: 1s, mode: {passthrough: {all: {}}}}\n";
    let gateway = start(&config(&sockets, &reviews, mode));
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let flood = thread::spawn(move || while session.try_send(event(json!({"count": 1}))) {});
    let begin = test_client::now();
    let mut events = 0;
    let (last, is_last) = loop {
        let (part, is_last) = part(&mut stream);
        if part["payload"].is_null() {
            break (part, is_last);
        }
        events += 1;
        assert!(begin.elapsed() < Duration::from_secs(10), "{events} events");
    };
    assert!(is_last, "{last}");
    let code = &last["errors"][0]["extensions"]["code"];
    assert_eq!(code, "SUBSCRIPTION_MAX_LIFETIME", "{last}");
    assert!(events > 100, "{events} events");
    // The gateway also closes the connection to the subgraph.
    flood.join().unwrap();
}

#[test]
fn signs_of_life_come_while_nothing_happens() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let (mut multipart, _session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut server_sent = Stream::begin(&gateway, SERVER_SENT, COUNT);
    multipart.chunk().unwrap();
    server_sent.chunk().unwrap();
    assert_eq!(
        multipart.chunk().unwrap(),
        "\r\ncontent-type: application/json\r\n\r\n{}\r\n--graphql"
    );
    assert_eq!(server_sent.chunk().unwrap(), ":\n\n");
}

#[test]
fn a_stop_ends_subscriptions_at_once() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let more = "supergraph: {connection_shutdown_timeout: 30s}\n";
    let gateway = gateway(&sockets, &reviews, more);
    let (mut multipart, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut server_sent = Stream::begin(&gateway, SERVER_SENT, COUNT);
    server_sent.chunk().unwrap();
    let begin = test_client::now();
    gateway.signal(Signal::TERM);
    assert_eq!(fatal(&mut multipart), "GATEWAY_STOPPING");
    let end = server_sent.chunk().unwrap();
    assert!(end.contains("GATEWAY_STOPPING"), "{end}");
    assert!(end.ends_with("\n\nevent: complete\ndata: \n\n"), "{end}");
    assert_eq!(server_sent.chunk(), None);
    drop((multipart, server_sent));
    let (status, log) = gateway.wait();
    assert!(status.success(), "{log}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    while session.try_read().is_some() {}
}

#[test]
fn a_reload_ends_subscriptions_and_says_why() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let write = |name: &str, text: &str| {
        fs::write(gateway.folder.path().join(name), text).unwrap();
        gateway.signal(Signal::HUP);
    };
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    session.event(json!({"count": 1}));
    payload(&mut stream);
    let changed = config(
        &sockets,
        &reviews,
        &format!("{ALL}supergraph: {{introspection: true}}\n"),
    );
    write("router.yaml", &changed);
    assert_eq!(fatal(&mut stream), "SUBSCRIPTION_CONFIG_RELOAD");
    while session.try_read().is_some() {}
    let (mut stream, _session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let schema = SUPERGRAPH.replace("  silence: Int", "  silence: Int\n  quiet: Int");
    assert_ne!(schema, SUPERGRAPH);
    write("supergraph.graphql", &schema);
    assert_eq!(fatal(&mut stream), "SUBSCRIPTION_SCHEMA_RELOAD");
    // New subscriptions use the new schema immediately.
    let (mut stream, mut session, _) =
        open(&gateway, &sockets, MULTIPART, "subscription { quiet }");
    session.event(json!({"quiet": 1}));
    assert_eq!(payload(&mut stream), json!({"data": {"quiet": 1}}));
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"gateway\"}",
        2,
    );
}

#[test]
fn a_subscription_has_a_longest_life() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let mode = "subscription: {max_lifetime: 300ms, mode: {passthrough: {all: {}}}}\n";
    let gateway = start(&config(&sockets, &reviews, mode));
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    assert_eq!(fatal(&mut stream), "SUBSCRIPTION_MAX_LIFETIME");
    assert_eq!(session.read()["type"], "complete");
}

#[test]
fn an_event_whose_fetches_take_too_long_is_a_timeout_and_the_next_one_comes() {
    let is_first = Mutex::new(true);
    let reviews = Stub::start(
        move |_| match std::mem::take(&mut *is_first.lock().unwrap()) {
            true => Answer::Hang,
            false => answer_json(REVIEWS),
        },
    );
    let sockets = Sockets::start();
    let more = "traffic_shaping: {router: {timeout: 1s}, all: {timeout: 1h}}\n";
    let gateway = gateway(&sockets, &reviews, more);
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, PRICES);
    session.event(price(1, 1));
    session.event(price(2, 2));
    let first = payload(&mut stream);
    assert_eq!(first["errors"][0]["extensions"]["code"], "GATEWAY_TIMEOUT");
    assert_eq!(payload(&mut stream), with_review(2, 2));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a token names a time of day")]
fn a_subscription_ends_with_the_token_of_its_client() {
    let coprocessor = Stub::coprocessor(|message| {
        // The token expires in one second. Clocks may differ by 60 seconds, so `exp` is 59 seconds ago.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let end = now.as_secs_f64() - 60.0 + 1.0;
        let claims = json!({"sub": "a", "exp": end});
        let entries = &mut message["context"]["entries"];
        entries["apollo::authentication::jwt_claims"] = claims;
        entries["apollo.subscription.custom_connection_params"] = json!({"token": "t"});
    });
    let more = format!(
        "coprocessor: {{url: '{}', supergraph: {{request: {{context: true}}}}}}\n",
        coprocessor.url
    );
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, &more);
    let (mut stream, mut session, _) =
        open(&gateway, &sockets, MULTIPART, "subscription { secret }");
    assert_eq!(session.parameters, json!({"token": "t"}));
    session.event(json!({"secret": 1}));
    assert_eq!(payload(&mut stream), json!({"data": {"secret": 1}}));
    assert_eq!(fatal(&mut stream), "SUBSCRIPTION_JWT_EXPIRED");
    assert_eq!(session.read()["type"], "complete");
}
