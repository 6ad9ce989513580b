//! Subscriptions: to clients by multipart and server-sent events, to subgraphs by WebSocket.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Request, get, post};
use crate::connections::metric_reaches;
use crate::deferred::Stream;
use crate::gateway::{Gateway, Setup};
use crate::sockets::{Session, Sockets, event};
use crate::stub::{Stub, json as answer_json};

pub(crate) const SUPERGRAPH: &str = include_str!("../stocks/supergraph.graphql");

pub(crate) const MULTIPART: &str =
    "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0,application/json";
pub(crate) const SERVER_SENT: &str = "text/event-stream";

pub(crate) const PRICES: &str =
    "subscription Prices { priceChanged { id price reviews { score } } }";
pub(crate) const COUNT: &str = "subscription { count(to: 3) }";

pub(crate) const REVIEWS: &str = r#"{"data":{"_entities":[{"reviews":[{"score":5}]}]}}"#;

pub(crate) fn reviews() -> Stub {
    Stub::start(|_| answer_json(REVIEWS))
}

pub(crate) fn config(sockets: &Sockets, reviews: &Stub, more: &str) -> String {
    format!(
        "override_subgraph_url: {{prices: '{}/graphql', reviews: '{}/r'}}\ninclude_subgraph_errors: {{all: true}}\n{more}\n",
        sockets.url, reviews.url
    )
}

pub(crate) const ALL: &str = "subscription: {mode: {passthrough: {all: {path: /ws}}}}\n";

pub(crate) fn start(config: &str) -> Gateway {
    Setup::new(config)
        .file("supergraph.graphql", SUPERGRAPH)
        .start()
}

pub(crate) fn gateway(sockets: &Sockets, reviews: &Stub, more: &str) -> Gateway {
    start(&config(sockets, reviews, &format!("{ALL}{more}")))
}

/// Opens a subscription that the subgraph accepts. Also returns the message that the subgraph received.
pub(crate) fn open(
    gateway: &Gateway,
    sockets: &Sockets,
    accept: &str,
    query: &str,
) -> (Stream, Session, Value) {
    thread::scope(|scope| {
        // The response begins after the subgraph has accepted.
        let asking = scope.spawn(|| Stream::begin(gateway, accept, query));
        let (session, subscribe) = sockets.subscribed();
        (asking.join().unwrap(), session, subscribe)
    })
}

pub(crate) fn price(id: u32, price: u32) -> Value {
    json!({"priceChanged": {"__typename": "Product", "id": id.to_string(), "price": price}})
}

pub(crate) fn with_review(id: u32, price: u32) -> Value {
    json!({"data": {"priceChanged": {"id": id.to_string(), "price": price, "reviews": [{"score": 5}]}}})
}

/// The JSON of the next part without heartbeats, and true if the end follows.
pub(crate) fn part(stream: &mut Stream) -> (Value, bool) {
    loop {
        let text = stream.chunk().expect("a part");
        if text == "--\r\n" {
            return (Value::Null, true);
        }
        let (_, inner) = text
            .split_once("content-type: application/json\r\n\r\n")
            .unwrap_or_else(|| panic!("{text:?}"));
        let (inner, end) = inner.split_once("\r\n--graphql").unwrap();
        let part: Value = serde_json::from_str(inner).unwrap();
        if part != json!({}) {
            return (part, end == "--\r\n");
        }
    }
}

pub(crate) fn payload(stream: &mut Stream) -> Value {
    let (mut part, is_last) = part(stream);
    assert!(!is_last, "{part}");
    part["payload"].take()
}

/// The code of the error that ends a subscription.
pub(crate) fn fatal(stream: &mut Stream) -> String {
    let (part, is_last) = part(stream);
    assert!(is_last, "{part}");
    assert!(part["payload"].is_null(), "{part}");
    assert_eq!(stream.chunk(), None);
    let code = &part["errors"][0]["extensions"]["code"];
    code.as_str().unwrap_or_else(|| panic!("{part}")).to_owned()
}

/// The code of the first error in the only response of a subscription that did not open.
fn only(stream: &mut Stream) -> String {
    let payload = payload_of_whole(stream);
    let code = &payload["errors"][0]["extensions"]["code"];
    code.as_str()
        .unwrap_or_else(|| panic!("{payload}"))
        .to_owned()
}

pub(crate) fn payload_of_whole(stream: &mut Stream) -> Value {
    let media = "content-type: multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0";
    assert!(stream.has(media), "{}", stream.head);
    let (mut part, is_last) = part(stream);
    assert!(is_last, "{part}");
    assert_eq!(stream.chunk(), None);
    part["payload"].take()
}

#[test]
fn each_event_is_completed_and_sent_as_a_part() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let rules = "headers: {all: {request: [{propagate: {named: x-mine}}]}}\n";
    let gateway = gateway(&sockets, &reviews, rules);
    let (mut stream, mut session, subscribe) = open(&gateway, &sockets, MULTIPART, PRICES);
    assert!(stream.has("content-type: multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0"));
    assert!(!stream.head.contains("content-encoding"), "{}", stream.head);
    assert_eq!(session.target, "/ws");
    assert_eq!(
        session.header("sec-websocket-protocol"),
        Some("graphql-transport-ws")
    );
    assert_eq!(session.header("x-mine"), Some("yes"));
    assert_eq!(subscribe["type"], "subscribe");
    assert_eq!(
        subscribe["payload"],
        json!({"query": "subscription Prices__prices__0{priceChanged{__typename id price}}", "operationName": "Prices__prices__0"})
    );
    // These headers arrive before any event.
    assert_eq!(
        stream.chunk().unwrap(),
        "\r\n--graphql\r\ncontent-type: application/json\r\n\r\n{}\r\n--graphql"
    );
    session.event(price(1, 10));
    assert_eq!(
        stream.chunk().unwrap(),
        "\r\ncontent-type: application/json\r\n\r\n{\"payload\":{\"data\":{\"priceChanged\":{\"id\":\"1\",\"price\":10,\"reviews\":[{\"score\":5}]}}}}\r\n--graphql"
    );
    session.event(price(2, 20));
    assert_eq!(payload(&mut stream), with_review(2, 20));
    assert_eq!(reviews.seen().len(), 2);
    assert_eq!(reviews.seen()[1].header("x-mine"), Some("yes"));
    session.complete();
    assert_eq!(stream.chunk().unwrap(), "--\r\n");
    assert_eq!(stream.chunk(), None);
    // The connection stays open.
    assert_eq!(
        session.try_read(),
        Some(json!({"id": "1", "type": "complete"}))
    );
    assert_eq!(session.try_read(), None);
}

#[test]
fn server_sent_events_are_for_who_takes_them() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let (mut stream, mut session, _) = open(&gateway, &sockets, SERVER_SENT, PRICES);
    assert!(
        stream.has("content-type: text/event-stream"),
        "{}",
        stream.head
    );
    assert!(stream.has("cache-control: no-cache"), "{}", stream.head);
    assert_eq!(stream.chunk().unwrap(), ":\n\n");
    session.event(price(1, 10));
    assert_eq!(
        stream.chunk().unwrap(),
        format!(
            "event: next\ndata: {}\n\n",
            r#"{"data":{"priceChanged":{"id":"1","price":10,"reviews":[{"score":5}]}}}"#
        )
    );
    session.complete();
    assert_eq!(stream.chunk().unwrap(), "event: complete\ndata: \n\n");
    assert_eq!(stream.chunk(), None);
}

#[test]
fn who_takes_only_events_gets_every_answer_as_one() {
    let (sockets, reviews) = (
        Sockets::start(),
        Stub::start(|_| answer_json(r#"{"data":{"topReview":{"score":1}}}"#)),
    );
    let on = gateway(&sockets, &reviews, "");
    let headers = &[
        ("content-type", "application/json"),
        ("accept", SERVER_SENT),
    ][..];
    let ask = |gateway: &Gateway, query: &str| {
        let body = json!({ "query": query }).to_string();
        gateway.send(&Request {
            headers,
            ..post(&body)
        })
    };
    let answer = ask(&on, "{ topReview { score } }");
    assert_eq!(
        answer.text(),
        "event: next\ndata: {\"data\":{\"topReview\":{\"score\":1}}}\n\nevent: complete\ndata: \n\n"
    );
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    // The status reports a refusal.
    let answer = ask(&on, "{ nothing }");
    assert_eq!(answer.status, 400);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    // A browser's `EventSource` sends a GET.
    let target = "/?query=%7BtopReview%7Bscore%7D%7D";
    let headers = &[("accept", SERVER_SENT), ("x-apollo-operation-name", "x")][..];
    let answer = on.send(&Request {
        headers,
        ..get(target)
    });
    assert!(
        answer.text().starts_with("event: next\n"),
        "{}",
        answer.text()
    );
    let off = start(&config(&sockets, &reviews, ""));
    assert_eq!(ask(&off, "{ topReview { score } }").status, 406);
}

#[test]
fn refusals_say_what_is_missing() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let on = gateway(
        &sockets,
        &reviews,
        "batching: {enabled: true, mode: batch_http_link}\n",
    );
    let off = start(&config(
        &sockets,
        &reviews,
        "subscription: {enabled: false}\n",
    ));
    let code = |stream: Stream| {
        let status = stream.head[9..12].to_owned();
        let body: Value = serde_json::from_str(&stream.whole()).unwrap();
        let body = if body.is_array() {
            body[0].clone()
        } else {
            body
        };
        let code = body["errors"][0]["extensions"]["code"]
            .as_str()
            .unwrap()
            .to_owned();
        (status, code)
    };
    for accept in [
        "*/*",
        "application/json",
        "multipart/mixed",
        "multipart/mixed;deferSpec=20220824,application/json",
    ] {
        let told = code(Stream::begin(&on, accept, COUNT));
        assert_eq!(
            told,
            ("406".to_owned(), "SUBSCRIPTION_BAD_HEADER".to_owned()),
            "{accept}"
        );
    }
    // A client that accepts only `application/json` receives a refusal with status 200.
    for (accept, status) in [(MULTIPART, "200"), ("*/*", "400")] {
        let told = code(Stream::begin(&off, accept, COUNT));
        assert_eq!(
            told,
            (status.to_owned(), "SUBSCRIPTION_DISABLED".to_owned())
        );
    }
    let list = json!([{ "query": COUNT }]).to_string();
    let (_, told) = code(Stream::send(&on, MULTIPART, &list));
    assert_eq!(told, "SUBSCRIPTION_BAD_HEADER");
    assert!(sockets.is_alone());
}

#[test]
fn a_subgraph_without_a_way_to_send_events_is_told() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let mode = "subscription: {mode: {passthrough: {subgraphs: {reviews: {path: /ws}}}}}\n";
    let gateway = start(&config(&sockets, &reviews, mode));
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    assert_eq!(only(&mut stream), "INVALID_SUBSCRIPTION_MODE");
}

#[test]
fn a_subgraph_that_fails_is_an_error_and_an_end() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let limits = "traffic_shaping: {all: {timeout: 1s}}\n";
    let gateway = gateway(&sockets, &reviews, limits);
    let refuse: [(&str, &dyn Fn(Session)); 5] = [
        ("never accepts", &|mut session| {
            while session.try_read().is_some() {}
        }),
        ("hangs up", &drop),
        ("forbids", &|mut session| {
            session.read();
            session.close(4403, "Forbidden");
            while session.try_read().is_some() {}
        }),
        ("speaks too early", &|mut session| {
            session.event(json!({"count": 1}));
            while session.try_read().is_some() {}
        }),
        ("speaks nonsense", &|mut session| {
            session.send_text("nonsense");
            while session.try_read().is_some() {}
        }),
    ];
    for (name, act) in refuse {
        let mut stream = thread::scope(|scope| {
            let asking = scope.spawn(|| Stream::begin(&gateway, MULTIPART, COUNT));
            act(sockets.connected());
            asking.join().unwrap()
        });
        let payload = payload_of_whole(&mut stream);
        assert!(payload["data"]["count"].is_null(), "{name}: {payload}");
        let code = payload["errors"][0]["extensions"]["code"].as_str().unwrap();
        assert!(code.contains("WEBSOCKET"), "{name}: {payload}");
        let message = payload["errors"][0]["message"].as_str().unwrap();
        assert_eq!(message.contains("4403"), name == "forbids", "{payload}");
    }
}

#[test]
fn a_subgraph_that_fails_later_is_an_error_and_an_end() {
    type Act<'a> = &'a dyn Fn(&mut Session);
    let (sockets, reviews) = (Sockets::start(), reviews());
    let limits = "limits: {subgraph: {all: {http_max_response_size: 4KiB}}}\n";
    let gateway = gateway(&sockets, &reviews, limits);
    let later: [(&str, &str, Act<'_>); 6] = [
        ("hangs up", "WEBSOCKET", &|session| {
            session.close(1011, "oh")
        }),
        ("long", "WEBSOCKET_MESSAGE_ERROR", &|session| {
            session.send(event(json!({"count": "x".repeat(5_000)})));
        }),
        ("nonsense", "WEBSOCKET_MESSAGE_ERROR", &|session| {
            session.send_text("{}")
        }),
        ("unknown", "WEBSOCKET_MESSAGE_ERROR", &|session| {
            session.send(json!({"type": "data", "id": "1", "payload": {}}));
        }),
        ("no payload", "WEBSOCKET_MESSAGE_ERROR", &|session| {
            session.send(json!({"type": "next", "id": "1"}));
        }),
        ("error", "NO", &|session| {
            let error = json!({"message": "no", "extensions": {"code": "NO"}});
            session.send(json!({"type": "error", "id": "1", "payload": [error]}));
        }),
    ];
    for (name, code, act) in later {
        let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
        session.event(json!({"count": 1}));
        assert_eq!(
            payload(&mut stream),
            json!({"data": {"count": 1}}),
            "{name}"
        );
        act(&mut session);
        let payload = payload(&mut stream);
        let told = payload["errors"][0]["extensions"]["code"].as_str();
        assert!(
            told.is_some_and(|told| told.starts_with(code)),
            "{name}: {payload}"
        );
        assert_eq!(part(&mut stream), (Value::Null, true), "{name}");
    }
    // The subgraph has stopped listening.
    drop(sockets);
    let answer = Stream::begin(&gateway, "application/json", "{ __typename }").whole();
    assert_eq!(answer, r#"{"data":{"__typename":"Query"}}"#);
}

#[test]
fn errors_of_subgraphs_are_hidden_as_in_any_answer() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let hidden = config(&sockets, &reviews, ALL).replace("{all: true}", "{all: false}");
    let gateway = start(&hidden);
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    session.close(1011, "secret");
    let payload = payload(&mut stream);
    assert_eq!(
        payload["errors"][0]["message"], "Subgraph errors redacted",
        "{payload}"
    );
    assert!(!payload.to_string().contains("secret"), "{payload}");
}

#[test]
fn a_message_of_another_operation_is_no_event() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    session.send(json!({"type": "next", "id": "2", "payload": {"data": {"count": 2}}}));
    session.send(json!({"type": "complete", "id": "2"}));
    session.send(json!({"type": "ping"}));
    assert_eq!(session.read(), json!({"type": "pong"}));
    session.event(json!({"count": 1}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
}

#[test]
fn the_older_protocol_is_spoken_where_it_is_asked_for() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let mode =
        "subscription: {mode: {passthrough: {all: {path: /ws, protocol: graphql_transport_ws}}}}\n";
    let gateway = start(&config(&sockets, &reviews, mode));
    let (mut stream, mut session) = thread::scope(|scope| {
        let asking = scope.spawn(|| Stream::begin(&gateway, MULTIPART, COUNT));
        let mut session = sockets.connected();
        assert_eq!(session.header("sec-websocket-protocol"), Some("graphql-ws"));
        session.read();
        session.send(json!({"type": "ka"}));
        session.send(json!({"type": "connection_ack"}));
        assert_eq!(session.read()["type"], "start");
        (asking.join().unwrap(), session)
    });
    session.send(json!({"type": "data", "id": "1", "payload": {"data": {"count": 1}}}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
    drop(stream);
    assert_eq!(session.try_read(), Some(json!({"id": "1", "type": "stop"})));
}

#[test]
fn a_silent_subgraph_is_asked_and_then_given_up() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let mode = "subscription: {mode: {passthrough: {all: {heartbeat_interval: 300ms}}}}\n";
    let gateway = start(&config(&sockets, &reviews, mode));
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    assert_eq!(session.target, "/graphql");
    assert_eq!(session.read(), json!({"type": "ping"}));
    session.send(json!({"type": "pong"}));
    assert_eq!(session.read(), json!({"type": "ping"}));
    let payload = payload(&mut stream);
    assert_eq!(
        payload["errors"][0]["extensions"]["code"],
        "WEBSOCKET_MESSAGE_ERROR"
    );
    assert_eq!(part(&mut stream), (Value::Null, true));
}

#[test]
fn so_many_subscriptions_and_no_more() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let mode = "subscription: {max_opened_subscriptions: 1, mode: {passthrough: {all: {}}}}\n";
    let more = format!("{mode}traffic_shaping: {{router: {{concurrency_limit: 1}}}}\n");
    let gateway = start(&config(&sockets, &reviews, &more));
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    session.event(json!({"count": 1}));
    payload(&mut stream);
    let refused = Stream::begin(&gateway, MULTIPART, COUNT);
    assert!(refused.head.starts_with("HTTP/1.1 429"), "{}", refused.head);
    assert!(refused.whole().contains("SUBSCRIPTION_MAX_LIMIT"));
    // The subscription does not count as a running request.
    let other = post(r#"{"query":"{ __typename }"}"#);
    assert_eq!(gateway.send(&other).status, 200);
    metric_reaches(&gateway, "graphql_subscriptions ", 1);
    // The client leaves. The subgraph receives `complete` immediately, and there is room again.
    let left = test_client::now();
    drop(stream);
    assert_eq!(
        session.try_read(),
        Some(json!({"id": "1", "type": "complete"}))
    );
    assert_eq!(session.try_read(), None);
    assert!(left.elapsed() < Duration::from_secs(2));
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"client\"}",
        1,
    );
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    session.event(json!({"count": 2}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 2}}));
    metric_reaches(&gateway, "graphql_subscriptions_refused_total", 1);
}

/// Reviews that wait for a signal before each response.
fn slow_reviews() -> (Stub, Sender<()>) {
    let (release, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let stub = Stub::start(move |_| {
        let _ = gate.lock().unwrap().recv();
        answer_json(REVIEWS)
    });
    (stub, release)
}

#[test]
fn the_oldest_event_gives_way_when_events_come_too_fast() {
    let (sockets, (reviews, release)) = (Sockets::start(), slow_reviews());
    let mode = "subscription: {queue_capacity: 2, mode: {passthrough: {all: {}}}}\n";
    let gateway = start(&config(&sockets, &reviews, mode));
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, PRICES);
    session.event(price(1, 1));
    // The first event is in progress. The queue keeps two of the others.
    let end = test_client::now() + Duration::from_secs(10);
    while reviews.seen().is_empty() {
        assert!(test_client::now() < end);
        thread::yield_now();
    }
    for number in 2..=9 {
        session.event(price(number, number));
    }
    metric_reaches(&gateway, "graphql_subscriptions_events_skipped_total", 6);
    session.complete();
    for number in [1, 8, 9] {
        release.send(()).unwrap();
        assert_eq!(payload(&mut stream), with_review(number, number));
    }
    assert_eq!(part(&mut stream), (Value::Null, true));
    metric_reaches(&gateway, "graphql_subscriptions_events_total", 3);
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"subgraph\"}",
        1,
    );
}

#[test]
fn each_response_passes_the_stages() {
    let messages = Arc::new(Mutex::new(Vec::<Value>::new()));
    let seen = Arc::clone(&messages);
    let coprocessor = Stub::coprocessor(move |message| {
        seen.lock().unwrap().push(message.clone());
        if message["stage"] == "SupergraphResponse" && message["body"]["data"]["count"] == 2 {
            message["body"]["data"]["count"] = json!(22);
        }
    });
    let stage = "{response: {body: true, status_code: true}}";
    let more = format!(
        "coprocessor: {{url: '{}', router: {stage}, supergraph: {stage}, execution: {stage}, subgraph: {{all: {{request: {{headers: true, body: true}}}}}}}}\n",
        coprocessor.url
    );
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, &more);
    let (mut stream, mut session, _) = open(&gateway, &sockets, MULTIPART, COUNT);
    for number in 1..=2 {
        session.event(json!({"count": number}));
    }
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 22}}));
    let messages = messages.lock().unwrap();
    let stages: Vec<_> = messages
        .iter()
        .map(|it| it["stage"].as_str().unwrap())
        .collect();
    let all = ["ExecutionResponse", "SupergraphResponse", "RouterResponse"];
    assert_eq!(
        stages,
        [&["SubgraphRequest"][..], &all, &all, &all].concat()
    );
    let codes: Vec<_> = messages
        .iter()
        .map(|it| it.get("statusCode").is_some())
        .collect();
    assert_eq!(codes[1..5], [true, true, true, false]);
}

#[test]
fn a_stage_can_refuse_a_subscription() {
    let coprocessor = Stub::coprocessor(|message| {
        message["control"] = json!({"break": 403});
        message["body"] = json!({"errors": [{"message": "no"}]});
    });
    let (sockets, reviews) = (Sockets::start(), reviews());
    for (stage, head) in [("request", "HTTP/1.1 403"), ("response", "HTTP/1.1 403")] {
        let more = format!(
            "coprocessor: {{url: '{}', supergraph: {{{stage}: {{body: true}}}}}}\n",
            coprocessor.url
        );
        let gateway = gateway(&sockets, &reviews, &more);
        let stream = thread::scope(|scope| {
            let asking = scope.spawn(|| Stream::begin(&gateway, MULTIPART, COUNT));
            if stage == "response" {
                let (mut session, _) = sockets.subscribed();
                assert_eq!(session.read()["type"], "complete");
            }
            asking.join().unwrap()
        });
        assert!(stream.head.starts_with(head), "{stage}: {}", stream.head);
        assert!(stream.whole().contains("\"no\""));
    }
    assert!(sockets.is_alone());
}

#[test]
fn what_needs_no_subgraph_is_one_response() {
    let (sockets, reviews) = (Sockets::start(), reviews());
    let gateway = gateway(&sockets, &reviews, "");
    let mut stream = Stream::begin(&gateway, MULTIPART, "subscription { secret }");
    assert_eq!(only(&mut stream), "UNAUTHORIZED_FIELD_OR_TYPE");
    // An event of this subscription would have no content.
    let answer = Stream::begin(&gateway, MULTIPART, "subscription { __typename }").whole();
    assert!(answer.contains("GRAPHQL_VALIDATION_FAILED"), "{answer}");
    assert!(sockets.is_alone());
}

#[test]
fn apollo_client_and_graphql_sse_follow_a_subgraph_of_graphql_ws() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    for kind in ["apollo", "sse"] {
        let reviews = reviews();
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("prices.sock");
        let prices = format!("unix://{}", socket.display());
        let config = format!(
            "override_subgraph_url: {{prices: '{prices}', reviews: '{}/r'}}\ninclude_subgraph_errors: {{all: true}}\n{ALL}",
            reviews.url
        );
        let gateway = start(&config);
        let url = format!("http://{}/", gateway.address);
        let words = ["subscriptions.mjs", &url, socket.to_str().unwrap(), kind];
        let Some(said) = test_client::node::run(&folder, "graphql-sse", &words) else {
            return;
        };
        let event = |price: u32| format!("7 costs {price}, reviewed 5\n");
        assert_eq!(
            said,
            format!(
                "{}{}{}complete\n{{\"failing\":null}}; no prices today\ncomplete\n{{\"silence\":0}}\nopen: 0\n",
                event(1),
                event(2),
                event(3)
            ),
            "{kind}"
        );
        assert_eq!(reviews.seen().len(), 3, "{kind}");
    }
}
