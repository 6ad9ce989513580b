//! Tests subscriptions that continue over another connection to the subgraph.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::connections::{metric_falls_to, metric_reaches};
use crate::deferred::Stream;
use crate::gateway::Gateway;
use crate::sockets::{Session, Sockets, event};
use crate::stub::Stub;
use crate::subscriptions::{COUNT, MULTIPART, config, fatal, open, part, payload, reviews, start};

fn with(sockets: &Sockets, mode: &str) -> Gateway {
    let more = format!("subscription: {{mode: {{passthrough: {{all: {{{mode}}}}}}}}}\n");
    start(&config(sockets, &reviews(), &more))
}

fn count(stream: &mut Stream, session: &mut Session, number: u32) {
    session.event(json!({"count": number}));
    assert_eq!(payload(stream), json!({"data": {"count": number}}));
}

/// The code of the error in the last response.
fn failed(stream: &mut Stream) -> String {
    let told = payload(stream);
    assert_eq!(part(stream), (Value::Null, true), "{told}");
    let code = &told["errors"][0]["extensions"]["code"];
    code.as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn a_connection_that_is_lost_is_opened_again_and_clients_learn_nothing() {
    let sockets = Sockets::start();
    let gateway = with(&sockets, "max_reconnect_attempts: 2, reconnect_delay: 10ms");
    let (mut first, mut session, asked) = open(&gateway, &sockets, MULTIPART, COUNT);
    let mut second = Stream::begin(&gateway, MULTIPART, COUNT);
    let lose: [&dyn Fn(Session); 4] = [
        // Without a close message, with one, and with the codes of servers that stop or fail.
        &drop,
        &|mut session| session.close(1000, ""),
        &|mut session| session.close(1001, "Going away"),
        &|mut session| session.close(1011, "oh"),
    ];
    for (number, lose) in (1_u32..).zip(lose) {
        session.event(json!({"count": number}));
        for stream in [&mut first, &mut second] {
            assert_eq!(payload(stream), json!({"data": {"count": number}}));
        }
        lose(session);
        let (again, same) = sockets.subscribed();
        assert_eq!(same, asked);
        session = again;
        metric_reaches(
            &gateway,
            "graphql_subscriptions_reconnects_total ",
            number.into(),
        );
    }
    // An event resets the number of attempts.
    count(&mut first, &mut session, 5);
    session.complete();
    assert_eq!(part(&mut first), (Value::Null, true));
    assert!(sockets.is_alone());
}

#[test]
fn some_of_many_that_are_lost_at_once_are_opened_again_at_a_time() {
    let sockets = Sockets::start();
    let more = "subscription: {deduplication: {enabled: false}, mode: {passthrough: {all: {max_reconnect_attempts: 1, reconnect_delay: 1ms}}}}\n";
    let gateway = start(&config(&sockets, &reviews(), more));
    let opened = (0..20).map(|_| open(&gateway, &sockets, MULTIPART, COUNT));
    let (_streams, sessions): (Vec<_>, Vec<_>) =
        opened.map(|(stream, session, _)| (stream, session)).unzip();
    drop(sessions);
    // These are connected, but not accepted yet.
    let mut attempts: Vec<_> = (0..16).map(|_| sockets.connected()).collect();
    let waiting = "graphql_subscriptions_reconnects_waiting ";
    metric_reaches(&gateway, waiting, 4);
    assert!(sockets.is_alone());
    // After one is accepted, the next connects.
    attempts[0].agree();
    attempts.push(sockets.connected());
    metric_falls_to(&gateway, waiting, 3);
    assert!(sockets.is_alone());
    drop(attempts);
    for _ in 0..3 {
        sockets.subscribed();
    }
    metric_falls_to(&gateway, waiting, 0);
}

/// Subscriptions with different values of `x-mine` are shared, because deduplication ignores the header. The
/// token of `soon` expires in a few seconds.
fn with_tokens(sockets: &Sockets) -> (Gateway, Stub) {
    let coprocessor = Stub::coprocessor(|message| {
        let mine = message["headers"]["x-mine"][0].clone();
        let entries = &mut message["context"]["entries"];
        entries["apollo::authentication::jwt_claims"] = match mine.as_str() {
            // Clocks may differ by one minute.
            Some("soon") => json!({"sub": mine, "exp": time_of_day() - 60.0 + 6.0}),
            _ => json!({ "sub": mine }),
        };
    });
    let more = format!(
        "coprocessor: {{url: '{}', supergraph: {{request: {{headers: true, context: true}}}}}}\n\
        headers: {{subgraphs: {{prices: {{request: [{{propagate: {{named: x-mine}}}}]}}}}}}\n\
        server: {{http: {{write_timeout: 60s}}}}\n\
        subscription:\n  deduplication: {{all: {{ignored_headers: [x-mine], ignore_auth_context: true}}}}\n  \
        mode: {{passthrough: {{all: {{max_reconnect_attempts: 3, reconnect_delay: 10ms}}}}}}\n",
        coprocessor.url
    );
    (start(&config(sockets, &reviews(), &more)), coprocessor)
}

#[expect(clippy::disallowed_methods, reason = "a token names a time of day")]
fn time_of_day() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap().as_secs_f64()
}

fn asked_as(gateway: &Gateway, sockets: &Sockets, mine: &str, query: &str) -> (Stream, Session) {
    let body = json!({ "query": query }).to_string();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| Stream::send_as(gateway, MULTIPART, mine, &body));
        let (session, _) = sockets.subscribed();
        (asking.join().unwrap(), session)
    })
}

#[test]
fn a_shared_one_is_opened_again_as_a_client_asks_who_is_still_there() {
    let sockets = Sockets::start();
    let (gateway, _coprocessor) = with_tokens(&sockets);
    let (first, session) = asked_as(&gateway, &sockets, "first", COUNT);
    assert_eq!(session.header("x-mine"), Some("first"));
    let body = json!({ "query": COUNT }).to_string();
    let mut second = Stream::send_as(&gateway, MULTIPART, "second", &body);
    drop(first);
    let by_client = "graphql_subscriptions_ended_total{by=\"client\"}";
    metric_reaches(&gateway, by_client, 1);
    drop(session);
    let (mut session, _) = sockets.subscribed();
    assert_eq!(session.header("x-mine"), Some("second"));
    count(&mut second, &mut session, 1);
}

#[test]
fn none_is_opened_again_with_a_token_that_has_expired() {
    let query = "subscription { priceChanged { id } }";
    for has_other in [false, true] {
        let sockets = Sockets::start();
        let (gateway, _coprocessor) = with_tokens(&sockets);
        let (_soon, mut session) = asked_as(&gateway, &sockets, "soon", query);
        let body = json!({ "query": query }).to_string();
        let other = has_other.then(|| Stream::send_as(&gateway, MULTIPART, "other", &body));
        // The client does not read. So the subscription still exists when its token has expired.
        let product = json!({"__typename": "Product", "id": "1".repeat(100_000)});
        for _ in 0..400 {
            session.try_send(event(json!({ "priceChanged": product })));
        }
        assert!(sockets.next_within(Duration::from_secs(7)).is_none());
        drop(session);
        if other.is_some() {
            let (session, _) = sockets.subscribed();
            assert_eq!(session.header("x-mine"), Some("other"));
        } else {
            metric_falls_to(&gateway, "graphql_subscriptions_upstream ", 0);
            assert!(sockets.is_alone());
        }
    }
}

#[test]
fn attempts_have_an_end_and_clients_are_told_the_last_reason() {
    let sockets = Sockets::start();
    let gateway = with(&sockets, "max_reconnect_attempts: 2, reconnect_delay: 10ms");
    let (mut stream, session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    drop(session);
    // The first attempt is accepted, and lost before an event. The second is not accepted.
    drop(sockets.subscribed());
    let mut last = sockets.connected();
    last.read();
    last.close(1013, "try again later");
    assert_eq!(failed(&mut stream), "WEBSOCKET_CLOSE_ERROR");
    assert!(sockets.is_alone());
    metric_reaches(&gateway, "graphql_subscriptions_reconnects_total ", 2);
    // The subgraph closes every new connection.
    let (mut stream, session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    drop((sockets, session));
    assert!(failed(&mut stream).contains("WEBSOCKET"));
    metric_reaches(&gateway, "graphql_subscriptions_reconnects_total ", 4);
}

#[test]
fn what_would_be_the_same_again_is_not_tried_again() {
    type Act<'a> = &'a dyn Fn(&mut Session);
    let sockets = Sockets::start();
    let gateway = with(&sockets, "max_reconnect_attempts: 5, reconnect_delay: 10ms");
    let end: [(&str, &str, Act<'_>); 7] = [
        ("is malformed", "WEBSOCKET_MESSAGE_ERROR", &|session| {
            session.send_text("nonsense");
        }),
        ("is told to be", "WEBSOCKET_CLOSE_ERROR", &|session| {
            session.close(4400, "Bad")
        }),
        ("is not known", "WEBSOCKET_CLOSE_ERROR", &|session| {
            session.close(4401, "Unauthorized")
        }),
        ("may not", "WEBSOCKET_CLOSE_ERROR", &|session| {
            session.close(4403, "Forbidden")
        }),
        ("must not", "WEBSOCKET_CLOSE_ERROR", &|session| {
            session.close(1008, "policy")
        }),
        ("ends with errors", "NO", &|session| {
            let error = json!({"message": "no", "extensions": {"code": "NO"}});
            session.send(json!({"type": "error", "id": "1", "payload": [error]}));
        }),
        ("speaks too long", "WEBSOCKET_MESSAGE_ERROR", &|session| {
            let long = "x".repeat(5 << 20);
            session
                .try_send(json!({"type": "next", "id": "1", "payload": {"data": {"count": long}}}));
        }),
    ];
    for (name, code, end) in end {
        let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
        end(&mut session);
        assert_eq!(failed(&mut stream), code, "{name}");
        assert!(sockets.is_alone(), "{name}");
    }
    // An error at the first opening is reported immediately, whatever its reason.
    let mut stream = std::thread::scope(|scope| {
        let asking = scope.spawn(|| Stream::begin(&gateway, MULTIPART, COUNT));
        drop(sockets.connected());
        asking.join().unwrap()
    });
    let (told, is_last) = part(&mut stream);
    assert!(is_last, "{told}");
    assert!(sockets.is_alone());
    let page = gateway.ask_health("/metrics");
    assert!(
        page.text()
            .contains("graphql_subscriptions_reconnects_total 0")
    );
}

#[test]
fn without_the_key_a_connection_that_is_lost_is_the_end() {
    let sockets = Sockets::start();
    let gateway = with(&sockets, "");
    let (mut stream, session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    drop(session);
    failed(&mut stream);
    assert!(sockets.is_alone());
}

#[test]
fn a_silent_subgraph_is_left_for_another_connection() {
    let sockets = Sockets::start();
    let mode = "heartbeat_interval: 200ms, max_reconnect_attempts: 1, reconnect_delay: 10ms";
    let gateway = with(&sockets, mode);
    let (mut stream, _silent, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let (mut session, _) = sockets.subscribed();
    count(&mut stream, &mut session, 1);
}

/// A subscription with a lost connection. The gateway would open it again after one hour.
fn waits(sockets: &Sockets) -> (Gateway, Stream) {
    let gateway = with(sockets, "max_reconnect_attempts: 1, reconnect_delay: 1h");
    let (mut stream, mut session, _) = open(&gateway, sockets, MULTIPART, COUNT);
    count(&mut stream, &mut session, 1);
    drop(session);
    metric_falls_to(&gateway, "http_client_connections ", 0);
    (gateway, stream)
}

#[test]
fn nothing_is_waited_for_when_nobody_is_there_any_more() {
    let sockets = Sockets::start();
    let (gateway, mut stream) = waits(&sockets);
    // A client that joins now also waits.
    let joined = Stream::begin(&gateway, MULTIPART, COUNT);
    let begin = test_client::now();
    // A reload ends the wait.
    let changed = config(
        &sockets,
        &reviews(),
        "subscription: {mode: {passthrough: {all: {}}}}\n",
    );
    fs::write(gateway.folder.path().join("router.yaml"), changed).unwrap();
    gateway.signal(Signal::HUP);
    assert_eq!(fatal(&mut stream), "SUBSCRIPTION_CONFIG_RELOAD");
    drop(joined);
    metric_falls_to(&gateway, "graphql_subscriptions_upstream ", 0);
    // The end of the last client ends the wait.
    let (gateway, stream) = waits(&sockets);
    drop(stream);
    metric_falls_to(&gateway, "graphql_subscriptions_upstream ", 0);
    // A stop of the gateway ends the wait.
    let (gateway, mut stream) = waits(&sockets);
    gateway.signal(Signal::TERM);
    assert_eq!(fatal(&mut stream), "GATEWAY_STOPPING");
    drop(stream);
    let (status, log) = gateway.wait();
    assert!(status.success(), "{log}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(sockets.is_alone());
}

#[test]
fn a_client_that_takes_nothing_does_not_keep_a_retired_subscription_coming_back() {
    let sockets = Sockets::start();
    let more = "server: {http: {write_timeout: 60s}}\n\
        subscription: {mode: {passthrough: {all: {max_reconnect_attempts: 9, reconnect_delay: 500ms}}}}\n";
    let gateway = start(&config(&sockets, &reviews(), more));
    let query = "subscription { priceChanged { id } }";
    let (_never, mut session, _) = open(&gateway, &sockets, MULTIPART, query);
    let product = json!({"__typename": "Product", "id": "1".repeat(100_000)});
    for _ in 0..400 {
        session.event(json!({ "priceChanged": product }));
    }
    metric_reaches(&gateway, "graphql_subscriptions_events_skipped_total", 200);
    // Another subscription shows that the reload is complete.
    let (mut other, _other, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    let changed = config(&sockets, &reviews(), &more.replace("9", "8"));
    fs::write(gateway.folder.path().join("router.yaml"), changed).unwrap();
    gateway.signal(Signal::HUP);
    assert_eq!(fatal(&mut other), "SUBSCRIPTION_CONFIG_RELOAD");
    drop(session);
    assert!(sockets.next_within(Duration::from_secs(2)).is_none());
}
