//! Tests subscriptions over callbacks: a subgraph sends events as HTTP requests to the gateway.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Connection, Response};
use crate::connections::{metric_falls_to, metric_reaches};
use crate::deferred::Stream;
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json as answer_json};
use crate::subscriptions::{COUNT, MULTIPART, PRICES, SUPERGRAPH, fatal, part, payload};

const NOTHING: &str = r#"{"data":null}"#;
const REVIEWS: &str = r#"{"data":{"_entities":[{"reviews":[{"score":5}]}]}}"#;

/// The parameters of a subscription that a subgraph received.
#[derive(Clone, Debug)]
struct CallbackParameters {
    url: String,
    id: String,
    verifier: String,
    heartbeat: u64,
}

impl CallbackParameters {
    fn of(body: &Value) -> Self {
        let parameters = &body["extensions"]["subscription"];
        let text = |key: &str| {
            parameters[key]
                .as_str()
                .unwrap_or_else(|| panic!("{body}"))
                .to_owned()
        };
        Self {
            url: text("callbackUrl"),
            id: text("subscriptionId"),
            verifier: text("verifier"),
            heartbeat: parameters["heartbeatIntervalMs"].as_u64().unwrap(),
        }
    }

    /// Sends a message of the protocol, changed by `more`.
    fn send(&self, action: &str, more: Value) -> Response {
        let mut message = json!({"kind": "subscription", "action": action, "id": self.id, "verifier": self.verifier});
        for (key, value) in more.as_object().unwrap() {
            message[key] = value.clone();
        }
        self.post(&message.to_string())
    }

    fn post(&self, body: &str) -> Response {
        let (address, path) = self.url["http://".len()..].split_once('/').unwrap();
        let path = format!("/{path}");
        let request = test_client::post_json(&path, body);
        Connection::open(address).send(&request)
    }

    fn event(&self, data: Value) {
        let answer = self.send("next", json!({"payload": {"data": data}}));
        assert_eq!(answer.status, 200);
    }
}

/// Both subgraphs. One reports the parameters of each subscription to the test.
struct Subgraph {
    stub: Stub,
    parameters: Receiver<CallbackParameters>,
}

fn subgraph(answer: impl Fn(&CallbackParameters) -> Answer + Send + Sync + 'static) -> Subgraph {
    let (sender, parameters) = channel();
    let sender = Mutex::new(sender);
    let stub = Stub::start(move |seen| {
        if seen.target == "/r" {
            return answer_json(REVIEWS);
        }
        assert_eq!(
            seen.header("accept"),
            Some("application/json;callbackSpec=1.0")
        );
        let parameters = CallbackParameters::of(&seen.json());
        let answer = answer(&parameters);
        sender.lock().unwrap().send(parameters).unwrap();
        answer
    });
    Subgraph { stub, parameters }
}

/// A subgraph that follows the protocol.
fn obedient() -> Subgraph {
    subgraph(|parameters| {
        let answer = parameters.send("check", json!({}));
        assert_eq!(answer.status, 204);
        assert_eq!(answer.header("subscription-protocol"), Some("callback"));
        answer_json(NOTHING)
    })
}

/// An address that is free now. The gateway prints the callback address in a line that these tests do not
/// read.
fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

fn start(subgraph: &Subgraph, more: &str) -> Gateway {
    start_with(subgraph, more, "")
}

/// Starts a gateway with these callback keys and these other keys.
fn start_with(subgraph: &Subgraph, more: &str, others: &str) -> Gateway {
    let address = free_address();
    let url = &subgraph.stub.url;
    let config = format!(
        "override_subgraph_url: {{prices: '{url}/p', reviews: '{url}/r'}}\ninclude_subgraph_errors: {{all: true}}\nheaders: {{all: {{request: [{{propagate: {{named: x-mine}}}}]}}}}\nsubscription: {{mode: {{callback: {{public_url: 'http://{address}/callback', listen: '{address}', path: /callback, subgraphs: [prices], {more}}}}}}}\n{others}"
    );
    Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .start()
}

#[test]
fn events_are_no_longer_than_answers_may_be() {
    let subgraph = obedient();
    let limits = "limits: {subgraph: {all: {http_max_response_size: 4KiB}}}\n";
    let gateway = start_with(&subgraph, "", limits);
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    parameters.event(json!({"count": 1}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
    let long = json!({"payload": {"data": {"count": "x".repeat(5_000)}}});
    // A subgraph stops after a 404.
    assert_eq!(parameters.send("next", long).status, 404);
    let last = payload(&mut stream);
    assert_eq!(
        last["errors"][0]["extensions"]["code"], "SUBREQUEST_HTTP_ERROR",
        "{last}"
    );
    assert_eq!(part(&mut stream), (Value::Null, true));
}

#[test]
fn events_come_by_requests_to_the_gateway() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "heartbeat_interval: 7s");
    let mut stream = Stream::begin(&gateway, MULTIPART, PRICES);
    let parameters = subgraph.parameters.recv().unwrap();
    assert_eq!(parameters.heartbeat, 7_000);
    assert!(
        parameters
            .url
            .ends_with(&format!("/callback/{}", parameters.id)),
        "{parameters:?}"
    );
    let sent = &subgraph.stub.seen()[0];
    assert_eq!(sent.header("x-mine"), Some("yes"));
    assert_eq!(
        sent.json()["query"],
        "subscription Prices__prices__0{priceChanged{__typename id price}}"
    );
    for number in 1..=2 {
        parameters
            .event(json!({"priceChanged": {"__typename": "Product", "id": "1", "price": number}}));
        assert_eq!(
            payload(&mut stream),
            json!({"data": {"priceChanged": {"id": "1", "price": number, "reviews": [{"score": 5}]}}})
        );
    }
    assert_eq!(parameters.send("complete", json!({})).status, 202);
    assert_eq!(part(&mut stream), (Value::Null, true));
    assert_eq!(stream.chunk(), None);
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"subgraph\"}",
        1,
    );
    assert_eq!(parameters.send("check", json!({})).status, 404);
}

#[test]
fn several_clients_share_one_and_the_last_who_leaves_ends_it() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "");
    let mut first = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    let mut second = Stream::begin(&gateway, MULTIPART, COUNT);
    assert_eq!(subgraph.stub.seen().len(), 1);
    parameters.event(json!({"count": 1}));
    for stream in [&mut first, &mut second] {
        assert_eq!(payload(stream), json!({"data": {"count": 1}}));
    }
    drop(first);
    metric_falls_to(&gateway, "graphql_subscriptions ", 1);
    parameters.event(json!({"count": 2}));
    assert_eq!(payload(&mut second), json!({"data": {"count": 2}}));
    drop(second);
    metric_falls_to(&gateway, "graphql_subscriptions_upstream ", 0);
    assert_eq!(parameters.send("check", json!({})).status, 404);
}

#[test]
fn errors_end_it() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "");
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    let errors = json!([{"message": "no more", "extensions": {"code": "ENOUGH"}}]);
    assert_eq!(
        parameters
            .send("complete", json!({"errors": errors}))
            .status,
        202
    );
    let payload = payload(&mut stream);
    assert_eq!(
        payload["errors"][0]["extensions"]["code"], "ENOUGH",
        "{payload}"
    );
    assert_eq!(part(&mut stream), (Value::Null, true));
}

#[test]
fn a_subgraph_that_refuses_is_an_error() {
    for answer in [
        Answer::With(500, None, b"broken".to_vec()),
        answer_json(r#"{"errors":[{"message":"no","extensions":{"code":"NO"}}]}"#),
    ] {
        let refuses = subgraph(move |_| answer.clone());
        let gateway = start(&refuses, "");
        let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
        let (part, is_last) = part(&mut stream);
        assert!(is_last, "{part}");
        assert!(
            part["payload"]["errors"][0]["message"].is_string(),
            "{part}"
        );
        // The subgraph's parameters are not valid any more.
        let parameters = refuses.parameters.recv().unwrap();
        assert_eq!(parameters.send("check", json!({})).status, 404);
    }
}

#[test]
fn who_lacks_the_id_or_the_verifier_learns_and_changes_nothing() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "");
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    let elsewhere = CallbackParameters {
        url: parameters.url.replace(&parameters.id, &"0".repeat(32)),
        ..parameters.clone()
    };
    let wrong_verifier = json!({"verifier": "0".repeat(32), "payload": {"data": {"count": 6}}});
    let wrong_id = json!({"id": "0".repeat(32), "payload": {"data": {"count": 6}}});
    let right = json!({"payload": {"data": {"count": 6}}});
    let mut answers = Vec::new();
    for action in ["check", "next", "complete"] {
        answers.push(parameters.send(action, wrong_verifier.clone()));
        answers.push(parameters.send(action, wrong_id.clone()));
        answers.push(elsewhere.send(action, right.clone()));
    }
    answers.push(parameters.post("nonsense"));
    answers.push(parameters.post("{}"));
    answers.push(parameters.send("stop", json!({})));
    answers.push(parameters.send(
        "next",
        json!({"kind": "query", "payload": {"data": {"count": 6}}}),
    ));
    let (address, path) = parameters.url["http://".len()..].split_once('/').unwrap();
    let path = format!("/{path}");
    answers.push(Connection::open(address).send(&test_client::get(&path)));
    for answer in &answers {
        // Compared without the `date` header.
        let head = answer
            .head
            .lines()
            .filter(|line| !line.starts_with("date:"));
        let first = answers[0]
            .head
            .lines()
            .filter(|line| !line.starts_with("date:"));
        assert!(head.eq(first), "{}", answer.head);
        assert_eq!((answer.status, answer.text()), (404, ""));
    }
    // The gateway does not read a large body for an unknown id.
    let long = "x".repeat(1 << 20);
    assert_eq!(
        elsewhere
            .send("next", json!({"payload": {"data": long}}))
            .status,
        404
    );
    // The client received no part of it.
    parameters.event(json!({"count": 1}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
    // A message without its payload.
    assert_eq!(parameters.send("next", json!({})).status, 400);
}

#[test]
fn a_subgraph_without_a_sign_of_life_is_given_up() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "heartbeat_interval: 100ms");
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    let begin = test_client::now();
    let payload = payload(&mut stream);
    assert_eq!(
        payload["errors"][0]["extensions"]["code"], "SUBSCRIPTION_HEARTBEAT_ERROR",
        "{payload}"
    );
    assert!(begin.elapsed() > Duration::from_secs(4), "within the grace");
    assert_eq!(part(&mut stream), (Value::Null, true));
    assert_eq!(stream.chunk(), None);
    assert_eq!(parameters.send("check", json!({})).status, 404);
}

#[test]
fn a_client_that_leaves_ends_what_the_subgraph_may_do() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "");
    let stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    assert_eq!(parameters.send("check", json!({})).status, 204);
    drop(stream);
    metric_reaches(
        &gateway,
        "graphql_subscriptions_ended_total{by=\"client\"}",
        1,
    );
    let end = test_client::now() + Duration::from_secs(5);
    while parameters.send("check", json!({})).status != 404 {
        assert!(test_client::now() < end);
    }
}

#[test]
fn a_reload_ends_it_for_both_sides() {
    let subgraph = obedient();
    let gateway = start(&subgraph, "");
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    let path = gateway.folder.path().join("router.yaml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config + "supergraph: {introspection: true}\n").unwrap();
    gateway.signal(rustix::process::Signal::HUP);
    assert_eq!(fatal(&mut stream), "SUBSCRIPTION_CONFIG_RELOAD");
    let end = test_client::now() + Duration::from_secs(5);
    while parameters
        .send("next", json!({"payload": {"data": {"count": 1}}}))
        .status
        != 404
    {
        assert!(test_client::now() < end);
    }
}

#[test]
fn without_an_address_of_their_own_they_come_to_that_of_graphql() {
    let subgraph = subgraph(|_| answer_json(NOTHING));
    let url = &subgraph.stub.url;
    let config = format!(
        "override_subgraph_url: {{prices: '{url}/p'}}\nsubscription: {{mode: {{callback: {{public_url: 'http://unknown/events', path: /events}}}}}}\n"
    );
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .start();
    let mut stream = Stream::begin(&gateway, MULTIPART, COUNT);
    let parameters = subgraph.parameters.recv().unwrap();
    assert_eq!(
        parameters.url,
        format!("http://unknown/events/{}", parameters.id)
    );
    let parameters = CallbackParameters {
        url: parameters.url.replace("unknown", &gateway.address),
        ..parameters
    };
    parameters.event(json!({"count": 1}));
    assert_eq!(payload(&mut stream), json!({"data": {"count": 1}}));
    let elsewhere = CallbackParameters {
        url: parameters.url.replace("/events/", "/callback/"),
        ..parameters
    };
    assert_eq!(elsewhere.send("check", json!({})).status, 404);
}

#[test]
fn apollo_server_sends_events_and_stops_when_the_client_has_left() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/subgraph");
    let address = free_address();
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("prices.sock");
    let config = format!(
        "override_subgraph_url: {{prices: 'unix://{}'}}\nsubscription: {{mode: {{callback: {{public_url: 'http://{address}/callback', listen: '{address}', heartbeat_interval: 1s}}}}}}\n",
        socket.display()
    );
    let gateway = Setup::new(&config)
        .file("supergraph.graphql", SUPERGRAPH)
        .start();
    let url = format!("http://{}/", gateway.address);
    let words = ["callbacks.mjs", &url, socket.to_str().unwrap()];
    let Some(said) = test_client::node::run(&folder, "@apollo/server", &words) else {
        return;
    };
    let event = |number: u32| format!("event: next data: {{\"data\":{{\"count\":{number}}}}}\n");
    let counted = format!("{}{}{}", event(1), event(2), event(3));
    assert_eq!(said, format!("{counted}event: complete data: \nleft\n"));
}
