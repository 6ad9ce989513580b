//! Iterations that log in over HTTP and then open a conversation over WebSocket with the captured token.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{Framing, Job, Request, StreamEnd, StreamRule, walk};
use model::{GraphqlProtocol, Load, PlannedMessage, ReplyRule, WebSocketCall, WebSocketDialect};

use crate::scenario::{captured, step};
use crate::server::{Client, Server};
use crate::websocket::{CLOSE, TEXT, frame, next, upgrade};
use crate::{closed, get, job, measure, open};

const GRAPHQL: &str = "Sec-WebSocket-Protocol: graphql-transport-ws\r\n";

/// The texts that a server received.
type Heard = Arc<Mutex<Vec<String>>>;

/// Answers every login with another token. Accepts upgrades, and answers every text message.
fn shop(heard: &Heard, lines: &'static str) -> Server {
    let heard = Arc::clone(heard);
    Server::tcp(move |mut client: Client| {
        while let Some((number, request)) = client.request() {
            if request.starts_with("GET /login") {
                client.answer(&format!(r#"{{"token":"t\"{number}","id":{number}}}"#));
            } else if request.contains("Upgrade: websocket") {
                heard.lock().unwrap().push(request.clone());
                upgrade(&mut client, &request, lines).unwrap();
                return converse(&mut client, &heard);
            } else {
                client.answer("yours");
            }
        }
    })
}

/// Answers the messages of a connection: two results for a subscription, one for any other text.
fn converse(client: &mut Client, heard: &Heard) {
    while let Some((kind, text)) = next(client) {
        if kind == CLOSE {
            return client.send_bytes(&frame(CLOSE, b"\x03\xe8"));
        }
        heard.lock().unwrap().push(text.clone());
        let message: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let answers = match message["type"].as_str() {
            Some("connection_init") => vec![r#"{"type":"connection_ack"}"#.to_owned()],
            Some("subscribe") => {
                let id = &message["id"];
                let result = format!(r#"{{"id":{id},"type":"next","payload":{{"data":1}}}}"#);
                vec![result.clone(), result]
            }
            Some(_) => Vec::new(),
            None => vec![text],
        };
        for answer in answers {
            client.send_bytes(&frame(TEXT, answer.as_bytes()));
        }
    }
}

/// Opens the conversation with the token of the login, and sends one more request of HTTP.
fn entering(server: &Server, load: Load, call: WebSocketCall) -> Job {
    let mut job = job(&server.target, load);
    let mut socket = Request::get("/socket?token={{token}}");
    socket.headers = vec![("X-Id".to_owned(), "{{id}}".to_owned())];
    socket.websocket = Some(call);
    socket.expect.stream = Some(StreamRule {
        end: Some(StreamEnd::Count(2)),
        ..StreamRule::of(Framing::Messages)
    });
    job.requests = vec![get("/login"), socket, get("/list/{{id}}")];
    job.steps = vec![
        step(
            "log in",
            Duration::ZERO,
            vec![captured("token", "/token"), captured("id", "/id")],
        ),
        step("subscribe", Duration::ZERO, Vec::new()),
        step("list", Duration::ZERO, Vec::new()),
    ];
    job
}

fn subscription(init: Option<&str>) -> WebSocketCall {
    WebSocketCall {
        dialect: WebSocketDialect::Graphql {
            protocol: GraphqlProtocol::TransportWs,
            init: init.map(str::to_owned),
            subscribe: r#"{"query":"subscription","variables":{"id":{{json:id}}}}"#.to_owned(),
        },
        offers: Vec::new(),
        hold: None,
        is_kept: true,
    }
}

fn raw(messages: &[&str], offers: &[&str]) -> WebSocketCall {
    WebSocketCall {
        dialect: WebSocketDialect::Raw {
            subprotocol: None,
            messages: messages
                .iter()
                .map(|&text| PlannedMessage::of_text(text))
                .collect(),
            replies: ReplyRule::None,
        },
        offers: offers.iter().map(|&offer| offer.to_owned()).collect(),
        hold: None,
        is_kept: false,
    }
}

#[test]
fn a_subscription_begins_with_the_token_of_its_own_login() {
    for load in [closed(2, 10), open(200.0, Duration::from_millis(50))] {
        let heard = Heard::default();
        let server = shop(&heard, GRAPHQL);
        let init = r#"{"token":"{{escaped:token}}","id":{{json:id}}}"#;
        let job = entering(&server, load, subscription(Some(init)));
        let measurement = measure(&job);
        assert_eq!(measurement.iterations.completed, 10);
        let passed: Vec<u64> = measurement
            .steps
            .iter()
            .map(|step| step.outcomes.passed)
            .collect();
        assert_eq!(passed, [10, 10, 10], "{:?}", measurement.failures);
        let events = measurement.events.as_ref().expect("a stream");
        assert_eq!((events.streams, events.events), (10, 20));
        let heard = heard.lock().unwrap();
        let upgrades: Vec<&String> = heard.iter().filter(|it| it.starts_with("GET ")).collect();
        assert_eq!(upgrades.len(), 10, "each token has its own connection");
        for request in upgrades {
            let id = request.split("X-Id: ").nth(1).unwrap();
            let id = id.lines().next().unwrap();
            assert!(
                request.contains(&format!("/socket?token=t%22{id} ")),
                "{request}"
            );
            // Numbers stay numbers, and a quote cannot end its text.
            let init = format!(r#""payload":{{"token":"t\"{id}","id":{id}}}"#);
            let with_init = |it: &&String| it.contains("connection_init") && it.contains(&init);
            assert_eq!(heard.iter().filter(with_init).count(), 1, "{id}");
            let variables = format!(r#""variables":{{"id":{id}}}"#);
            assert_eq!(heard.iter().filter(|it| it.contains(&variables)).count(), 1);
        }
        // Requests of HTTP keep their own connections.
        assert!(server.connections() <= 10 + 10, "{}", server.connections());
    }
}

#[test]
fn a_connection_without_a_value_of_the_login_is_kept_for_the_next_iteration() {
    let heard = Heard::default();
    let server = shop(&heard, GRAPHQL);
    let mut job = entering(&server, closed(1, 5), subscription(None));
    job.requests[1].path = "/socket".to_owned();
    job.requests[1].headers.clear();
    let measurement = measure(&job);
    assert_eq!(
        measurement.iterations.completed, 5,
        "{:?}",
        measurement.failures
    );
    assert_eq!(
        server.connections(),
        2,
        "one for HTTP and one for WebSocket"
    );
}

#[test]
fn a_token_is_a_subprotocol_and_a_message() {
    let heard = Heard::default();
    let server = shop(&heard, "");
    let messages = [r#"{"id":{{json:id}}}"#, "{{token}}"];
    let call = raw(&messages, &["bearer.{{id}}"]);
    let measurement = measure(&entering(&server, closed(2, 6), call.clone()));
    assert_eq!(
        measurement.iterations.completed, 6,
        "{:?}",
        measurement.failures
    );
    let offered = |heard: &Vec<String>| {
        let line = |it: &&String| it.contains("Sec-WebSocket-Protocol: bearer.");
        heard.iter().filter(line).count()
    };
    assert_eq!(offered(&heard.lock().unwrap()), 6);
    assert!(heard.lock().unwrap().iter().any(|it| it.starts_with("t\"")));
    // A proof sends the same, each step on a new connection.
    let answers = walk(&entering(&server, closed(1, 1), call), 0).unwrap();
    let messages = answers[1].messages.as_ref().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(answers[2].body, b"yours");
    assert_eq!(offered(&heard.lock().unwrap()), 7);
}

#[test]
fn a_token_that_is_no_subprotocol_fails_its_step_and_is_named() {
    let server = shop(&Heard::default(), "");
    let call = raw(&["a", "b"], &["{{token}}"]);
    let measurement = measure(&entering(&server, closed(1, 2), call));
    assert_eq!(measurement.iterations.broken, 2);
    let reason = &measurement.failures[0].reason;
    assert!(
        reason.contains("expected a subprotocol of letters"),
        "{reason}"
    );
    assert_eq!(measurement.steps[2].skipped, 2);
}

#[test]
fn a_step_after_a_conversation_does_not_wait_for_the_close_of_the_server() {
    // The server never answers the close message.
    let server = Server::tcp(|mut client: Client| {
        while let Some((_, request)) = client.request() {
            if request.contains("Upgrade: websocket") {
                upgrade(&mut client, &request, "").unwrap();
                client.send_bytes(&[frame(TEXT, b"a"), frame(TEXT, b"b")].concat());
                return client.wait_for_end();
            }
            client.answer(r#"{"token":"t","id":1}"#);
        }
    });
    let measurement = measure(&entering(&server, closed(1, 20), raw(&[], &[])));
    assert_eq!(
        measurement.iterations.completed, 20,
        "{:?}",
        measurement.failures
    );
    let list = &measurement.steps[2].latency;
    assert!(list.min_ns().unwrap() < 15_000_000, "{:?}", list.min_ns());
}

#[test]
fn a_conversation_captures_nothing() {
    let server = shop(&Heard::default(), "");
    let mut job = entering(&server, closed(1, 1), raw(&["a"], &[]));
    job.steps[1].captures = vec![captured("more", "/a")];
    let error = walk(&job, 0).unwrap_err().to_string();
    assert!(error.contains("no value can be captured"), "{error}");
}
