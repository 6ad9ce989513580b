//! Claims about requests that open a conversation over WebSocket.

use std::time::Duration;

use model::{
    GraphqlProtocol, MessageContent, PlannedMessage, ReplyRule, StreamEnd, WebSocketCall,
    WebSocketDialect,
};

use crate::{Folder, changed};

fn folder(request: &str) -> Folder {
    let load = format!("  duration: 1s\n  requests:\n    - {request}\n");
    Folder::with_lab(changed(&[("  duration: 1s\n", &load)])).file("labs/bytes.bin", "\u{1}ab")
}

fn call(request: &str) -> WebSocketCall {
    let lab = folder(request).parse();
    let lab = lab.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    lab.requests[0].websocket.clone().unwrap()
}

fn refused(request: &str) -> String {
    folder(request).parse().unwrap_err().render(false)
}

#[test]
fn a_subscription_is_written_in_three_lines() {
    let request = "{name: price, path: /graphql, websocket: {protocol: graphql-transport-ws, \
                   init: {token: a}, subscribe: {query: 'subscription { price }', variables: \
                   {of: 1}}}, stream: {ends: {count: 50}, each: graphql}}";
    assert_eq!(
        call(request),
        WebSocketCall {
            dialect: WebSocketDialect::Graphql {
                protocol: GraphqlProtocol::TransportWs,
                init: Some(r#"{"token":"a"}"#.to_owned()),
                subscribe: r#"{"query":"subscription { price }","variables":{"of":1}}"#.to_owned(),
            },
            offers: Vec::new(),
            hold: None,
            is_kept: true,
        }
    );
    let lab = folder(request).parse().unwrap();
    let request = &lab.requests[0];
    let rule = request.stream.as_ref().unwrap();
    assert_eq!(rule.framing.word(), "messages");
    assert_eq!(rule.end, Some(StreamEnd::Count(50)));
    assert_eq!((request.method.as_str(), request.body.len()), ("GET", 0));
}

#[test]
fn messages_have_times_and_replies() {
    let request = "{path: /ws, websocket: {protocol: chat, hold: 10s, replies: /id, messages: \
                   [{json: {id: 0, say: hello}, every: 100ms}, {file: bytes.bin, after: 1s}]}}";
    let call = call(request);
    let WebSocketDialect::Raw {
        subprotocol,
        messages,
        replies,
    } = call.dialect
    else {
        panic!("{call:?}");
    };
    assert_eq!(subprotocol.as_deref(), Some("chat"));
    assert_eq!(replies, ReplyRule::Id("/id".to_owned()));
    assert_eq!(
        (call.hold, call.is_kept),
        (Some(Duration::from_secs(10)), false)
    );
    assert_eq!(
        messages,
        [
            PlannedMessage {
                content: MessageContent::Text(r#"{"id":0,"say":"hello"}"#.to_owned()),
                after: Duration::ZERO,
                every: Some(Duration::from_millis(100)),
                count: None,
            },
            PlannedMessage {
                content: MessageContent::Binary(vec![1, b'a', b'b']),
                after: Duration::from_secs(1),
                every: None,
                count: None,
            },
        ]
    );
}

#[test]
fn keys_that_exclude_each_other_are_refused_by_name() {
    for (request, words) in [
        (
            "{websocket: {messages: {text: a}}, json: {a: 1}}",
            "`json` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, query: '{ a }'}",
            "`websocket.subscribe: {query: …}`",
        ),
        (
            "{websocket: {messages: {text: a}}, batch: q/*.json}",
            "`batch` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, method: POST}",
            "`method` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, expect: {status: 200}}",
            "`expect.status` and `websocket` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}}, expect: {graphql: no-errors}}",
            "`graphql` is a rule for a whole body",
        ),
        (
            "{websocket: {protocol: graphql-ws}}",
            "`graphql-ws` without `subscribe`",
        ),
        (
            "{websocket: {protocol: graphql-ws, subscribe: {query: a}, messages: {text: a}}}",
            "`messages` is not for `graphql-ws`",
        ),
        (
            "{websocket: {subscribe: {query: a}}}",
            "`subscribe` without a protocol of GraphQL",
        ),
        (
            "{websocket: {protocol: 'a b'}}",
            "expected the name of a subprotocol, found `a b`",
        ),
        (
            "{websocket: {messages: {text: a, every: 1s}}}",
            "a repeated message without an end",
        ),
        (
            "{websocket: {messages: {text: a, count: 2}}}",
            "`count` without `every`",
        ),
        (
            "{websocket: {messages: {every: 1s, count: 2}}}",
            "expected one of `text`, `json` and `file`, found 0",
        ),
        (
            "{websocket: {replies: order}}",
            "`replies` without `messages`",
        ),
        (
            "{websocket: {messages: {text: a}, replies: id}}",
            "expected `order` or a JSON pointer, found `id`",
        ),
        (
            "{websocket: {hold: 1s}, stream: {ends: {count: 2}}}",
            "`ends` and `websocket.hold` exclude each other",
        ),
        (
            "{websocket: {messages: {text: a}, replies: order}, stream: {ends: {count: 2}}}",
            "`ends` and `websocket.replies` exclude each other",
        ),
        (
            "{websocket: {hold: 1s}, stream: sse}",
            "the events of `websocket` are its messages",
        ),
        (
            "{path: /, stream: messages}",
            "`messages` without `websocket`",
        ),
        (
            "{path: /, stream: {events: 2}}",
            "a stream without `framing`",
        ),
        (
            "{websocket: {hold: 1s}}\n    - {path: /b}",
            "requests of HTTP and of WebSocket are in one load",
        ),
    ] {
        let found = refused(request);
        assert!(found.contains(words), "{request}\n{found}");
    }
}

#[test]
fn a_conversation_that_is_held_may_be_idle() {
    let held = call("{websocket: {hold: 1s}, stream: {events: 0}}");
    assert_eq!(held.hold, Some(Duration::from_secs(1)));
    let found = refused("{websocket: {messages: {text: a}}, stream: {events: 0}}");
    assert!(found.contains("expected at least 1 event"), "{found}");
}

/// Steps of a scenario: a login, and a step with this conversation.
fn steps(socket: &str) -> Folder {
    let load = format!(
        "  duration: 1s\n  scenario:\n    - {{path: /login, capture: {{token: {{json: /token}}, id: {{json: \
         /id}}}}}}\n    - {socket}\n"
    );
    Folder::with_lab(changed(&[("  duration: 1s\n", &load)]))
}

#[test]
fn a_step_opens_a_conversation_with_captured_values() {
    let socket = "{path: '/graphql?token={{token}}', headers: {Authorization: 'Bearer {{token}}'}, websocket: \
                  {protocol: graphql-transport-ws, offers: 'bearer.{{token}}', init: {token: '{{token}}', id: \
                  '{{json:id}}'}, subscribe: {query: 'subscription { a(b: \"{{token}}\") }', variables: \
                  {v: '{{json:id}}'}}}, stream: {ends: {count: 2}}}";
    let lab = steps(socket).parse();
    let lab = lab.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(lab.requests[0].websocket, None);
    let request = &lab.requests[1];
    assert_eq!(request.path, "/graphql?token={{token}}");
    assert!(
        request
            .headers
            .iter()
            .any(|(_, value)| value == "Bearer {{token}}")
    );
    let call = request.websocket.as_ref().unwrap();
    assert_eq!(call.offers, ["bearer.{{token}}"]);
    assert_eq!(
        call.init(),
        Some(r#"{"token":"{{escaped:token}}","id":{{json:id}}}"#)
    );
    // A quote in the token must not end the text of the query.
    assert_eq!(
        call.text(),
        r#"{"query":"subscription { a(b: \"{{escaped:token}}\") }","variables":{"v":{{json:id}}}}"#
    );
    let socket =
        "{path: /ws, websocket: {messages: [{text: '{{token}}'}, {json: {id: '{{json:id}}'}}]}}";
    let lab = steps(socket).parse().unwrap();
    let call = lab.requests[1].websocket.as_ref().unwrap();
    assert_eq!(call.text(), "{{token}}\n{\"id\":{{json:id}}}");
}

#[test]
fn a_step_that_cannot_be_combined_is_refused_by_name() {
    let refused = |socket: &str| steps(socket).parse().unwrap_err().render(false);
    for (socket, words) in [
        (
            "{path: /ws, websocket: {messages: {text: a}}, capture: {x: {json: /a}}}",
            "no value can be captured from the messages of `websocket`",
        ),
        (
            "{path: /ws, websocket: {messages: {text: '{{tokn}}'}}}",
            "`{{tokn}}` is not defined here",
        ),
        (
            "{path: /ws, websocket: {offers: 'a b {{token}}'}}",
            "expected the name of a subprotocol, found `a b {{token}}`",
        ),
        (
            "{path: /ws, websocket: {messages: {text: '{{raw:token}}'}}}",
            "`{{raw:token}}` is for paths only",
        ),
        (
            "{path: /ws, websocket: {messages: {text: a}}, method: POST}",
            "`method` and `websocket` exclude each other",
        ),
    ] {
        let found = refused(socket);
        assert!(found.contains(words), "{socket}\n{found}");
        assert!(found.contains("labs/"), "the line is named: {found}");
    }
    let http2 = |socket: &str| {
        let load = format!(
            "  duration: 1s\n  http2: on\n  scenario:\n    - {{path: /a}}\n    - {socket}\n"
        );
        let lab = Folder::with_lab(changed(&[("  duration: 1s\n", &load)]));
        lab.parse().unwrap_err().render(false)
    };
    let found = http2("{path: /ws, websocket: {messages: {text: a}}}");
    assert!(
        found.contains("a conversation over WebSocket needs HTTP/1.1"),
        "{found}"
    );
    assert!(found.contains("remove `http2: on`"), "{found}");
}

#[test]
fn rules_of_a_file_that_no_conversation_can_keep_are_refused() {
    let refused = |expect: &str| {
        let text = format!(
            "expect: {expect}\nsteps:\n  - {{path: /login}}\n  - {{path: /ws, websocket: {{messages: {{text: a}}}}}}\n"
        );
        let folder = Folder::default().file("s/flow.yaml", &text);
        lab::scenario(std::path::Path::new("s/flow.yaml"), &folder)
            .map(|_| ())
            .map_err(|mistakes| mistakes.render(false))
    };
    let found = refused("{status: 200}").unwrap_err();
    assert!(
        found.contains("the answer to a `websocket` has 101"),
        "{found}"
    );
    assert!(found.contains("s/flow.yaml:1:"), "{found}");
    let found = refused("{graphql: no-errors}").unwrap_err();
    assert!(
        found.contains("`graphql` is a rule for a whole body"),
        "{found}"
    );
    assert_eq!(refused("{status: [200, 101]}"), Ok(()));
    assert_eq!(refused("{headers: {X-A: b}}"), Ok(()));
}
